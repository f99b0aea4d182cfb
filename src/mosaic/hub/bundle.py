"""What an upload of a run holds, in CleanRL's layout: weights, what rebuilds the policy, scores, curves."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from mosaic.analytics.artifacts import Artifact, list_artifacts
from mosaic.analytics.eval_summary import FILE_NAME, EvalScores, EvalSummary, read_eval_summary
from mosaic.analytics.statistics import interval, iqm
from mosaic.analytics.store import RunMetrics
from mosaic.contract.capabilities import EVALUATES
from mosaic.contract.errors import NotFoundError, StorageError, UserError
from mosaic.contract.outside import read_json
from mosaic.contract.paths import RunPaths
from mosaic.hub import ABOUT, ALGORITHM, BEST, CARD_SUFFIX, MODEL_SUFFIX, REPLAY

FORMAT = 1
_MOST_FILMS = 4
_LARGEST_FILM = 200_000_000
_END_SCORES = "eval/episodic_return"
_NOT_OF_THE_POLICY = frozenset({"track", "wandb_project_name", "wandb_entity", "resume_from"})


@dataclass(frozen=True)
class Bundle:
    """Files by their names in the upload, and what its card tells of them."""

    run_id: str
    algo: str
    env_id: str
    seed: int | None
    exp_name: str
    args: Mapping[str, Any]
    step: int | None
    evaluation: EvalSummary | None
    last_return: float | None
    """The mean of the last episodes of training, which is worth less than an evaluation."""
    is_flax: bool
    files: Mapping[str, Path | bytes]

    @property
    def size(self) -> int:
        return sum(
            file.stat().st_size if isinstance(file, Path) else len(file) for file in self.files.values()
        )


def collect(run_dir: Path, best: bool = False) -> Bundle:
    """What there is to upload of a run: its newest model, or the best that it has kept."""
    artifacts, manifest = list_artifacts(run_dir), _object(RunPaths(run_dir).manifest)
    if manifest.get("mode") == EVALUATES:
        # It has a copy of the model, and nothing of how that came about.
        raise UserError(f"Run {run_dir.name} is an evaluation: push the run that has trained the model.")
    model = _choose_model(run_dir, artifacts, best)
    exp_name = model.name.removesuffix(MODEL_SUFFIX).removesuffix(BEST)
    card = _object(_card_beside(model))
    args = {**(card.get("args") or {})}
    known = {**{name: manifest.get(name) for name in ("algo", "env_id", "seed", "total_timesteps")}, **args}
    headline = manifest.get("headline") or {}
    algo = PurePath(str(card.get("algo") or known.get("algo") or exp_name)).stem
    evaluation, films = _evaluation(run_dir, model, algo, known, best)
    bundle = Bundle(
        run_id=run_dir.name,
        algo=algo,
        env_id=str(known.get("env_id") or "unknown"),
        seed=known.get("seed"),
        exp_name=exp_name,
        args={name: _portable(value) for name, value in args.items() if name not in _NOT_OF_THE_POLICY},
        step=card.get("step") or headline.get("step"),
        evaluation=evaluation,
        last_return=headline.get("mean_return"),
        is_flax=not _is_torch(model),
        files={},
    )
    return replace(bundle, files=_files(run_dir, bundle, model, card, films, artifacts))


def _choose_model(run_dir: Path, artifacts: Iterable[Artifact], best: bool) -> Path:
    models = [one for one in artifacts if one.kind == "model" and one.path.endswith(MODEL_SUFFIX)]
    chosen = [one for one in models if one.path.endswith(BEST + MODEL_SUFFIX) == best]
    if not chosen:
        if best and models:
            raise NotFoundError(
                f"Run {run_dir.name} has kept no best model: train with --eval-every N, or leave ':best' out."
            )
        raise NotFoundError(
            f"Run {run_dir.name} has left no model ({MODEL_SUFFIX}), so there is nothing to upload: a run "
            "writes it when it completes."
        )
    return run_dir / max(chosen, key=lambda one: one.modified).path


def _files(
    run_dir: Path,
    bundle: Bundle,
    model: Path,
    card: Mapping[str, Any],
    films: list[Path],
    artifacts: Iterable[Artifact],
) -> dict[str, Path | bytes]:
    found: dict[str, Path | bytes] = {f"{bundle.exp_name}{MODEL_SUFFIX}": model}
    if card:
        found |= _policy_card(run_dir, bundle, card)
    about = {
        "format": FORMAT,
        **{name: getattr(bundle, name) for name in ("run_id", "algo", "env_id", "seed", "exp_name", "step")},
        "versions": _object(RunPaths(run_dir).provenance).get("versions") or {},
    }
    found[ABOUT] = _json(about)
    if bundle.evaluation is not None:
        found[FILE_NAME] = _json(bundle.evaluation.as_json())
    # The curves of this training; a script of several phases has others elsewhere.
    folder = model.parent
    events = [run_dir / one.path for one in artifacts if one.kind == "events"]
    found |= {path.name: path for path in events if path.parent == folder}
    films = films or [run_dir / one.path for one in artifacts if one.kind == "video"]
    films = [path for path in films if path.suffix == ".mp4" and path.stat().st_size <= _LARGEST_FILM]
    films = sorted(films, key=lambda path: path.stat().st_mtime)[-_MOST_FILMS:]
    found |= {f"videos/{path.name}": path for path in films}
    if films:
        found[REPLAY] = films[-1]
    return found


def _policy_card(run_dir: Path, bundle: Bundle, card: Mapping[str, Any]) -> dict[str, Path | bytes]:
    """The card, and the user's own algorithm with it, without the places where things lie on this machine."""
    content = {**card, "algo": bundle.algo, "args": dict(bundle.args)}
    found: dict[str, Path | bytes] = {}
    own = card.get("file")
    if isinstance(own, Mapping):
        name = PurePath(str(own.get("path"))).name
        content["file"] = {**own, "path": f"{ALGORITHM}/{name}"}
        copy = run_dir / ALGORITHM / name
        if copy.is_file():
            found[f"{ALGORITHM}/{name}"] = copy
    # An argument may be infinite, which Python's own JSON can say.
    text = json.dumps(content, indent=2)
    return {f"{bundle.exp_name}{CARD_SUFFIX}": f"{text}\n".encode(), **found}


def _evaluation(
    run_dir: Path, model: Path, algo: str, known: Mapping[str, Any], best: bool
) -> tuple[EvalSummary | None, list[Path]]:
    """The evaluation of this model with the most episodes and its films: by a run of its own, or else by the
    episodes that were played when the training ended."""
    found: list[tuple[int, float, Path, EvalSummary]] = []
    for place in run_dir.parent.iterdir():
        with contextlib.suppress(OSError, StorageError, KeyError):
            summary = read_eval_summary(place)
            if summary is not None and Path(summary.policy["path"]).resolve() == model.resolve():
                written = (place / FILE_NAME).stat().st_mtime
                found.append((summary.overall.episodes, written, place, summary))
    if found:
        _, _, place, summary = max(found, key=lambda one: one[:2])
        films = [place / one.path for one in list_artifacts(place) if one.kind == "video"]
        policy = {**summary.policy, "path": model.name}
        return replace(summary, policy=policy), films
    # These are of the model that the run ended with.
    scores = None if best else _scores_at_end(run_dir)
    if scores is None:
        return None, []
    policy = {
        "path": model.name,
        "algo": algo,
        **{name: known.get(name) for name in ("env_id", "env_kwargs", "gamma")},
        "step": known.get("total_timesteps"),
        "deterministic": True,
        "notes": ["Played when the training ended."],
    }
    return EvalSummary(policy, scores.episodes, scores, (scores,)), []


def _scores_at_end(run_dir: Path) -> EvalScores | None:
    values = RunMetrics.open(run_dir).series(_END_SCORES).values
    if not len(values) or not np.isfinite(values).all():
        return None
    mean, middle = interval([values]), interval([values], iqm)
    nothing: Any = math.nan
    return EvalScores(
        batch=1,
        episodes=len(values),
        mean=mean.value,
        median=float(np.median(values)),
        min=float(values.min()),
        max=float(values.max()),
        std=float(values.std()),
        interval=(mean.low, mean.high),
        iqm=middle.value,
        discounted_mean=nothing,
        mean_length=nothing,
        steps=nothing,
        cut_off=0,
        duration_seconds=nothing,
    )


def _card_beside(model: Path) -> Path:
    return model.with_name(model.name.removesuffix(MODEL_SUFFIX) + CARD_SUFFIX)


def _object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty when there is none."""
    try:
        content = read_json(path)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_torch(model: Path) -> bool:
    """Whether it begins as torch's files do: as a zip archive, or in older versions as a pickle."""
    with model.open("rb") as file:
        return file.read(1) in (b"P", b"\x80")


def _portable(value: Any) -> Any:
    """A path of this machine tells others nothing but its name."""
    return PurePath(value).name if isinstance(value, str) and value.startswith(("/", "~/")) else value


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()
