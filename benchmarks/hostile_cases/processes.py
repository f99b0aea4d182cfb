"""Processes that hide from their supervisor, and clocks that jump."""

from __future__ import annotations

import os
import signal
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from hostile_cases.ground import Check, Ground, expect, search_path

_SHELL = "['/bin/sh', '-c', ' '.join(command) + ' &']"
_DEAF = "['/bin/sh', '-c', 'trap \"\" TERM HUP INT; ' + ' '.join(command)]"
HIDES: dict[str, str] = {
    "a child": "subprocess.Popen(command)",
    "a child with an empty environment": "subprocess.Popen(command, env={})",
    "a child in a session of its own": "subprocess.Popen(command, start_new_session=True)",
    "both": "subprocess.Popen(command, env={}, start_new_session=True)",
    "a grandchild whose parent has ended": f"subprocess.run({_SHELL})",
    "a grandchild with an empty environment": f"subprocess.run({_SHELL}, env={{}}, start_new_session=True)",
    "a child that ignores SIGTERM": f"subprocess.Popen({_DEAF}, env={{}})",
    "a daemon that forked twice": "double()",
}
SCRIPT = """import os, subprocess, sys, time
command = ["/bin/sleep", "{seconds}"]

def double():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve(command[0], command, {{}})
        os._exit(0)
    os.wait()

{start}
print("started", flush=True)
{then}
"""
ENDS = ("cancelled", "killed supervisor", "killed training", "script ends", "killed daemon and supervisor")


def checks(ground: Ground) -> Iterator[Check]:
    """Whatever a run started is gone when the run has ended."""
    ground.client()
    for at, (name, start) in enumerate(HIDES.items()):
        for number, end in enumerate(ENDS):
            seconds = f"7{at:02d}{number:02d}"
            yield Check(
                f"{name}: {end}",
                lambda start=start, end=end, seconds=seconds: _gone(ground, start, end, seconds),
            )


def _gone(ground: Ground, start: str, end: str, seconds: str) -> None:
    then = "" if end == "script ends" else "time.sleep(900)"
    (ground.user / "hides.py").write_text(SCRIPT.format(seconds=seconds, start=start, then=then))
    run_id = ground.start("hides.py", "CartPole-v1")
    if end != "script ends":
        deadline = time.monotonic() + 60
        while not _sleepers(seconds):
            expect(time.monotonic() < deadline, "the child did not start")
            time.sleep(0.05)
        run = ground.until(run_id, lambda one: bool(one["training_pid"]) and one["status"] == "EXEC")
        if end == "cancelled":
            ground.client().cancel(run_id)
        elif end == "killed training":
            os.kill(int(run["training_pid"]), signal.SIGKILL)
        else:
            if end == "killed daemon and supervisor":
                os.kill(int(ground.daemon_pid() or 0), signal.SIGKILL)
            os.kill(int(run["supervisor_pid"]), signal.SIGKILL)
    ground.until(run_id, lambda one: one["status"] == "TERM")
    deadline = time.monotonic() + 15
    while left := _sleepers(seconds):
        if time.monotonic() > deadline:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            expect(False, f"{len(left)} of its processes lives on")
        time.sleep(0.1)


def _sleepers(seconds: str) -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if words[-1:] == [seconds] and "sleep" in words[0]:
            found.append(process.pid)
    return found


CLOCK = """
    import os, sys, time
    told, path = time.time, os.environ.get("HOSTILE_CLOCK")

    def jumped():
        # gRPC hands its deadlines on to its compiled half, whose clock does not jump here.
        if sys._getframe(1).f_globals.get("__name__", "").startswith("grpc"):
            return told()
        with open(path) as file:
            return told() + float(file.read() or 0)

    if path:
        time.time = jumped
"""


def clock_checks(ground: Ground) -> Iterator[Check]:
    """The time of day jumps; what a run has worked does not."""
    place, offset = ground.root / "clock", ground.root / "offset"
    place.mkdir()
    (place / "sitecustomize.py").write_text(textwrap.dedent(CLOCK))
    (ground.user / "long.py").write_text("import time\nprint('on', flush=True)\ntime.sleep(900)\n")
    for name, jump in {
        "a day forward": 86_400,
        "a day back": -86_400,
        "ten years forward": 315_360_000,
    }.items():
        for restart in (False, True):
            for minutes in ("30", "0.15"):
                ends = "ends in time" if minutes != "30" else "goes on"
                also = " over a restart of the daemon" if restart else ""
                yield Check(
                    f"{name}{also}: a run {ends}",
                    lambda jump=jump, restart=restart, minutes=minutes: _jumps(
                        ground, place, offset, jump, restart, minutes
                    ),
                )


def _jumps(ground: Ground, place: Path, offset: Path, jump: int, restart: bool, minutes: str) -> None:
    offset.write_text("0")
    env = {"PYTHONPATH": search_path(place), "HOSTILE_CLOCK": str(offset)}
    var = ground.fresh()
    run_id = ground.start("long.py", "CartPole-v1", "--max-minutes", minutes, var=var, **env)
    ground.until(run_id, lambda run: run["status"] == "EXEC", var=var)
    offset.write_text(str(jump))
    if restart:
        os.kill(int(ground.daemon_pid(var) or 0), signal.SIGKILL)
        while ground.daemon_pid(var) is not None:
            time.sleep(0.05)
        ground.client(var, **env)
    try:
        if minutes == "30":
            time.sleep(8)
            run = ground.client(var).get(run_id)
            expect(run.status == "EXEC", f"{run.status} {run.outcome} ({run.reason})")
        else:
            ended = ground.until(run_id, lambda run: run["status"] == "TERM", var=var, seconds=60)
            expect(ended["outcome"] == "timed_out", f"{ended['outcome']} ({ended['reason']})")
    finally:
        ground.mosaic("cancel", "--all", var=var, env=env)
        ground.mosaic("daemon", "stop", var=var, env=env)
