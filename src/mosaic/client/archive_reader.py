"""Archives of runs as others may have made them: read member by member, and refused for the first oddity."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from ulid import ULID

from mosaic.contract.errors import StorageError, UserError, is_text
from mosaic.contract.extras import install_advice
from mosaic.contract.outside import bytes_text, check_plain, parse_json

MANIFEST = "mosaic-runs.json"
FORMAT = 1
ENDINGS = {".tar": "", ".tar.gz": "gz", ".tgz": "gz", ".tar.zst": "zst", ".tzst": "zst"}
"""How an archive may end, and how it is compressed then."""
PARTS = ("config.json", "worker.json", "record.json")
"""What lies beside the folder of a run: its config, what the worker was given, its row and history."""
FOLDER, LOGS = "folder", "logs"
MOST_FILES = 200_000
_MOST_MANIFEST = 60 * 2**20
_MOST_HEADER = 64 * 2**10
"""Bytes of the headers that hold long names: no name is longer."""
_LONGEST_NAME, _LONGEST_PATH = 255, 3000
"""Bytes of a name, and of a path inside of a run: what the var folder's own path leaves."""
_MOST_RATIO = 200
_SMALL = 100_000_000
"""What expands to less than this is harmless, however well it was compressed."""
_BLOCK = 1 << 20
_MAGIC = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst"}
_HEADERS = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME)
_LINKS = (tarfile.SYMTYPE, tarfile.LNKTYPE)


@dataclass(frozen=True)
class ArchivedFile:
    """A file as the manifest tells it."""

    run_id: str
    path: str
    """Inside what the archive holds of its run: `config.json`, `folder/analytics.json`."""
    size: int
    sha256: str

    @property
    def name(self) -> str:
        return f"{self.run_id}/{self.path}"


@dataclass(frozen=True)
class ArchivedRun:
    """A run as the manifest tells it."""

    run_id: str
    var: str
    """The var folder that it was exported from: paths in its files begin with it."""
    links: dict[str, str]
    """Links within the run's folder, and what they lead to."""


class ArchiveReader:
    """The files of an archive, in the order in which they come. Use it as a context."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stack = ExitStack()

    def __enter__(self) -> ArchiveReader:
        try:
            if not self.path.is_file():
                what = "is a folder" if self.path.is_dir() else "does not exist"
                raise UserError(f"{self.path} {what}: name a file that `mosaic export` has made.")
            with self._told():
                raw = self._stack.enter_context(self.path.open("rb"))
                self._compressed = next((kind for magic, kind in _MAGIC.items() if _begins(raw, magic)), "")
                stream = decompressed(raw, self._compressed, self._stack)
                self._tar = self._stack.enter_context(
                    tarfile.open(fileobj=stream, mode="r|", tarinfo=_strict(self.path))
                )
                self._read_manifest()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(file.size for file in self.files)

    def check_room(self, folder: Path) -> None:
        """Raise StorageError when what the archive says it holds has no room in `folder`."""
        free = shutil.disk_usage(folder).free
        if self.size > free:
            raise StorageError(
                f"{self.path.name} holds {bytes_text(self.size)}, and {folder} has room for "
                f"{bytes_text(free)}: make room there first."
            )

    def extract(self, places: Callable[[ArchivedFile], Path], progress: Callable[[int], object]) -> None:
        """Write each file to its place, and compare it with its sum; `progress` is told the bytes so far."""
        done = 0
        with self._told():
            for file in self.files:
                member = self._next()
                if member is None:
                    raise self._refused(f"it is cut short: {file.name} is missing")
                if member.name != file.name:
                    raise self._refused(f"it has '{member.name}' where {file.name} belongs")
                if member.size != file.size:
                    raise self._refused(f"the sizes of {file.name} do not agree")
                source = cast("IO[bytes]", self._tar.extractfile(member))
                summed = hashlib.sha256()
                with _written(places(file)) as write:
                    while block := source.read(_BLOCK):
                        summed.update(block)
                        write(block)
                        done += len(block)
                        progress(done)
                if summed.hexdigest() != file.sha256:
                    raise self._refused(f"{file.name} is damaged: its sum is not the one that was noted")
            extra = self._next()
            if extra is not None:
                raise self._refused(f"it has '{extra.name}', which its list does not name")

    def _next(self) -> tarfile.TarInfo | None:
        member = self._tar.next()
        # They would all be kept.
        cast("Any", self._tar).members = []
        return member

    def _read_manifest(self) -> None:
        member = self._next()
        if member is None or member.name != MANIFEST:
            raise UserError(f"{self.path} is not an archive that `mosaic export` has made.")
        if member.size > _MOST_MANIFEST:
            raise self._refused(f"its list is {bytes_text(member.size)} large")
        data = cast("IO[bytes]", self._tar.extractfile(member)).read()
        if len(data) != member.size:
            raise self._refused("it is cut short")
        try:
            told = parse_json(data)
            check_plain(told, "The list of the archive")
            if told["format"] != FORMAT:
                raise self._refused(
                    f"it has format {told['format']!r:.20}, and this release knows {FORMAT}; "
                    "import it with the release that has made it, or a newer one"
                )
            self.runs = [_archived_run(one) for one in told["runs"]]
            known = {run.run_id for run in self.runs}
            self.files = [_archived_file(one) for one in told["files"]]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._refused(f"its list makes no sense ({error})") from error
        names = {file.name for file in self.files}
        if len(known) != len(self.runs) or not known:
            raise self._refused("it has no run, or one of them twice")
        if len(names) != len(self.files):
            raise self._refused("it has two files of one name")
        if len(self.files) > MOST_FILES:
            raise self._refused(f"it has more than {MOST_FILES:,} files")
        for file in self.files:
            if file.run_id not in known:
                raise self._refused(f"{file.name} belongs to none of its runs")
        packed = self.path.stat().st_size
        if self._compressed and self.size > _SMALL and self.size > packed * _MOST_RATIO:
            raise self._refused(f"{bytes_text(packed)} would become {bytes_text(self.size)}")
        if not self._compressed and self.size > packed:
            raise self._refused("it is cut short, or says more than it holds")

    def _refused(self, why: str) -> UserError:
        return UserError(f"{self.path} cannot be imported: {why}.")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Whatever the libraries say of bytes that make no sense, as one sentence."""
        try:
            yield
        except (EOFError, zlib.error) as error:
            raise self._refused("it is damaged or cut short") from error
        except tarfile.ReadError as error:
            if hasattr(self, "files"):
                raise self._refused("it is damaged or cut short") from error
            raise UserError(f"{self.path} is not an archive that `mosaic export` has made.") from error
        except (tarfile.TarError, gzip.BadGzipFile, ValueError, OverflowError) as error:
            raise self._refused(f"it is damaged ({error})") from error
        except OSError as error:
            if error.filename is None and error.errno is None:
                raise self._refused(f"it is damaged ({error})") from error
            raise StorageError(f"{self.path} cannot be read: {error.strerror}.") from error
        except Exception as error:
            # The library of zstd has an error of its own, and need not be there.
            if type(error).__name__ != "ZstdError":
                raise
            raise self._refused("it is damaged or cut short") from error


def _begins(file: IO[bytes], magic: bytes) -> bool:
    found = file.read(len(magic)) == magic
    file.seek(0)
    return found


def decompressed(raw: IO[bytes], kind: str, stack: ExitStack) -> IO[bytes]:
    """What reads the contents of a file that is compressed in this way."""
    if kind == "gz":
        return cast("IO[bytes]", stack.enter_context(gzip.GzipFile(fileobj=raw, mode="rb")))
    if kind == "zst":
        reader = zstandard("to read it").ZstdDecompressor(max_window_size=1 << 27).stream_reader(raw)
        return cast("IO[bytes]", stack.enter_context(reader))
    return raw


def zstandard(purpose: str) -> Any:
    """The library of zstd; a UserError says how to get it."""
    try:
        import zstandard as library
    except ImportError as error:
        raise UserError(
            f"The package 'zstandard' is needed {purpose}: {install_advice('zstandard')}, "
            "or take an archive that ends in .tar.gz."
        ) from error
    return library


@contextmanager
def _written(path: Path) -> Iterator[Callable[[bytes], object]]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Two names that are the same for the file system would be one file.
        with path.open("xb") as file:
            yield file.write
    except OSError as error:
        raise StorageError(f"{path} cannot be written ({error.strerror}): nothing was imported.") from error


def _archived_run(told: Any) -> ArchivedRun:
    run_id, links = str(told["run_id"]), dict(told["links"])
    if str(ULID.from_str(run_id)) != run_id:
        raise ValueError(f"'{run_id:.40}' is not a run id")
    for name, target in links.items():
        _check_inside(name)
        _check_inside(target)
    return ArchivedRun(run_id, str(told["var"]), links)


def _archived_file(told: Any) -> ArchivedFile:
    run_id, _, path = str(told["name"]).partition("/")
    size, summed = told["size"], str(told["sha256"])
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise ValueError(f"the size of '{path:.80}' is {size!r:.20}")
    _check_inside(path)
    first = path.partition("/")[0]
    if path not in PARTS and (first not in (FOLDER, LOGS) or first == path):
        raise ValueError(f"'{path:.80}' is not part of a run")
    return ArchivedFile(run_id, path, size, summed)


def _check_inside(path: Any) -> None:
    """Raise ValueError for a path that could lead out of the folder it belongs to."""
    parts = path.split("/") if isinstance(path, str) else [""]
    if any(part in ("", ".", "..") for part in parts) or PurePosixPath(path).is_absolute():
        raise ValueError(f"'{path!s:.80}' leads outside")
    if "\0" in path or not is_text(path):
        raise ValueError(f"{path!r:.80} is not the name of a file")
    if len(path.encode()) > _LONGEST_PATH or max(len(part.encode()) for part in parts) > _LONGEST_NAME:
        raise ValueError(f"'{path:.80}…' is longer than the name of a file can be")


def _strict(path: Path) -> type[tarfile.TarInfo]:
    """Members that are files and nothing else, with headers that do not fill the memory."""

    class Strict(tarfile.TarInfo):
        def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
            if self.type in _HEADERS:
                if self.size > _MOST_HEADER:
                    raise UserError(f"{path} cannot be imported: a name in it is {self.size:,} bytes long.")
            elif self.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
                kind = (
                    "a link"
                    if self.type in _LINKS
                    else "a folder"
                    if self.isdir()
                    else "a device or the like"
                )
                raise UserError(f"{path} cannot be imported: '{self.name:.80}' in it is {kind}, not a file.")
            made = super()._proc_member(archive)  # type: ignore[misc]
            if made.issparse() or made.size < 0:
                raise UserError(f"{path} cannot be imported: '{made.name:.80}' in it is not a plain file.")
            return cast("tarfile.TarInfo", made)

    return Strict
