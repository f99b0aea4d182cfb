"""Models from the hub: fetched whole or not at all into `var/models/USER/MODEL`, and found there by name."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mosaic.analytics.eval_summary import FILE_NAME as SCORES
from mosaic.contract.atomic import sync_folder, write_json
from mosaic.contract.errors import MosaicError, StorageError, UserError
from mosaic.contract.outside import bytes_text, read_json
from mosaic.contract.paths import VarPaths, make_folder
from mosaic.hub import ABOUT, ALGORITHM, BEST, CARD_SUFFIX, MODEL_SUFFIX, REPLAY
from mosaic.hub.account import Hub, find_token, parse_repo

ORIGIN = "hub.json"
"""Where a pulled model is from and what it is of, beside it."""
MOST_BYTES = 4_000_000_000
_MOST_FILES = 10_000
_MOST_CURVES = 4
_LARGEST_CURVE = 200_000_000
_LEFT_SECONDS = 86_400.0
_NAME = re.compile(r"\w(?:[\w .+-]{0,150}\w)?")
_REPO_NAME = re.compile(r"(?P<env>.+)-(?P<exp>\w+)-seed(?P<seed>\d+)")
_ENV = re.compile(r"[\w./:-]{1,200}")


@dataclass(frozen=True)
class PulledModel:
    """A model from the hub, and what is known of it."""

    repo: str
    revision: str
    """That was asked for; empty for the newest."""
    commit: str
    model: str
    """The name of its file."""
    algo: str | None = None
    env_id: str | None = None
    seed: int | None = None
    step: int | None = None
    mean_return: float | None = None
    """Of the evaluation that came with it."""

    def path(self, var: Path) -> Path:
        """Its file."""
        return folder_of(self.repo, var) / self.model


def folder_of(repo: str, var: Path) -> Path:
    """Where a model from the hub lies."""
    return VarPaths(var).models.joinpath(*repo.split("/"))


def find_model(named: str, var: Path) -> Path | None:
    """The file of the pulled model of that name, USER/MODEL; None when there is none."""
    parts = named.split("/")
    if len(parts) != 2 or not all(_NAME.fullmatch(part) for part in parts):
        return None
    told = read_pulled(folder_of(named, var))
    path = told.path(var) if told is not None else None
    return path if path is not None and path.is_file() else None


def each_model(var: Path) -> Iterator[tuple[PulledModel, Path]]:
    """All pulled models with their files, by name."""
    for folder in sorted(VarPaths(var).models.glob("[!.]*/[!.]*/")):
        told = read_pulled(folder)
        if told is not None and (folder / told.model).is_file():
            yield told, folder / told.model


def read_pulled(folder: Path) -> PulledModel | None:
    """What is known of the model in a folder; None when it is not from the hub."""
    try:
        found = PulledModel(**read_json(folder / ORIGIN))
    except (OSError, ValueError, TypeError):
        return None
    texts = (found.repo, found.revision, found.commit, found.model)
    whole = all(one is None or isinstance(one, int) for one in (found.seed, found.step))
    sound = whole and all(isinstance(one, str) for one in texts) and _NAME.fullmatch(found.model)
    return found if sound else None


def pull(named: str, var: Path, revision: str | None = None) -> PulledModel:
    """Fetch a model with what rebuilds its policy; gives what it is. An earlier one of the name is replaced.

    Nothing of it is run or unpickled here.
    """
    repo = parse_repo(named)
    hub = Hub(find_token())
    with hub.asked(f"The model {repo}"):
        about = hub.api.model_info(repo, revision=revision, files_metadata=True)
    sizes = {one.rfilename: one.size or 0 for one in about.siblings or ()}
    model = _choose_model(repo, sizes)
    wanted = _wanted(sizes, model)
    place = folder_of(repo, var)
    make_folder(place.parent)
    _check_room(place.parent, repo, sum(sizes[name] for name in wanted))
    _remove_leftovers(place.parent)
    staging = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name[:60]}."))
    try:
        for name in wanted:
            with hub.asked(f"The model {repo}"):
                hub.api.hf_hub_download(repo, name, revision=about.sha or revision, local_dir=staging)
        shutil.rmtree(staging / ".cache", ignore_errors=True)
        told = _describe(repo, revision, about, staging, model, place)
        with _writing(place):
            write_json(staging / ORIGIN, asdict(told))
            os.chmod(staging, 0o755)
            _put(staging, place)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return told


def main(named: str, var: str, revision: str = "") -> int:
    """Pull for another process, which gets one JSON line: the model with its `path`, or an `error`."""
    # Who is told to end leaves nothing unfinished.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    told: dict[str, Any]
    try:
        found = pull(named, Path(var), revision or None)
        told = {**asdict(found), "path": str(found.path(Path(var)))}
    except MosaicError as error:
        told = {"error": str(error)}
    print(json.dumps(told))
    return 0


def _remove_leftovers(folder: Path) -> None:
    """What pulls have left that were killed: no pull takes so long."""
    for old in folder.glob(".*/"):
        with contextlib.suppress(OSError):
            if time.time() - old.stat().st_mtime > _LEFT_SECONDS:
                shutil.rmtree(old)


def _choose_model(repo: str, sizes: Mapping[str, int]) -> str:
    """The file of weights; of several the one that the model is called after."""
    if len(sizes) > _MOST_FILES:
        raise UserError(
            f"{repo} has {len(sizes):,} files, so it is not a model of a run: nothing was fetched."
        )
    models = [name for name in sizes if name.endswith(MODEL_SUFFIX) and _NAME.fullmatch(name)]
    if not models:
        raise UserError(
            f"{repo} has no {MODEL_SUFFIX} file: only models in CleanRL's layout can be pulled, such as "
            "cleanrl/CartPole-v1-dqn-seed1."
        )
    named = _REPO_NAME.fullmatch(repo.partition("/")[2])
    whole = [name for name in models if not name.endswith(BEST + MODEL_SUFFIX)] or models
    of_name = [name for name in whole if named and name == named["exp"] + MODEL_SUFFIX]
    if not of_name and len(whole) > 1:
        raise UserError(
            f"{repo} has several models ({', '.join(sorted(whole)[:5])}), and which is meant is not clear."
        )
    return (of_name or whole)[0]


def _wanted(sizes: Mapping[str, int], model: str) -> list[str]:
    """What is fetched: the model and small files of known names beside it; all else stays on the hub."""
    usual = {model.removesuffix(MODEL_SUFFIX) + CARD_SUFFIX, ABOUT, SCORES, "README.md", REPLAY}
    own = [name for name in sizes if _is_algorithm(name)][:1]
    curves = [name for name in sizes if "tfevents" in name and _NAME.fullmatch(name)]
    small = [
        name for name in (*usual, *own, *curves[-_MOST_CURVES:]) if 0 <= sizes.get(name, -1) <= _LARGEST_CURVE
    ]
    return [model, *sorted(small)]


def _is_algorithm(name: str) -> bool:
    folder, _, file = name.partition("/")
    return folder == ALGORITHM and file.endswith(".py") and _NAME.fullmatch(file) is not None


def _check_room(folder: Path, repo: str, size: int) -> None:
    if size > MOST_BYTES:
        raise UserError(
            f"{repo} is {bytes_text(size)}, but at most {bytes_text(MOST_BYTES)} are fetched: nothing was."
        )
    free = shutil.disk_usage(folder).free
    if size > free:
        raise StorageError(
            f"{repo} is {bytes_text(size)}, and {folder} has {bytes_text(free)} left: free some space."
        )


def _describe(
    repo: str, revision: str | None, about: Any, folder: Path, model: str, place: Path
) -> PulledModel:
    """What the model is of: by its card, else by what came with it, its page and its name."""
    card_path = folder / (model.removesuffix(MODEL_SUFFIX) + CARD_SUFFIX)
    card, told = _object(card_path), _object(folder / ABOUT)
    if card:
        _settle(card_path, card, place)
    args = card.get("args") if isinstance(card.get("args"), dict) else {}
    named = _REPO_NAME.fullmatch(repo.partition("/")[2])
    by_name = {"env_id": named["env"], "seed": int(named["seed"])} if named else {}
    known = {**by_name, **_page(about), **told, **card, **(args or {})}
    algo = card.get("algo") or told.get("algo") or model.removesuffix(MODEL_SUFFIX).removesuffix(BEST)
    env_id, seed, step = known.get("env_id"), known.get("seed"), known.get("step")
    scores = _object(folder / SCORES).get("overall")
    mean = scores.get("mean") if isinstance(scores, dict) else None
    return PulledModel(
        repo=repo,
        revision=revision or "",
        commit=str(about.sha or ""),
        model=model,
        algo=str(algo) if _ENV.fullmatch(str(algo)) else None,
        env_id=env_id if isinstance(env_id, str) and _ENV.fullmatch(env_id) else None,
        seed=seed if isinstance(seed, int) and 0 <= seed < 2**32 else None,
        step=step if isinstance(step, int) and 0 <= step < 2**62 else None,
        mean_return=float(mean) if isinstance(mean, int | float) else None,
    )


def _page(about: Any) -> dict[str, Any]:
    """The environment that the metadata of its page names."""
    with contextlib.suppress(AttributeError, LookupError, TypeError):
        (result, *_) = about.card_data.eval_results
        return {"env_id": str(result.dataset_name)}
    return {}


def _settle(path: Path, card: dict[str, Any], place: Path) -> None:
    """Have the card name the algorithm's file where it lies here; whoever plays it is asked for trust."""
    own = card.get("file")
    if not isinstance(own, dict) or not _is_algorithm(str(own.get("path"))):
        # Any other path is one of another machine.
        own = None
    if own is None and "file" not in card:
        return
    card["file"] = own and {**own, "path": str(place / str(own["path"]))}
    path.write_text(json.dumps(card, indent=2) + "\n")


def _object(path: Path) -> dict[str, Any]:
    """The object in a file of somebody's; empty when there is none."""
    try:
        content = read_json(path)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


@contextlib.contextmanager
def _writing(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"{place} cannot be written: {error.strerror}.") from error


def _put(staging: Path, place: Path) -> None:
    """Let what was fetched take its place; what was there before goes."""
    old = None
    if place.exists():
        old = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name[:60]}."))
        os.replace(place, old / "old")
    os.replace(staging, place)
    sync_folder(place.parent)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
