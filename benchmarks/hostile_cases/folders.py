"""Var folders that are copied, emptied, damaged or filled up, and daemons that are hidden or stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from fault_cases.disks import Tmpfs, try_mount

from hostile_cases.ground import (
    Bad,
    Check,
    Done,
    Ground,
    absent,
    answered,
    expect,
    files_of,
    good,
    quiet,
    refused,
)
from mosaic.contract.paths import VarPaths

LONG = "import time\nprint('on', flush=True)\ntime.sleep(900)\n"


def _prepare(ground: Ground, var: Path | None = None) -> tuple[str, str]:
    """An ended run and one that lives."""
    (ground.user / "quick.py").write_text("print('done')\n")
    (ground.user / "long.py").write_text(LONG)
    ended = str(ground.finish("quick.py", "CartPole-v1", var=var)["run_id"])
    live = ground.start("long.py", "CartPole-v1", var=var)
    ground.until(live, lambda run: run["status"] == "EXEC", var=var)
    return ended, live


def copy_checks(ground: Ground) -> Iterator[Check]:
    """`cp -a A B` while A's daemon runs."""
    ended, live = _prepare(ground)
    pid = ground.daemon_pid()
    for words in (
        *(
            ["runs"],
            ["show", ended],
            ["rm", ended, "--yes"],
            ["rm", "last", "--yes"],
            ["cancel", "--all"],
            ["cancel", live],
        ),
        *(
            ["gc", "--older-than", "0", "--yes"],
            ["tag", ended, "--add", "copied"],
            ["pause", live],
            ["daemon", "stop"],
        ),
        *(["train", "quick.py", "CartPole-v1"], ["queue"], ["daemon", "status"]),
    ):
        yield Check(
            f"in a copy: {' '.join(words)[:30]}",
            lambda words=words: _in_copy(ground, words, ended, live, pid),
        )
    yield Check(
        "a copy of a copy", lambda: _in_copy(ground, ["rm", ended, "--yes"], ended, live, pid, twice=True)
    )
    yield Check("a folder that was moved away under its daemon", lambda: _moved(ground))


def _in_copy(
    ground: Ground, words: list[str], ended: str, live: str, pid: int | None, twice: bool = False
) -> None:
    copy = ground.fresh()
    subprocess.run(["cp", "-a", str(ground.var), str(copy)], check=True)
    if twice:
        again = ground.fresh()
        subprocess.run(["cp", "-a", str(copy), str(again)], check=True)
        copy = again
    before = files_of(VarPaths(ground.var).run(ended).run_dir)
    try:
        quiet(ground.mosaic(*words, var=copy))
        expect(ground.daemon_pid() == pid, "the daemon of the original has ended")
        client = ground.client()
        run, other = client.get(ended), client.get(live)
        expect(
            run.outcome == "completed" and run.tags == [], f"the original's run is {run.outcome}, {run.tags}"
        )
        expect(other.status == "EXEC", f"the original's live run is {other.status} ({other.reason})")
        expect(
            files_of(VarPaths(ground.var).run(ended).run_dir) == before, "files of the original have changed"
        )
    finally:
        quiet(ground.mosaic("daemon", "stop", var=copy))
        shutil.rmtree(copy, ignore_errors=True)


def _moved(ground: Ground) -> None:
    var, elsewhere = ground.fresh(), ground.fresh()
    good(ground.mosaic("daemon", "start", var=var))
    var.rename(elsewhere)
    answered(ground.mosaic("runs", var=elsewhere))
    answered(ground.mosaic("daemon", "stop", var=elsewhere))
    absent(var)


def _truncate(path: Path) -> None:
    path.write_bytes(b"")


def _remove(path: Path) -> None:
    for file in path.parent.glob("trainer.sqlite*"):
        file.unlink()


def _noise(path: Path) -> None:
    path.write_bytes(os.urandom(50_000))


def _damage_page(path: Path) -> None:
    """A page in the middle, and the write-ahead log that could mend it."""
    for name in ("-wal", "-shm"):
        path.with_name(path.name + name).unlink(missing_ok=True)
    data = bytearray(path.read_bytes())
    for start in range(4096, len(data), 4096):
        data[start : start + 64] = os.urandom(64)
    path.write_bytes(data)


def _half(path: Path) -> None:
    for name in ("-wal", "-shm"):
        path.with_name(path.name + name).unlink(missing_ok=True)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _folder(path: Path) -> None:
    _remove(path)
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], None]] = {
    "truncated": _truncate,
    "removed": _remove,
    "noise": _noise,
    "damaged in its pages": _damage_page,
    "cut in half": _half,
}


def database_checks(ground: Ground) -> Iterator[Check]:
    """A database that is lost or damaged while there are runs."""
    for name, damage in DAMAGES.items():
        for alive in (False, True):
            scene = _Scene(ground, damage, alive)
            under = f"{name}{' under a live run' if alive else ''}"
            yield Check(f"{under}: the runs are listed", scene.listed)
            yield Check(f"{under}: their configs and files are there", scene.kept)
            yield Check(f"{under}: what was ended is told as it ended", scene.told)
            if alive:
                yield Check(f"{under}: the live run goes on and is adopted", scene.adopted)
            yield Check(f"{under}: doctor says what it found", scene.doctor)
            yield Check(f"{under}: a new run completes", scene.goes_on)
    yield Check("a folder in place of the database", lambda: _folder_for_database(ground))


class _Scene:
    """One var folder whose database was damaged; made when the first check needs it."""

    def __init__(self, ground: Ground, damage: Callable[[Path], None], alive: bool) -> None:
        self._ground, self._damage, self._alive = ground, damage, alive
        self._var: Path | None = None

    def _made(self) -> Path:
        if self._var is None:
            self._var = ground_var = self._ground.fresh()
            self._ended, self._live = _prepare(self._ground, ground_var)
            if not self._alive:
                good(self._ground.mosaic("cancel", self._live, var=ground_var))
            pid = self._ground.daemon_pid(ground_var)
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
                while self._ground.daemon_pid(ground_var) is not None:
                    time.sleep(0.05)
            self._files = files_of(VarPaths(ground_var).run(self._ended).run_dir)
            self._damage(VarPaths(ground_var).database)
        return self._var

    def listed(self) -> None:
        var = self._made()
        found = {run["run_id"] for run in self._ground.json("runs", "--all", var=var)}
        expect(found == {self._ended, self._live}, f"{len(found)} of 2 runs are listed")

    def kept(self) -> None:
        paths = VarPaths(self._made())
        for run_id in (self._ended, self._live):
            expect(paths.run_config(run_id).exists(), "the config of a run is gone")
        now = files_of(paths.run(self._ended).run_dir)
        expect(self._files.keys() <= now.keys(), f"gone: {sorted(self._files.keys() - now.keys())}")

    def told(self) -> None:
        run = self._ground.json("show", self._ended, var=self._made())
        expect(run["outcome"] == "completed", f"{run['status']} {run['outcome']} ({run['reason']})")

    def adopted(self) -> None:
        run = self._ground.json("show", self._live, var=self._made())
        expect(run["status"] == "EXEC", f"{run['status']} {run['outcome']} ({run['reason']})")
        good(self._ground.mosaic("cancel", self._live, var=self._var))

    def doctor(self) -> None:
        done = quiet(self._ground.mosaic("doctor", var=self._made()))
        expect("database" in done.out.lower(), f"{done.out[-300:]!r}")

    def goes_on(self) -> None:
        run = self._ground.finish("quick.py", "CartPole-v1", var=self._made())
        expect(run["outcome"] == "completed", f"{run['outcome']} ({run['reason']})")
        good(self._ground.mosaic("daemon", "stop", var=self._var))


def _doctor_of_full_disk(ground: Ground, var: Path) -> None:
    done = quiet(ground.mosaic("doctor", var=var))
    disk = next((line for line in done.out.splitlines() if " disk " in line), "")
    expect(done.code == 1 and disk.startswith("✗"), f"exit {done.code}: {disk!r}")


def _folder_for_database(ground: Ground) -> None:
    var = ground.fresh()
    good(ground.mosaic("daemon", "start", var=var))
    good(ground.mosaic("daemon", "stop", var=var))
    _folder(VarPaths(var).database)
    refused(ground.mosaic("train", "ppo", "CartPole-v1", "--detach", var=var), codes=(1, 2))


GARBLED = {
    "removed": None,
    "empty": b"",
    "not JSON": b"{",
    "a list": b"[]",
    "noise": bytes(range(256)),
    "nested 100,000 deep": b"[" * 100_000,
    "without its address": b'{"pid": 1, "version": "0", "token": "x"}',
    "of another process": b'{"address": "127.0.0.1:1", "pid": 1, "version": "0.1.0", "token": "x"}',
    "with wrong kinds": b'{"address": 5, "pid": "x", "version": [], "token": {}}',
}


def daemon_checks(ground: Ground) -> Iterator[Check]:
    """The file of a daemon garbled while it runs, a stopped daemon, a second one."""
    ended, live = _prepare(ground)
    pid = ground.daemon_pid()
    file = VarPaths(ground.var).daemon_file
    right = file.read_bytes()
    for name, content in GARBLED.items():
        for words in (
            ["runs"],
            ["daemon", "status"],
            ["daemon", "stop"],
            ["train", "quick.py", "CartPole-v1", "--detach"],
        ):
            yield Check(
                f"daemon.json {name}: {' '.join(words)[:20]}",
                lambda words=words, content=content: _garbled(ground, file, right, content, words, pid),
            )
    for words in (["runs"], ["daemon", "status"], ["daemon", "stop"], ["show", ended], ["cancel", live]):
        yield Check(
            f"the daemon is stopped by SIGSTOP: {' '.join(words)[:20]}",
            lambda words=words: _stopped(ground, words),
        )
    yield Check("a second daemon says who has the folder", lambda: _second(ground))
    yield Check("the runs are as they were", lambda: _as_before(ground, ended, live))


def _garbled(
    ground: Ground, file: Path, right: bytes, content: bytes | None, words: list[str], pid: int | None
) -> None:
    if ground.daemon_pid() is None:
        good(ground.mosaic("daemon", "start"))
        pid, right = ground.daemon_pid(), file.read_bytes()
    else:
        right, pid = (file.read_bytes() if file.exists() else right), ground.daemon_pid()
    if content is None:
        file.unlink(missing_ok=True)
    else:
        file.write_bytes(content)
    done = answered(ground.mosaic(*words))
    if done.code != 0:
        expect(str(pid) in done.err, f"the pid {pid} is not named: {done.seen()}")
    expect(done.seconds < 20, f"it took {done.seconds:.0f} s: {done.err!r}")
    if "status" in words and done.code == 0:
        expect("no daemon runs" not in done.out.lower(), f"{done.out!r}")
    now = ground.daemon_pid()
    expect("stop" in words or now == pid, f"daemon {pid} became {now}")
    if now is not None and now == pid:
        file.write_bytes(right)


def _stopped(ground: Ground, words: list[str]) -> None:
    if ground.daemon_pid() is None:
        good(ground.mosaic("daemon", "start"))
    pid = ground.daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        done = quiet(ground.mosaic(*words))
        expect(str(pid) in done.err + done.out, f"the pid {pid} is not named: {done.seen()}")
        expect(done.code != 0 or "status" in words, done.seen())
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _second(ground: Ground) -> None:
    if ground.daemon_pid() is None:
        good(ground.mosaic("daemon", "start"))
    pid = ground.daemon_pid()
    done: Done = ground.run([sys.executable, "-m", "mosaic.trainer", "--var", str(ground.var)])
    expect(str(pid) in done.err + done.out, f"the pid {pid} is not named: {done.seen()}")
    expect("Traceback" not in done.err, done.seen())
    expect(ground.daemon_pid() == pid, "the first daemon is gone")


def _as_before(ground: Ground, ended: str, live: str) -> None:
    runs = {run["run_id"]: run for run in ground.json("runs", "--all")}
    expect(runs[ended]["outcome"] == "completed", f"{runs[ended]['outcome']}")
    expect(runs[live]["status"] == "EXEC", f"{runs[live]['status']} ({runs[live]['reason']})")


def disk_checks(ground: Ground) -> Iterator[Check]:
    """A disk that is full while a run lives, with and without a daemon."""
    place = ground.root / "disk"
    place.mkdir()
    if not try_mount(place):
        yield Check(
            "a small disk can be mounted (needs root)", lambda: expect(False, "mount is not allowed here")
        )
        return
    disk, var = Tmpfs(place), place / "var"
    ground._vars.append(var)
    try:
        (ground.user / "beats.py").write_text(
            "import time\nfor n in range(9999):\n    print(n, flush=True)\n    time.sleep(0.2)\n"
        )
        ended, _ = _prepare(ground, var)
        good(ground.mosaic("cancel", "--all", var=var))
        live = ground.start("beats.py", "CartPole-v1", var=var)
        ground.until(live, lambda run: run["status"] == "EXEC", var=var)
        reads = (
            ["runs"],
            ["show", ended],
            ["logs", ended],
            ["queue"],
            ["policies"],
            ["daemon", "status"],
        )
        disk.fill()
        for words in reads:
            yield Check(
                f"full disk: {words[0]} {words[-1][:6]}", lambda words=words: _works(ground, var, words)
            )
        yield Check("full disk: doctor says so", lambda: _doctor_of_full_disk(ground, var))
        yield Check("full disk: the live run lives", lambda: _lives(ground, var, live))
        yield Check("full disk: train says that the disk is full", lambda: _full(ground, var))
        yield Check("full disk: without a daemon: runs", lambda: _without_daemon(ground, var, ["runs"]))
        yield Check(
            "full disk: without a daemon: gc --dry-run",
            lambda: _without_daemon(ground, var, ["gc", "--dry-run", "--older-than", "0"]),
        )
        yield Check("full disk: without a daemon: the run lives", lambda: _lives(ground, var, live))
        yield Check(
            "full disk: without a daemon: rm", lambda: _without_daemon(ground, var, ["rm", ended, "--yes"])
        )
        yield Check("full disk: cancel ends the run", lambda: _cancelled(ground, var, live))
        yield Check("room again: a run completes", lambda: _room(ground, disk, var))
    finally:
        ground.mosaic("cancel", "--all", var=var)
        ground.mosaic("daemon", "stop", var=var)
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _works(ground: Ground, var: Path, words: list[str]) -> None:
    good(ground.mosaic(*words, var=var))


def _lives(ground: Ground, var: Path, live: str) -> None:
    time.sleep(3)
    run = ground.json("show", live, var=var)
    expect(run["status"] == "EXEC", f"{run['status']} {run['outcome']} ({run['reason']})")


def _full(ground: Ground, var: Path) -> None:
    done = refused(ground.mosaic("train", "quick.py", "CartPole-v1", "--detach", var=var), codes=(1, 2))
    expect("space" in done.err or "full" in done.err, done.seen())


def _without_daemon(ground: Ground, var: Path, words: list[str]) -> None:
    pid = ground.daemon_pid(var)
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
        while ground.daemon_pid(var) is not None:
            time.sleep(0.05)
    good(ground.mosaic(*words, var=var))


def _cancelled(ground: Ground, var: Path, live: str) -> None:
    done = good(ground.mosaic("cancel", live, var=var))
    run = ground.json("show", live, var=var)
    expect(
        run["outcome"] == "cancelled", f"{run['status']} {run['outcome']} ({run['reason']}); {done.seen()}"
    )


def _room(ground: Ground, disk: Tmpfs, var: Path) -> None:
    disk.free()
    run = ground.finish("quick.py", "CartPole-v1", var=var)
    expect(run["outcome"] == "completed", f"{run['outcome']} ({run['reason']})")


ROWS = 52_000


def many_checks(ground: Ground) -> Iterator[Check]:
    """52,000 runs, made by copying the row of one."""
    ended, _ = _prepare(ground)
    good(ground.mosaic("cancel", "--all"))
    good(ground.mosaic("daemon", "stop"))
    _multiply(VarPaths(ground.var).database, ended, ROWS)
    for words in (
        *(
            ["runs"],
            ["runs", "--json"],
            ["runs", "--state", "completed"],
            ["runs", "--tag", "nope"],
            ["runs", "--all", "--json"],
        ),
        *(
            ["show", "last"],
            ["show", ended],
            ["queue"],
            ["cancel", "--all"],
            ["gc", "--dry-run"],
            ["policies"],
            ["doctor"],
        ),
        *(
            ["gc", "--dry-run", "--older-than", "0", "--keep", "51990"],
            ["daemon", "status"],
            ["tag", ended, "--add", "found"],
        ),
    ):
        yield Check(f"52,000 runs: {' '.join(words)[:40]}", lambda words=words: _soon(ground, words))
    yield Check("52,000 runs: a new run completes", lambda: _new(ground))
    yield Check("52,000 runs: all are listed", lambda: _all_listed(ground))


def _multiply(database: Path, run_id: str, rows: int) -> None:
    """Copy the row of a run and its history, whatever columns they have."""
    with closing(sqlite3.connect(database)) as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(runs)") if row[1] != "position"]
        chosen = {"run_id": "printf('01A%023d', n)", "request_id": "'many-' || n"}
        values = ", ".join(chosen.get(name, f'"{name}"') for name in names)
        numbers = f"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {rows}) "
        quoted = ", ".join(f'"{name}"' for name in names)
        connection.execute(
            f"{numbers} INSERT INTO runs ({quoted}) SELECT {values} FROM c, runs WHERE run_id = ?", [run_id]
        )
        columns = [row[1] for row in connection.execute("PRAGMA table_info(transitions)") if row[1] != "seq"]
        copied = ", ".join("printf('01A%023d', n)" if name == "run_id" else f'"{name}"' for name in columns)
        quoted = ", ".join(f'"{name}"' for name in columns)
        connection.execute(
            f"{numbers} INSERT INTO transitions ({quoted}) SELECT {copied} FROM c, transitions "
            "WHERE run_id = ? AND status = 'TERM'",
            [run_id],
        )
        connection.commit()


def _soon(ground: Ground, words: list[str]) -> None:
    done = good(ground.mosaic(*words))
    expect(done.seconds < 45, f"it took {done.seconds:.0f} s")


def _new(ground: Ground) -> None:
    run = ground.finish("quick.py", "CartPole-v1")
    expect(run["outcome"] == "completed", f"{run['outcome']} ({run['reason']})")


def _all_listed(ground: Ground) -> None:
    done = good(ground.mosaic("runs", "--all", "--json"))
    found = len(json.loads(done.out))
    if found < ROWS:
        raise Bad(f"{found:,} are listed")
