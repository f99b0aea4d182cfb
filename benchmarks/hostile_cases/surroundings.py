"""A strange environment: variables, ports, paths, streams and terminals."""

from __future__ import annotations

import itertools
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from hostile_cases.ground import (
    Check,
    Done,
    Ground,
    answered,
    at_terminal,
    expect,
    good,
    quiet,
    refused,
    without_own_sequences,
)

VARIABLES: dict[str, tuple[str, ...]] = {
    "MOSAIC_CPUS": ("abc", "-1", "0", "1.5", "nan", "1e3", "9" * 30, "1,2", "\udcff"),
    "MOSAIC_GPUS": ("a,b", "-1", "1,,2", ",", "nan", "0.5", "9" * 30),
    "MOSAIC_GRACE_SECONDS": ("abc", "-1", "nan", "inf", "1,5"),
}
PORTS = ("70000", "0", "-1", "abc", "65536", "1.5", "", "9" * 30)


def checks(ground: Ground) -> Iterator[Check]:
    for name, values in VARIABLES.items():
        for value in values:
            yield Check(
                f"{name}={value[:20]} daemon start",
                lambda name=name, value=value: _variable(ground, name, value, "daemon", "start"),
            )
            words = ("train", "quick.py", "CartPole-v1", "--detach")
            yield Check(
                f"{name}={value[:20]} train",
                lambda name=name, value=value, words=words: _variable(ground, name, value, *words),
            )
        yield Check(f"{name} is empty", lambda name=name: _empty(ground, name))
    for port in PORTS:
        yield Check(f"daemon start --port {port[:20]!r}", lambda port=port: _port(ground, port))
        yield Check(
            f"tensorboard --port {port[:20]!r}",
            lambda port=port: refused(ground.mosaic("tensorboard", "last", f"--port={port}"), codes=(1, 2)),
        )
    yield Check("daemon start --port in use", lambda: _port_in_use(ground))
    yield from _path_checks(ground)
    yield from _stream_checks(ground)


def _variable(ground: Ground, name: str, value: str, *words: str) -> None:
    var = ground.fresh()
    (ground.user / "quick.py").write_text("print('done')\n")
    refused(ground.mosaic(*words, var=var, env={name: value}), name)
    expect(ground.daemon_pid(var) is None, "a daemon was left")


def _empty(ground: Ground, name: str) -> None:
    var = ground.fresh()
    answered(ground.mosaic("daemon", "start", var=var, env={name: ""}))
    answered(ground.mosaic("daemon", "stop", var=var))


def _port(ground: Ground, port: str) -> None:
    var = ground.fresh()
    done = ground.mosaic("daemon", "start", f"--port={port}", var=var)
    if port == "0" and answered(done).code == 0:
        # Any port that is free: then it serves.
        good(ground.mosaic("runs", var=var))
        good(ground.mosaic("daemon", "stop", var=var))
        return
    refused(done)
    expect(ground.daemon_pid(var) is None, "a daemon was left")


def _port_in_use(ground: Ground) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused(ground.mosaic("daemon", "start", "--port", str(port), var=ground.fresh()), str(port))


def _path_checks(ground: Ground) -> Iterator[Check]:
    long = "/".join(["x" * 100] * 5)
    places = {
        "of 500 letters": ground.root / long,
        "with a part of 300 letters": ground.root / ("y" * 300),
        "of 5,000 letters": ground.root / "/".join(["z" * 100] * 50),
        "in another encoding": ground.root / os.fsdecode(b"caf\xe9"),
        "with a line end": ground.root / "a\nb",
        "with an escape sequence": ground.root / "a\x1b[31mb",
        "with spaces and quotes": ground.root / "a 'b' \"c\"",
        "with a per cent sign and a hash": ground.root / "a%20b#c?d",
        "in /proc": Path("/proc/nowhere"),
        "in /dev/null": Path("/dev/null/var"),
        "in the alphabets of the world": ground.root / "日本 שלום 👍",
    }
    for name, place in places.items():
        yield Check(
            f"a var folder {name}: runs", lambda place=place: answered(ground.mosaic("runs", var=place))
        )
        yield Check(
            f"a var folder {name}: a run, or one sentence", lambda place=place: _runs_there(ground, place)
        )
        words = ("--var", str(place), "runs")
        yield Check(f"a var folder {name}: --var", lambda words=words: answered(ground.mosaic(*words)))
    for name in (
        "caf\udce9.py",
        "a\nb.py",
        "a b.py",
        "-x.py",
        "x" * 240 + ".py",
        "日本.py",
        "a'b\"c.py",
        "$(touch x).py",
    ):
        yield Check(f"a script called {name[:20]!r}", lambda name=name: _script(ground, name))
    yield Check("the current folder is gone", lambda: _no_folder(ground))


def _runs_there(ground: Ground, place: Path) -> None:
    (ground.user / "quick.py").write_text("print('done')\n")
    try:
        done = ground.mosaic("train", "quick.py", "CartPole-v1", var=place)
        if answered(done).code == 0:
            expect("completed" in done.out, done.seen())
    finally:
        quiet(ground.mosaic("daemon", "stop", var=place))


def _script(ground: Ground, name: str) -> None:
    (ground.user / name).write_text("print('done')\n")
    done = answered(ground.mosaic("train", f"./{name}", "CartPole-v1"))
    expect(done.code != 0 or "completed" in done.out, done.seen())
    expect(not (ground.user / "x").exists(), "its name was run")


def _no_folder(ground: Ground) -> None:
    words = f"mkdir gone && cd gone && rmdir ../gone && {shlex.quote(sys.executable)} -m mosaic runs"
    answered(ground.run(["bash", "-c", words]))


def _stream_checks(ground: Ground) -> Iterator[Check]:
    commands = {"runs": 0, "--help": 0, "show nope": 2, "train ppo NoSuch-v0 --dry-run": 2}
    closings = {"stdin": "<&-", "stdout": ">&-", "stderr": "2>&-"}
    for command, code in commands.items():
        for count in (1, 2, 3):
            for chosen in itertools.combinations(closings, count):
                shell = " ".join(closings[name] for name in chosen)
                yield Check(
                    f"{command} with {' and '.join(chosen)} closed",
                    lambda command=command, shell=shell, code=code: _closed(ground, command, shell, code),
                )
        yield Check(
            f"{command} to a full device",
            lambda command=command: _closed(ground, command, ">/dev/full", None),
        )
        yield Check(
            f"{command} to a pipe that nobody reads", lambda command=command: _unread(ground, command)
        )


def _closed(ground: Ground, command: str, shell: str, code: int | None) -> None:
    done = quiet(ground.run(["bash", "-c", f"{shlex.quote(sys.executable)} -m mosaic {command} {shell}"]))
    expect(code is None or done.code == code, f"wanted exit {code}: {done.seen()}")
    expect(done.code < 100, done.seen())


def _unread(ground: Ground, command: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "mosaic", *command.split()],
        env=ground.environment(),
        cwd=ground.user,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    said = process.stderr.read().decode(errors="replace")
    process.stderr.close()
    quiet(Done([command], process.wait(60), "", said, 0))


WIDTHS = (1, 5, 20, 40, 60, 80, 300)
SHOWN = (
    ["runs"],
    ["show", "last"],
    ["queue"],
    ["policies"],
    ["daemon", "status"],
    ["gc", "--dry-run", "--older-than", "0"],
)


def terminal_checks(ground: Ground) -> Iterator[Check]:
    """Narrow terminals, and ones that change their width."""
    (ground.user / "quick.py").write_text("print('done')\n")
    long = "a run with a name that is longer than many a terminal is wide, and words in it"
    run = ground.finish("quick.py", "CartPole-v1", "--name", long, "--tag", "one", "--tag", "two")
    for words in SHOWN:
        for width in WIDTHS:
            yield Check(
                f"{' '.join(words)} at {width} columns",
                lambda words=words, width=width: _narrow(ground, width, *words),
            )
    yield Check("runs at 40 columns names the run and its state", lambda: _names(ground, str(run["run_id"])))
    (ground.user / "slow.py").write_text(
        "import time\nfor n in range(80):\n    print(n, flush=True)\n    time.sleep(0.1)\n"
    )
    for name, sizes in {
        "narrower": (60, 40, 20, 5, 1),
        "wider": (100, 200, 500),
        "to and fro": (20, 120, 3, 80, 1, 300),
    }.items():
        yield Check(
            f"the live view while the terminal gets {name}", lambda sizes=sizes: _resized(ground, sizes)
        )


def _narrow(ground: Ground, width: int, *words: str) -> None:
    done = good(at_terminal(ground, *words, columns=width))
    lines = without_own_sequences(done.out).splitlines()
    widest = max((len(line.rstrip()) for line in lines), default=0)
    # A terminal breaks sentences itself; tables must fit.
    tables = words[0] in ("runs", "show", "gc")
    expect(not tables or width < 40 or widest <= width, f"a line has {widest} letters")


def _names(ground: Ground, run_id: str) -> None:
    shown = without_own_sequences(good(at_terminal(ground, "runs", columns=40)).out)
    expect(run_id[:8] in shown and "completed" in shown, f"{shown!r}")


def _resized(ground: Ground, sizes: tuple[int, ...]) -> None:
    done = good(at_terminal(ground, "train", "slow.py", "CartPole-v1", sizes=sizes))
    expect("completed" in without_own_sequences(done.out).replace("\n", ""), done.seen())
