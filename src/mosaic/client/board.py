"""One TensorBoard for any number of runs, on loopback, in a process of its own.

`python -m mosaic.client.board` is that process. Its parent writes lines of JSON to it (`Wish`) and reads its
answers (`Status`). It ends with its standard input, so it never outlives a parent, also one that was killed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import queue
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import IO, Any

from mosaic.analytics.event_files.reader import find_event_files
from mosaic.client.records import RunRecord
from mosaic.contract import words
from mosaic.contract.errors import MosaicError, UserError
from mosaic.contract.extras import install_advice
from mosaic.contract.paths import RunPaths
from mosaic.contract.process import ProcessIdentity

HOST = "127.0.0.1"
_PREFIX = "mosaic-tensorboard-"
_RELOAD_SECONDS = 1
"""So often TensorBoard looks for news; it reads only what is new."""
_SETTLE_SECONDS = 4.0
_LOOK_SECONDS, _CHECK_SECONDS = 2.0, 0.25
"""So often the folders of the runs are looked at, and TensorBoard is asked while it does not list all."""


@dataclass(frozen=True)
class Wish:
    """The folder of each run that is to be served, by its name. What is not `held` may end when idle."""

    runs: Mapping[str, str]
    held: bool = True

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"


@dataclass(frozen=True)
class Status:
    """Where the server is, and by name which folders of event files it should show and does show."""

    address: str = ""
    runs: tuple[str, ...] = ()
    """The names of the last wish that was read."""
    wanted: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    ready: bool = False
    """Whether a page that is opened now shows all there is, and nothing of runs that were served before."""
    error: str = ""

    @classmethod
    def read(cls, line: bytes) -> Status:
        """What the process has written; an error where that is something else."""
        try:
            told = json.loads(line)
            runs, wanted, listed = (tuple(told[name]) for name in ("runs", "wanted", "listed"))
            return cls(told["address"], runs, wanted, listed, told["ready"], told["error"])
        except (ValueError, KeyError, TypeError):
            return cls(error="TensorBoard could not be started: its process answered with something else.")


def command(port: int | None = None, idle_seconds: float = 0) -> list[str]:
    """What starts the process; it takes a free port where none is given, and 0 seconds mean that it stays."""
    return [sys.executable, "-P", "-m", __name__, f"--port={port or 0}", f"--idle={idle_seconds}"]


def choose_port(wanted: int | None, usual: int) -> int:
    """The port that was asked for, else the usual one, else any that is free."""
    for port in [wanted] if wanted else [usual, 0]:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except (OSError, OverflowError):
                continue
            return int(probe.getsockname()[1])
    raise UserError(f"Port {wanted} cannot be used, it may be in use: leave --port out to get a free one.")


def names_for(runs: Sequence[RunRecord]) -> dict[str, str]:
    """The folder of each run, by a name that says which it is beside the others."""
    ids = words.unique_prefixes([run.run_id for run in runs])
    found = {}
    for run in runs:
        parts = [run.run_name.replace("/", "-"), f"s{run.worker_config.get('seed')}", ids[run.run_id]]
        found["_".join(parts)] = run.run_dir
    return found


def sources_of(name: str, run_dir: Path) -> dict[str, Path]:
    """The folders of event files of a run: the first has the run's name, what lies beside it a longer one."""
    curves = RunPaths(run_dir).evaluation_curves.name
    found: dict[str, Path] = {}
    for source in sorted(
        find_event_files(run_dir), key=lambda source: PurePath(source).parts[:1] == (curves,)
    ):
        last = "eval" if source == curves else PurePath(source).name
        label, number = f"{name}-{last}" if found else name, 2
        while label in found:
            label, number = f"{name}-{last}-{number}", number + 1
        found[label] = run_dir / source
    return found


class LinkFolder:
    """A folder with a link to each source, which TensorBoard watches."""

    def __init__(self) -> None:
        remove_abandoned()
        me = ProcessIdentity.of(os.getpid())
        assert me is not None
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{me.pid}-{me.start}-"))

    def show(self, sources: Mapping[str, Path]) -> None:
        """Have links to these and to nothing else."""
        for link in self.path.iterdir():
            if link.name not in sources or link.readlink() != sources[link.name]:
                link.unlink()
        for name, folder in sources.items():
            with contextlib.suppress(FileExistsError):
                (self.path / name).symlink_to(folder, target_is_directory=True)

    def remove(self) -> None:
        # Links are removed as such: nothing behind them is touched.
        shutil.rmtree(self.path, ignore_errors=True)


def remove_abandoned() -> None:
    """Remove the folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*-*"):
        pid, start, *_ = folder.name.removeprefix(_PREFIX).split("-")
        with contextlib.suppress(OSError, ValueError):
            mine = folder.lstat().st_uid == os.getuid() and not folder.is_symlink()
            if mine and not ProcessIdentity(int(pid), int(start)).alive():
                shutil.rmtree(folder, ignore_errors=True)


class _Server:
    """TensorBoard itself. It notes when it was last asked for something: nothing else tells of a browser."""

    def __init__(self, folder: Path, port: int) -> None:
        from tensorboard import default, program
        from werkzeug.test import Client

        self.asked = time.monotonic()
        board = program.TensorBoard(plugins=default.get_plugins(), server_class=self._counting)
        board.configure(
            logdir=str(folder), host=HOST, port=port, reload_interval=_RELOAD_SECONDS, window_title="MOSAIC"
        )
        self.address = str(board.launch())
        self._client = Client(self._app)

    def _counting(self, app: Any, flags: Any) -> Any:
        from tensorboard.program import WerkzeugServer

        self._app = app

        def counted(environ: Any, start_response: Any) -> Any:
            self.asked = time.monotonic()
            return app(environ, start_response)

        return WerkzeugServer(counted, flags)

    def listed(self) -> tuple[str, ...]:
        """The names that its page shows."""
        return tuple(sorted(self._client.get("/data/runs").json or ()))


class _Process:
    """Serves what the last line says, until there are no more lines or nobody has looked for long."""

    def __init__(self, links: LinkFolder, out: IO[str], idle_seconds: float) -> None:
        self._links, self._out, self._idle_seconds = links, out, idle_seconds
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._wish = Wish({})
        self._status = Status()

    def run(self, port: int) -> None:
        threading.Thread(target=self._read, daemon=True).start()
        server = _Server(self._links.path, port)
        self._tell(Status(server.address))
        looked = linked = -math.inf
        wanted: tuple[str, ...] = ()
        while True:
            waits = _CHECK_SECONDS if self._status.listed != wanted else _LOOK_SECONDS
            with contextlib.suppress(queue.Empty):
                line = self._lines.get(timeout=waits)
                if line is None:
                    return
                self._wish, looked, server.asked = Wish(**json.loads(line)), -math.inf, time.monotonic()
            now = time.monotonic()
            if now - looked >= _LOOK_SECONDS:
                before, looked, wanted = wanted, now, self._link()
                linked = linked if wanted == before else now
            listed = server.listed()
            # A folder may stay unlisted, as it holds nothing yet.
            settled = listed == wanted or now - linked > _SETTLE_SECONDS
            ready = bool(listed) and settled and set(listed) <= set(wanted)
            self._tell(Status(server.address, tuple(self._wish.runs), wanted, listed, ready))
            if self._idle_seconds and not self._wish.held and now - server.asked > self._idle_seconds:
                return

    def _read(self) -> None:
        for line in sys.stdin:
            self._lines.put(line)
        self._lines.put(None)

    def _link(self) -> tuple[str, ...]:
        sources: dict[str, Path] = {}
        for name, folder in self._wish.runs.items():
            sources |= sources_of(name, Path(folder))
        self._links.show(sources)
        return tuple(sorted(sources))

    def _tell(self, status: Status) -> None:
        if status != self._status:
            self._status = status
            tell(status, self._out)


def tell(status: Status, out: IO[str]) -> None:
    # Whoever should read it may be gone: then the end of the input says so too.
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(asdict(status)), file=out, flush=True)


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--idle", type=float, default=0)
    args = parser.parse_args(None if arguments is None else list(arguments))
    # Ctrl-C in a terminal is for the parent, which closes the input then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # What the libraries print must not come between the lines that the parent reads.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    links = LinkFolder()
    try:
        _Process(links, out, args.idle).run(args.port)
    except Exception as error:
        tell(Status(error=_sentence(error)), out)
        return 1
    finally:
        links.remove()
    return 0


def _sentence(error: Exception) -> str:
    if isinstance(error, MosaicError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return f"TensorBoard needs {error.name}, which is not installed: {install_advice(str(error.name))}."
    return f"TensorBoard has ended by itself: {type(error).__name__}: {error}"


if __name__ == "__main__":
    sys.exit(main())
