"""Runs as one file that another machine can take in: all that they left, with a sum of each part."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import hashlib
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any, cast

from pydantic import TypeAdapter, ValidationError
from ulid import ULID

from mosaic import __version__
from mosaic.analytics.artifacts import kind_of, list_artifacts
from mosaic.client.archive_files import json_bytes, same_run, translate, translator
from mosaic.client.archive_reader import (
    ENDINGS,
    FOLDER,
    FORMAT,
    LOGS,
    MANIFEST,
    MOST_FILES,
    ArchivedRun,
    ArchiveReader,
    zstandard,
)
from mosaic.client.client import Client
from mosaic.client.records import RunRecord
from mosaic.contract.atomic import sync_folder, write_json
from mosaic.contract.errors import ConflictError, NotFoundError, StorageError, UserError
from mosaic.contract.fsm import Outcome, RunStatus
from mosaic.contract.outside import read_json, sound
from mosaic.contract.paths import StagedRun, VarPaths, make_folder
from mosaic.contract.run_config import validate_train_run_config

Progress = Callable[[int, int, str], object]
"""Told how many bytes of how many are done, and what is being done. What it raises ends the work."""

_BLOCK = 1 << 20
_ROW = (
    *("status", "outcome", "reason", "submitted_at", "started_at", "ended_at", "exit_code", "tags"),
    *("run_name", "worker_type", "priority", "worker", "headline"),
)
"""Of a run's row what is true on every machine."""
_CHANGE = ("status", "outcome", "reason", "at")
_RECORD = TypeAdapter(RunRecord)
_NOT_TOLD: dict[str, Any] = {
    **dict.fromkeys(("supervisor_pid", "training_pid")),
    "run_dir": "",
    "place": 0.0,
    "gpus": [],
    "config": {},
}
"""Of a run's record what is not in its row."""


@dataclass(frozen=True)
class Exported:
    """What an export has made."""

    path: Path
    run_ids: tuple[str, ...]
    files: int
    size: int
    """Bytes of the archive."""


@dataclass(frozen=True)
class Imported:
    """What became of a run of an archive."""

    run_id: str
    archived_id: str
    """Its id in the archive, which differs when it was imported as a new run."""
    new: bool
    """Whether it was not there before."""


@dataclass(frozen=True)
class _Part:
    """A file that goes into an archive: its name there, and where it lies or what is in it."""

    name: str
    source: Path | bytes


def export_runs(
    client: Client,
    run_ids: Sequence[str],
    path: Path,
    checkpoints: bool = True,
    progress: Progress = lambda done, total, what: None,
) -> Exported:
    """Write ended runs into one archive, compressed as its name says: .tar, .tar.gz or .tar.zst.

    Every file is read twice, first for its sum; one that changes meanwhile is noticed. The archive appears
    when it is whole.
    """
    compressed = check_archive_path(path)
    runs = [client.get(run_id) for run_id in dict.fromkeys(run_ids)]
    for run in runs:
        if not run.ended:
            raise ConflictError(
                f"Run {run.run_id} has not ended, and its files still change: "
                f"wait for its end, or cancel it with `mosaic cancel {run.run_id}`."
            )
        if run.started_at and not Path(run.run_dir).is_dir():
            raise ConflictError(
                f"The folder of run {run.run_id} is gone ({run.run_dir}): put it back, or leave the run out."
            )
    parts = [part for run in runs for part in _parts_of(run, client.paths, checkpoints)]
    if len(parts) > MOST_FILES:
        raise UserError(f"These runs have {len(parts):,} files: an archive holds {MOST_FILES:,} at most.")
    told = [_told_of(run, client.paths) for run in runs]
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.") from error
    try:
        with ExitStack() as stack:
            raw = stack.enter_context(os.fdopen(handle, "wb"))
            with _to_disk(path):
                _write(raw, compressed, parts, told, progress)
                raw.flush()
                os.fchmod(raw.fileno(), 0o644)
                os.fsync(raw.fileno())
        Path(temporary).replace(path)
        sync_folder(path.parent)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return Exported(path, tuple(run.run_id for run in runs), len(parts), path.stat().st_size)


@contextlib.contextmanager
def _to_disk(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}.") from error


def check_archive_path(path: Path) -> str:
    """How an archive of this name is compressed; UserError when none can be written there."""
    if not path.parent.is_dir() or path.is_dir():
        why = "it is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise UserError(f"{path} cannot be written: {why}.")
    for ending, kind in sorted(ENDINGS.items(), key=lambda one: -len(one[0])):
        if path.name.lower().endswith(ending) and len(path.name) > len(ending):
            return kind
    raise UserError(f"'{path}' does not end in {', '.join(ENDINGS)}: an archive is one of these.")


def _parts_of(run: RunRecord, paths: VarPaths, checkpoints: bool) -> Iterator[_Part]:
    """The files of a run. The config has no secrets in it: they were set apart when it was submitted."""
    row = {name: getattr(run, name) for name in _ROW}
    changes = [{name: getattr(entry, name) for name in _CHANGE} for entry in run.history]
    yield _Part(f"{run.run_id}/config.json", json_bytes(run.config))
    yield _Part(f"{run.run_id}/record.json", json_bytes({"row": row, "history": changes}))
    if paths.worker_config(run.run_id).is_file():
        yield _Part(f"{run.run_id}/worker.json", paths.worker_config(run.run_id))
    folder, logs = Path(run.run_dir), paths.kept_logs(run.run_id)
    for file in list_artifacts(folder):
        if checkpoints or kind_of(file.path) != "checkpoint":
            source = folder / file.path
            if stat.S_ISREG(source.lstat().st_mode):
                yield _Part(f"{run.run_id}/{FOLDER}/{file.path}", source)
    for name in sorted(os.listdir(logs)) if logs.is_dir() else []:
        if stat.S_ISREG((logs / name).lstat().st_mode):
            yield _Part(f"{run.run_id}/{LOGS}/{name}", logs / name)


def _told_of(run: RunRecord, paths: VarPaths) -> dict[str, Any]:
    """What the list of the archive says of a run: also links that stay within its folder."""
    folder, links = Path(run.run_dir).resolve(), dict[str, str]()
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            link = Path(place, name)
            target = link.resolve() if link.is_symlink() else folder
            if target != folder and target.is_relative_to(folder) and target.exists():
                links[link.relative_to(folder).as_posix()] = target.relative_to(folder).as_posix()
    return {"run_id": run.run_id, "run_name": run.run_name, "var": str(paths.root), "links": links}


def _write(
    raw: IO[bytes],
    compressed: str,
    parts: Sequence[_Part],
    runs: Sequence[Mapping[str, Any]],
    progress: Progress,
) -> None:
    """The list, then every file; bytes depend on nothing but what is in them."""
    total = sum(_size(part) for part in parts)
    done, files = 0, list[dict[str, Any]]()
    for part in parts:
        summed, size = hashlib.sha256(), 0
        with _opened(part) as file:
            while block := file.read(_BLOCK):
                summed.update(block)
                size += len(block)
                progress(done + size, 2 * total, "reads")
        done += size
        files.append({"name": part.name, "size": size, "sha256": summed.hexdigest()})
    listed = json_bytes({"format": FORMAT, "mosaic": __version__, "runs": list(runs), "files": files})
    with ExitStack() as stack:
        stream = _compressing(raw, compressed, stack)
        tar = stack.enter_context(tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT))
        tar.addfile(_member(MANIFEST, len(listed)), BytesIO(listed))
        for part, told in zip(parts, files, strict=True):
            with _opened(part) as file:
                watched = _Watched(file, progress, done, 2 * total)
                try:
                    tar.addfile(_member(part.name, told["size"]), cast("IO[bytes]", watched))
                except OSError as error:
                    if error.errno is not None:
                        raise
                    raise _changed(part) from error
                if watched.summed.hexdigest() != told["sha256"] or file.read(1):
                    raise _changed(part)
            done += told["size"]
            cast("Any", tar).members = []


def _changed(part: _Part) -> ConflictError:
    return ConflictError(f"{part.source!s:.200} has changed while it was exported: export once more.")


class _Watched:
    """A file that is read on, with the sum of what was read of it."""

    def __init__(self, file: IO[bytes], progress: Progress, done: int, total: int) -> None:
        self.summed = hashlib.sha256()
        self._file, self._progress, self._done, self._total = file, progress, done, total

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        self.summed.update(block)
        self._done += len(block)
        self._progress(self._done, self._total, "writes")
        return block


def _opened(part: _Part) -> IO[bytes]:
    return BytesIO(part.source) if isinstance(part.source, bytes) else part.source.open("rb")


def _size(part: _Part) -> int:
    return len(part.source) if isinstance(part.source, bytes) else part.source.stat().st_size


def _member(name: str, size: int) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.size, made.mode = size, 0o644
    return made


def _compressing(raw: IO[bytes], kind: str, stack: ExitStack) -> IO[bytes]:
    if kind == "gz":
        return cast("IO[bytes]", stack.enter_context(gzip.GzipFile("", "wb", 6, raw, mtime=0)))
    if kind == "zst":
        writer = zstandard("to write it").ZstdCompressor(level=10).stream_writer(raw, closefd=False)
        return cast("IO[bytes]", stack.enter_context(writer))
    return raw


def import_archive(
    client: Client,
    path: Path,
    as_new: bool = False,
    progress: Progress = lambda done, total, what: None,
) -> list[Imported]:
    """Take in the runs of an archive: all of them, or none and a sentence that says why.

    Paths in their files lead to the new place. A run that is there already with the same files is left as it
    is; with others it is refused, unless it gets a new id with `as_new`.
    """
    with ArchiveReader(path) as archive, ExitStack() as stack:
        make_folder(client.paths.imports)
        archive.check_room(client.paths.imports)
        ids = {run.run_id: str(ULID()) if as_new else run.run_id for run in archive.runs}
        for new in ids.values():
            if client.paths.staged(new).mark.exists():
                # An import that was interrupted when it had all but told the daemon.
                with contextlib.suppress(UserError, ConflictError):
                    client.adopt(new)
        staged = {old: stack.enter_context(_staged(client.paths, new)) for old, new in ids.items()}
        archive.extract(
            lambda file: staged[file.run_id].folder / file.path,
            lambda done: progress(done, archive.size, "unpacks"),
        )
        for run in archive.runs:
            _settle_in(run, staged[run.run_id], client.paths, ids, path)
        known = {old: _known(client, new) for old, new in ids.items()}
        for old, there in known.items():
            if there is not None and not same_run(staged[old], there):
                raise ConflictError(
                    f"Run {old} already exists with other files than in {path.name}: "
                    "import it with --as-new, which gives it a new id."
                )
        # From here on the daemon brings it to its end, also after a crash.
        os.sync()
        fresh = [old for old, there in known.items() if there is None]
        for old in fresh:
            staged[old].mark.touch()
            sync_folder(staged[old].folder)
        for old in fresh:
            client.adopt(ids[old])
    return [Imported(new, old, old in fresh) for old, new in ids.items()]


@contextlib.contextmanager
def _staged(paths: VarPaths, run_id: str) -> Iterator[StagedRun]:
    """A folder for the files of a run, which is gone afterwards unless it is to be taken in."""
    staged = paths.staged(run_id)
    staged.folder.mkdir(exist_ok=True)
    with staged.lock.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConflictError(f"Run {run_id} is being imported by another process: wait for it.") from None
        for left in staged.folder.iterdir():
            # Of an import that was interrupted.
            if left != staged.lock:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        try:
            yield staged
        finally:
            if not staged.mark.exists():
                shutil.rmtree(staged.folder, ignore_errors=True)


def _known(client: Client, run_id: str) -> RunRecord | None:
    try:
        return client.get(run_id)
    except NotFoundError:
        return None


def _settle_in(
    run: ArchivedRun, staged: StagedRun, paths: VarPaths, ids: Mapping[str, str], archive: Path
) -> None:
    """Make the files of a run those of this place: paths, ids, and a row that an ended run can have."""
    change = translator(run, paths, ids)
    folder = staged.folder / FOLDER
    folder.mkdir(exist_ok=True)
    for place, _, names in os.walk(staged.folder):
        for name in names:
            translate(Path(place, name), change)
    try:
        config = validate_train_run_config(read_json(staged.folder / "config.json"))
        record = _record(read_json(staged.folder / "record.json"), staged.folder.name)
    except ValidationError as error:
        found = error.errors()[0]
        why = f"{'.'.join(map(str, found['loc']))}: {found['msg']}"
        raise UserError(f"{archive} cannot be imported: run {run.run_id} makes no sense ({why}).") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UserError) as error:
        raise UserError(
            f"{archive} cannot be imported: run {run.run_id} makes no sense ({error})."
        ) from error
    write_json(staged.folder / "config.json", config.as_json())
    record["notes"] = config.metadata.ui.get("notes")
    write_json(staged.folder / "record.json", record, mode=0o600)
    for name, target in run.links.items():
        link = folder / name
        # Others than ours could have made a file of that name, or a way through another link.
        if not link.exists() and link.parent.resolve() == link.parent and (folder / target).exists():
            link.symlink_to(os.path.relpath(folder / target, link.parent))


def _record(told: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    """What the daemon keeps beside a run, of one that has ended elsewhere."""
    row = {name: told["row"][name] for name in _ROW}
    if row["status"] != "TERM" or not told["history"]:
        raise ValueError("it has not ended")
    row |= {"run_id": run_id, "request_id": f"imported-{run_id}", "headline": sound(row["headline"])}
    history = [
        {"seq": 0, "run_id": run_id, **{name: change[name] for name in _CHANGE}} for change in told["history"]
    ]
    # All runs of an archive come or none, so nothing may be left that the daemon would refuse.
    _RECORD.validate_python({**_NOT_TOLD, **row, "history": history})
    for one in (row, *history):
        RunStatus(one["status"])
        if one["outcome"] is not None:
            Outcome(one["outcome"])
    return {"format": 1, "row": row, "history": history}
