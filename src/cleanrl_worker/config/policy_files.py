"""Every policy that lies in the var folder: found by name, and told of by cards and headers alone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from cleanrl_worker.config.checkpoint_files import (
    BEST,
    CHECKPOINT_SUFFIX,
    MODEL_SUFFIX,
    find_run,
    list_checkpoints,
    read_origin,
)
from mosaic.contract.capabilities import PolicyFacts
from mosaic.contract.errors import MosaicError, NotFoundError
from mosaic.contract.events import EventKind, tail_events
from mosaic.contract.outside import read_json
from mosaic.contract.paths import RunPaths, VarPaths, named_path, resolve_var
from mosaic.hub.models import each_model, find_model, read_pulled

LAST = "last"
_WHICH = ("newest", "best")
_BEST_MODEL = f".best{MODEL_SUFFIX}"


def find_policy(name: str, folder: Path, var: Path | None = None) -> PolicyFacts:
    """The policy that `name` means; a UserError says why there is none.

    It is a file, counted from `folder`, a model that was pulled, or a run: by its folder, by its id or the
    beginning of one, or by `last`. Of a run the newest policy is taken, or with `:best` after its name the
    best one.
    """
    run, _, which = name.rpartition(":")
    name, which = (run, which) if run and which in _WHICH else (name, "newest")
    path = named_path(name, folder)
    if path.is_file():
        return _describe(Path(os.path.abspath(path)))
    var = var or resolve_var()
    pulled = None if path.is_dir() else find_model(name, var)
    if pulled is not None:
        return _describe_pulled(pulled)
    place = path if path.is_dir() else _run_of(name, VarPaths(var).runs)
    found = policies_in(Path(os.path.abspath(place)))
    if which == "best":
        found = [policy for policy in found if policy.best]
    if not found:
        wanted = "best policy" if which == "best" else "policy"
        raise NotFoundError(
            f"There is no {wanted} in {place}: wait for a checkpoint, or name a {MODEL_SUFFIX} file or "
            "another run."
        )
    return min(found, key=_order)


def each_policy(var: Path, run: str = "") -> Iterator[PolicyFacts]:
    """All policies of all runs whose id begins so; the newest run comes first, and of each the last step.

    Models that were pulled belong to no run, and come last.
    """
    for folder in _newest_first(VarPaths(var).runs):
        if folder.name.startswith(run):
            yield from sorted(policies_in(folder), key=_order)
    for _, path in each_model(var) if not run else ():
        yield _describe_pulled(path)


def policies_in(folder: Path) -> list[PolicyFacts]:
    """The policies in a run's folder, or in one of the folders of a run that hold them."""
    found = []
    for path in _files(folder):
        # A run that still trains removes its older checkpoints.
        with contextlib.suppress(FileNotFoundError):
            found.append(_describe(path))
    if all(Path(policy.path).parent == folder for policy in found):
        return found
    paths = RunPaths(folder)
    last = max(policy.step or 0 for policy in found)
    earned = _mean_return(paths)
    best = {policy.step: policy.mean_return for policy in found if policy.mean_return is not None}
    return [
        replace(
            policy,
            run_id=folder.name,
            mean_return=best.get(policy.step, earned if policy.step == last else None),
        )
        for policy in found
    ]


def _order(policy: PolicyFacts) -> tuple[int, bool, bool]:
    """The last step first; of one step the model that the run ended with."""
    return -(policy.step or 0), not policy.is_model, policy.best


def _run_of(name: str, runs: Path) -> Path:
    if name.lower() == LAST:
        # An evaluation is a run too, but makes no policy.
        found = next((run for run in _newest_first(runs) if next(_files(run), None)), None)
        if found is None:
            raise NotFoundError(
                "There is no run with a policy yet: `mosaic train ppo CartPole-v1` makes one."
            )
        return found
    found = find_run(name, runs)
    if found is None:
        raise NotFoundError(
            f"There is no policy '{name}': name a {MODEL_SUFFIX} file, a full checkpoint, a run or a pulled "
            "model; `mosaic policies` lists all."
        )
    return found


def _newest_first(runs: Path) -> list[Path]:
    """The folders of all runs."""
    return sorted(runs.iterdir(), reverse=True) if runs.is_dir() else []


def _files(folder: Path) -> Iterator[Path]:
    for place in (folder, RunPaths(folder).checkpoints):
        yield from list_checkpoints(place)
        if (place / BEST).is_file():
            yield place / BEST
    yield from sorted(folder.glob(f"*{MODEL_SUFFIX}"))
    yield from sorted(RunPaths(folder).event_files.glob(f"*/*{MODEL_SUFFIX}"))


def _describe(path: Path) -> PolicyFacts:
    """What a file tells of itself; of one that does not read, its place and size."""
    about = path.stat()
    facts = PolicyFacts(
        path=str(path),
        is_model=path.suffix != CHECKPOINT_SUFFIX,
        best=path.name.endswith(_BEST_MODEL) or path.name == BEST,
        size=about.st_size,
        modified=about.st_mtime,
    )
    with contextlib.suppress(MosaicError):
        found = read_origin(path)
        facts = replace(facts, algo=found.algo, step=found.trained, mean_return=found.score)
        return replace(facts, env_id=found.args.get("env_id"), seed=found.args.get("seed"))
    return facts


def _describe_pulled(path: Path) -> PolicyFacts:
    """The same of a model from the hub, with the name that it has there."""
    facts, told = _describe(path), read_pulled(path.parent)
    if told is None:
        return facts
    return replace(facts, repo=told.repo, step=facts.step or told.step, mean_return=told.mean_return)


def _mean_return(paths: RunPaths) -> float | None:
    """What the run's last episodes earned: by its manifest, or while it trains by its last heartbeat."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return _number(read_json(paths.manifest)["headline"]["mean_return"])
    with contextlib.suppress(OSError):
        for event in reversed(tail_events(paths.events)):
            if event.event == EventKind.HEARTBEAT and "mean_return" in event.payload:
                return _number(event.payload["mean_return"])
    return None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None
