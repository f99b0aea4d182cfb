"""Files that a run can go on from, with the cards of models: found by name, read without their arrays."""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cleanrl_worker.config.registry import COPY_FOLDER, DEFAULT_ALGO_REGISTRY, AlgorithmFile
from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import MosaicError, NotFoundError, StorageError, UserError
from mosaic.contract.outside import parse_json, read_json
from mosaic.contract.paths import RunPaths, VarPaths, named_path, resolve_var
from mosaic.hub.models import find_model, read_pulled

CARD_FORMAT = 1
MODEL_SUFFIX = ".cleanrl_model"
CARD_SUFFIX = ".policy.json"


@dataclass(frozen=True)
class PolicyCard:
    """What `<exp>.policy.json` says of `<exp>.cleanrl_model`."""

    algo: str
    args: dict[str, Any]
    step: int
    normaliser: dict[str, Any] | None
    """Mean, variance, count and clip of the observations that the policy was trained on, if it was so."""
    file: AlgorithmFile | None = None
    """The user's file that it was trained by, if the algorithm is one."""

    def write(self, model: Path) -> None:
        """Put the card beside a model file, whole or not at all."""
        # An argument may be infinite, which Python's own JSON can say.
        content = {name: value for name, value in asdict(self).items() if name != "file" or value}
        text = json.dumps({"format": CARD_FORMAT, **content}, indent=2)
        write_atomic(card_path(model), f"{text}\n".encode())


def card_path(model: Path) -> Path:
    """Where the card of a model file lies."""
    return model.with_name(model.name.removesuffix(MODEL_SUFFIX) + CARD_SUFFIX)


def read_card(model: Path) -> PolicyCard | None:
    """The card of a model file; None when there is none, as beside files of other people's scripts."""
    path = card_path(model)
    try:
        content = read_json(path)
        if content["format"] != CARD_FORMAT:
            raise StorageError(f"{path} has format {content['format']}, this release knows {CARD_FORMAT}.")
        file = AlgorithmFile.in_json(content)
        card = PolicyCard(content["algo"], content["args"], content["step"], content["normaliser"], file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise _broken(path) from error
    if not (isinstance(card.algo, str) and isinstance(card.args, dict) and isinstance(card.step, int)):
        raise _broken(path)
    return card


def _broken(path: Path) -> StorageError:
    return StorageError(f"{path} is not the card of a policy; delete it to play the model without it.")


FORMAT = 3
BEST = "best.npz"
CHECKPOINT_SUFFIX = ".npz"
_STEP_NAME = re.compile(r"step-\d+\.npz")
_CHUNK_NAME = re.compile(r"replay/chunk-\d+\.npz")
_SHAPE = "__shape__.npy"
_ATTEMPTS = 5
_PICKLE = b"\x80"
_TABLES = frozenset(bytes([first]) for first in (*range(0x81, 0x90), 0xDE, 0xDF))


@dataclass(frozen=True)
class Origin:
    """What a run goes on from: a full checkpoint, or the weights of a model, which have no step."""

    path: Path
    algo: str | None
    """What a config calls its algorithm: a name, or the path of a file of the user's."""
    args: Mapping[str, Any]
    step: int | None
    trained: int | None = None
    """For how many steps it was trained, also a model, as far as it says so."""
    chunks: tuple[str, ...] = ()
    """Files beside a checkpoint that belong to it, by their names relative to its folder."""
    folder: str = ""
    """The results folder of the run that wrote it."""
    score: float | None = None
    """How good the model was, for the best checkpoint of a run."""
    stage: int | None = None
    """The stage of a curriculum in which it was that good."""
    normaliser: dict[str, Any] | None = None
    """Statistics of the observations, as they lie beside a model."""
    told: bool = True
    """Whether it says itself what it is of; the file of somebody's script does not."""
    pulled: bool = False
    """Whether it is from the hub, where its page says that."""
    file: AlgorithmFile | None = None
    """The user's file that it was trained by."""
    name: str | None = None
    """What the algorithm calls itself."""


def locate(named: str, folder: Path) -> Path:
    """The file or folder that `named` means: a path, counted from `folder`, or the id of a run."""
    path = named_path(named, folder)
    if path.exists():
        return Path(os.path.abspath(path))
    var = resolve_var()
    found = find_run(named, VarPaths(var).runs) or find_model(named, var)
    if found is None:
        raise NotFoundError(
            f"There is no checkpoint '{named}': name a file of a run's checkpoints folder, "
            f"a {MODEL_SUFFIX} file, a run or a pulled model."
        )
    return found


def find_run(name: str, runs: Path) -> Path | None:
    """The folder of the run whose id begins with `name`; UserError when that is so of several."""
    found = [run for run in runs.glob("*/") if run.name.startswith(name.upper())] if name.isalnum() else []
    if len(found) > 1:
        raise UserError(f"'{name}' is the beginning of {len(found)} run ids: give more of it.")
    return found[0] if found else None


def find_origin(place: Path) -> Origin:
    """What a file holds, or the newest full checkpoint of a run's folder."""
    for _ in range(_ATTEMPTS):
        try:
            return check_whole(read_origin(newest_checkpoint(place) if place.is_dir() else place))
        except NotFoundError:
            # A run that still trains removes its older checkpoints.
            if not place.is_dir():
                raise
    raise StorageError(f"The checkpoints in {place} change too fast to be read: wait, or pause that run.")


def newest_checkpoint(folder: Path) -> Path:
    """The newest full checkpoint in a run's folder, or in its checkpoints folder."""
    for place in (RunPaths(folder).checkpoints, folder):
        found = list_checkpoints(place)
        if found:
            return found[-1]
    raise UserError(f"There is no full checkpoint in {folder}: name a {MODEL_SUFFIX} file, or another run.")


def list_checkpoints(folder: Path) -> list[Path]:
    """The full checkpoints in a folder, oldest first."""
    return sorted(path for path in folder.glob("step-*.npz") if _STEP_NAME.fullmatch(path.name))


def read_origin(path: Path) -> Origin:
    """What a file tells of itself without its arrays; one that is broken or not ours is refused."""
    if not path.is_file():
        raise NotFoundError(f"There is no checkpoint {path}.")
    if path.suffix == MODEL_SUFFIX:
        return _read_model(path)
    with _open(path) as file:
        if _SHAPE not in file.namelist():
            raise StorageError(f"{path} is not a MOSAIC checkpoint.")
        data = file.read(_SHAPE)
        # Before the values of an array come magic, version, the length of a description, and that.
        end = 10 if data[6] == 1 else 12
        return _header(path, parse_json(data[end + int.from_bytes(data[8:end], "little") :]))


def check_whole(origin: Origin) -> Origin:
    """The same, once every byte of it was read and all files that belong to it were seen."""
    if origin.step is None:
        _check_model(origin.path)
    else:
        with _open(origin.path) as file:
            broken = file.testzip()
        if broken is not None:
            raise StorageError(f"The checkpoint {origin.path} is broken: {broken} in it cannot be read.")
    for name in origin.chunks:
        if not (origin.path.parent / name).is_file():
            if not origin.path.is_file():
                raise NotFoundError(f"{origin.path} has been removed meanwhile.")
            raise StorageError(
                f"The checkpoint {origin.path} needs {origin.path.parent / name}, which is not there."
            )
    return origin


def holds_flax(path: Path) -> bool:
    """Whether a model file begins as those of Flax do: with a table in msgpack."""
    try:
        with path.open("rb") as file:
            return file.read(1) in _TABLES
    except OSError:
        return False


def _check_model(path: Path) -> None:
    """Refuse a file that neither torch nor Flax can have written, or that has lost a part of itself."""
    if holds_flax(path):
        # Only with Flax is there anything that reads the whole of it.
        return
    with path.open("rb") as file:
        if file.read(1) == _PICKLE:
            # As older versions of torch wrote them, which only torch can check.
            return
    try:
        with zipfile.ZipFile(path) as archive:
            whole = archive.testzip() is None
    except Exception:
        # A broken zip file can fail in any way.
        whole = False
    if not whole:
        raise UserError(f"{path} is not a PyTorch file of plain weights, so it cannot be loaded.")


@contextmanager
def _open(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as file:
            yield file
    except MosaicError:
        raise
    except FileNotFoundError as error:
        raise NotFoundError(f"There is no checkpoint {path}.") from error
    except OSError as error:
        raise StorageError(f"The checkpoint {path} cannot be read: {error.strerror}.") from error
    except Exception as error:
        # A broken zip file can fail in any way.
        raise StorageError(f"{path} is not a checkpoint, or is a broken one: {error}.") from error


def _header(path: Path, content: Any) -> Origin:
    known = isinstance(content, dict) and content.get("format")
    if known and content["format"] != FORMAT:
        if isinstance(known, int) and known < FORMAT:
            raise StorageError(
                f"The checkpoint {path} is from an older release (format {known}, this one writes {FORMAT}): "
                f"continue from the run's {MODEL_SUFFIX} file, or finish the run with that release."
            )
        raise StorageError(f"The checkpoint {path} has format {known}, this release knows {FORMAT}.")
    try:
        chunks = [name for part in content["parts"].values() for name in part.get("chunks", ())]
        file = AlgorithmFile.in_json(content)
        found = Origin(
            path=path,
            algo=algorithm_of(path, str(content["algo"]), file),
            args={**content["args"]},
            step=int(content["step"]),
            trained=int(content["step"]),
            chunks=tuple(name for name in chunks if _CHUNK_NAME.fullmatch(name)),
            folder=Path(str(content["folder"])).name,
            score=content.get("score"),
            stage=content.get("stage"),
            file=file,
            name=str(content["algo"]),
        )
        int(found.args["total_timesteps"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StorageError(f"{path} is not a MOSAIC checkpoint.") from error
    return found


def _read_foreign(path: Path) -> Origin:
    """A model without a card, as somebody's script writes it: a run that wrote it knows what it is of."""
    pulled = read_pulled(path.parent)
    if pulled is not None and pulled.model == path.name:
        known = {name: getattr(pulled, name) for name in ("env_id", "seed")}
        args = {name: value for name, value in known.items() if value is not None}
        algo = pulled.algo if pulled.algo in DEFAULT_ALGO_REGISTRY else None
        return Origin(path, algo, args, None, pulled.step, told=False, pulled=True, name=algo)
    run = RunPaths(path.parents[2]) if path.parent.parent.name == "runs" else None
    try:
        told = read_json(run.manifest) if run is not None else {}
    except (OSError, ValueError):
        told = {}
    if not isinstance(told, dict) or not told.get("env_id"):
        return Origin(path, None, {}, None, told=False)
    # Its experiment is called after the algorithm, or the script is: `ppo.py`, `cleanrl.ppo`.
    script = str(told.get("algo")).removesuffix(".py")
    names = (path.name.removesuffix(MODEL_SUFFIX), script.rpartition("/")[2], script.rpartition(".")[2])
    algo = next((name for name in names if name in DEFAULT_ALGO_REGISTRY), None)
    known = {name: told[name] for name in ("env_id", "seed") if told.get(name) is not None}
    if told.get("total_timesteps"):
        known["total_timesteps"] = told["total_timesteps"]
    return Origin(path, algo, known, None, told=False, name=algo)


def _read_model(path: Path) -> Origin:
    card = read_card(path)
    if card is None:
        return _read_foreign(path)
    algo = algorithm_of(path, card.algo, card.file)
    return Origin(
        path, algo, card.args, None, card.step, normaliser=card.normaliser, file=card.file, name=card.algo
    )


def algorithm_of(path: Path, name: str, file: AlgorithmFile | None) -> str:
    """What a config calls the algorithm: of a file where it is, or else where its run has kept a copy."""
    if file is None or Path(file.path).is_file():
        return name if file is None else file.path
    # A checkpoint lies two folders below its run, a model three.
    copies = [folder / COPY_FOLDER / Path(file.path).name for folder in path.absolute().parents[1:3]]
    return str(next((copy for copy in copies if copy.is_file()), file.path))


def take_over(origin: Origin, own: Path) -> Path:
    """Where a checkpoint lies in a run's own folder, once it is there with all its files."""
    if origin.path.parent.absolute() == own.absolute():
        return origin.path
    for name in origin.chunks:
        link_or_copy(origin.path.parent / name, own / name)
    path = own / f"step-{origin.step:012d}.npz"
    link_or_copy(origin.path, path)
    return path


def link_or_copy(source: Path, target: Path) -> None:
    """The same file under another name; a copy where that cannot be. Such files are never changed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.link")
    temporary.unlink(missing_ok=True)
    try:
        os.link(source, temporary)
    except FileNotFoundError as error:
        raise NotFoundError(f"{source} has been removed meanwhile.") from error
    except OSError:
        try:
            shutil.copyfile(source, temporary)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise StorageError(
                f"{source} cannot be copied to {target.parent}: {error.strerror}; free some space."
            ) from error
    os.replace(temporary, target)
    # Renaming a name of a file to another name of the same file does nothing.
    temporary.unlink(missing_ok=True)
