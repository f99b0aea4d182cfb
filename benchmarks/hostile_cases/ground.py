"""What the hostile checks stand on: folders of their own, the real command line, and what counts as good."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from mosaic.client import Client
from mosaic.client.daemon import find_daemon
from mosaic.contract.channel import open_channel
from mosaic.contract.paths import VarPaths
from mosaic.contract.proto import trainer_pb2_grpc as pb_grpc

BENCHMARKS = Path(__file__).parents[1]
SCRIPTS = BENCHMARKS / "hostile_scripts"
PATIENCE = 300.0
_SHOWN = 400
_TRACES = ("Traceback (most recent call last)", "INTERNAL", "Something unexpected", "Exception ignored")
OBEYED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What a terminal obeys instead of showing it."""


class Bad(Exception):
    """A check found something else than it should have; the text says what was seen."""


@dataclass(frozen=True)
class Check:
    """One thing that must be so."""

    name: str
    look: Callable[[], object]


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    words: Sequence[str]
    code: int
    out: str
    err: str
    seconds: float

    def seen(self) -> str:
        said = (self.err or self.out).strip()
        return f"exit {self.code} after {self.seconds:.0f} s: {said[-_SHOWN:]!r}"


class Ground:
    """The folders and processes of one area; everything that it starts ends with it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.var, self.user = root / "var", root / "user"
        self.user.mkdir(parents=True)
        self._vars = [self.var]
        self._fresh = 0
        self._clients: list[Client] = []
        self._environment: dict[str, str] = {}

    def fresh(self) -> Path:
        """The path of a var folder that is not there yet."""
        self._fresh += 1
        self._vars.append(self.root / f"var{self._fresh}")
        return self._vars[-1]

    def environment(self, var: Path | None = None, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MOSAIC_")}
        return {**kept, "MOSAIC_VAR": str(var or self.var), "HOSTILE_GROUND": str(self.root), **more}

    def mosaic(
        self,
        *words: str,
        var: Path | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        given: str | None = None,
        timeout: float = PATIENCE,
    ) -> Done:
        """Run `mosaic …` to its end, as a user would."""
        # -P as the launcher: a file of the caller's folder never stands in for a module of ours.
        return self.run([sys.executable, "-P", "-m", "mosaic", *words], var, env, cwd, given, timeout)

    def run(
        self,
        command: Sequence[str],
        var: Path | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        given: str | None = None,
        timeout: float = PATIENCE,
    ) -> Done:
        began = time.monotonic()
        try:
            done = subprocess.run(
                command,
                env=self.environment(var, **(env or {})),
                cwd=cwd or self.user,
                input=b"" if given is None else given.encode(),
                capture_output=True,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired as error:
            raise Bad(
                f"no end after {timeout:.0f} s: {_decode(error.stderr or error.stdout or b'')!r}"
            ) from error
        out, err = _decode(done.stdout), _decode(done.stderr)
        return Done(command, done.returncode, out, err, time.monotonic() - began)

    def json(self, *words: str, var: Path | None = None) -> Any:
        """What a command tells with --json."""
        done = good(self.mosaic(*words, "--json", var=var))
        return json.loads(done.out)

    def client(self, var: Path | None = None, **env: str) -> Client:
        """A client of a var folder's daemon, which is started with these variables when none runs."""
        place = var or self.var
        if find_daemon(VarPaths(place)) is None:
            good(self.mosaic("daemon", "start", var=place, env=env))
        self._clients.append(Client.connect(place))
        return self._clients[-1]

    def start(self, *words: str, var: Path | None = None, **env: str) -> str:
        """The id of a run that `train … --detach` has started."""
        done = good(self.mosaic("train", *words, "--detach", "--json", var=var, env=env))
        told = json.loads(done.out)
        return str((told[0] if isinstance(told, list) else told)["run_id"])

    def finish(
        self, *words: str, var: Path | None = None, seconds: float = PATIENCE, **env: str
    ) -> dict[str, Any]:
        """A run that was started and has ended, as `show --json` tells it."""
        run_id = self.start(*words, var=var, **env)
        return self.until(run_id, lambda run: run["status"] == "TERM", var=var, seconds=seconds)

    def until(
        self,
        run_id: str,
        holds: Callable[[dict[str, Any]], bool],
        var: Path | None = None,
        seconds: float = PATIENCE,
    ) -> dict[str, Any]:
        """The run once something holds of it."""
        client, deadline = self.client(var), time.monotonic() + seconds
        while True:
            run = client.get(run_id).as_json()
            if holds(run):
                return run
            if time.monotonic() > deadline:
                raise Bad(
                    f"after {seconds:.0f} s the run is {run['status']} {run['outcome']} ({run['reason']})"
                )
            time.sleep(0.1)

    def daemon_pid(self, var: Path | None = None) -> int | None:
        """The daemon of a var folder, found among the processes: whatever its files say."""
        mark = str(var or self.var)
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if "mosaic.trainer" in words and mark in words and process.status() != psutil.STATUS_ZOMBIE:
                return int(process.pid)
        return None

    def close(self) -> None:
        """End everything that was started here, by its mark."""
        for client in self._clients:
            with suppress(Exception):
                client.close()
        mark = f"HOSTILE_GROUND={self.root}".encode()
        for _ in range(5):
            found = [pid for pid in psutil.pids() if mark in _environment_of(pid)]
            found += [pid for pid in map(self.daemon_pid, self._vars) if pid is not None]
            for pid in found:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if not found:
                break
            time.sleep(0.1)


def search_path(place: Path) -> str:
    """A folder in front of where Python looks for modules."""
    return os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH")]))


def _environment_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _decode(data: bytes) -> str:
    return data.decode(errors="replace")


@contextmanager
def wire(client: Client) -> Iterator[tuple[Any, tuple[tuple[str, str], ...]]]:
    """The stub of a client's daemon, and the credentials of a call."""
    address = find_daemon(client.paths)
    if address is None:
        raise Bad("the daemon is not found")
    with open_channel(address.address) as channel:
        yield pb_grpc.TrainerServiceStub(channel), address.metadata()


def quiet(done: Done) -> Done:
    """No traceback, and nothing that calls an error of ours unexpected."""
    for trace in _TRACES:
        if trace in done.err or trace in done.out:
            raise Bad(f"{trace!r} in {done.seen()}")
    return done


def good(done: Done) -> Done:
    """It ended well, without a traceback."""
    if quiet(done).code != 0:
        raise Bad(done.seen())
    return done


def refused(done: Done, *words: str, codes: Sequence[int] = (2,)) -> Done:
    """One sentence on stderr and nothing else, with the exit code of a user's mistake."""
    quiet(done)
    if done.code not in codes:
        raise Bad(done.seen())
    lines = done.err.strip().splitlines()
    if len(lines) != 1 or not lines[0].startswith("mosaic: ") or len(lines[0]) > 2000:
        raise Bad(f"not one sentence: {done.seen()}")
    if done.out.strip():
        raise Bad(f"something was printed: {done.out[:_SHOWN]!r}")
    missing = [word for word in words if word.lower() not in done.err.lower()]
    if missing:
        raise Bad(f"{missing} is not said: {done.seen()}")
    return done


def answered(done: Done, *words: str) -> Done:
    """An answer or a refusal, but no traceback; a refusal is one sentence."""
    if quiet(done).code == 0:
        return done
    return refused(done, *words, codes=(1, 2))


def expect(holds: object, otherwise: str) -> None:
    if not holds:
        raise Bad(otherwise)


def absent(var: Path) -> None:
    """Nothing was made there."""
    if var.exists():
        raise Bad(f"{var.name} was made, with {[path.name for path in var.iterdir()][:5]}")


def files_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file with its size and time of change."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if not path.is_dir()
    }


def at_terminal(
    ground: Ground,
    *words: str,
    columns: int = 80,
    rows: int = 24,
    var: Path | None = None,
    sizes: Iterable[int] = (),
) -> Done:
    """Run `mosaic …` at a terminal of its own; with `sizes` its width changes while it runs."""
    master, slave = pty.openpty()
    began, seen, waiting = time.monotonic(), b"", list(sizes)
    _resize(master, columns, rows)
    env = {name: value for name, value in ground.environment(var, TERM="xterm").items() if name != "COLUMNS"}
    command = [sys.executable, "-m", "mosaic", *words]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=ground.user)
    os.close(slave)
    try:
        while time.monotonic() - began < PATIENCE:
            if select.select([master], [], [], 0.1)[0]:
                try:
                    seen += os.read(master, 65536)
                except OSError:
                    break
            elif process.poll() is not None:
                break
            if waiting and b"\x1b[" in seen and time.monotonic() - began > 2:
                _resize(master, waiting.pop(0), rows)
                process.send_signal(signal.SIGWINCH)
        process.wait(5)
    except subprocess.TimeoutExpired as error:
        raise Bad(f"no end at a terminal: {_decode(seen[-_SHOWN:])!r}") from error
    finally:
        process.kill()
        process.wait()
        os.close(master)
    return Done(words, process.returncode, _decode(seen), "", time.monotonic() - began)


def _resize(master: int, columns: int, rows: int) -> None:
    import fcntl
    import struct
    import termios

    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def without_own_sequences(text: str) -> str:
    """What was shown at a terminal, without the colours and movements that are ours."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")
