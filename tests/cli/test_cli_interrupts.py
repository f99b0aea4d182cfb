"""Ctrl-C and SIGTERM while `mosaic train` follows its runs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mosaic.client import Client
from support.runs import script_config
from support.terminal import PATIENCE, at_terminal

SCRIPT = Path(__file__).parent / "scripts" / "curves.py"
LONG = ("train", str(SCRIPT), "None-v0", "--steps", "1M", "--set", "pause=0.05")


def wait_for_training(client: Client, amount: int) -> list[str]:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        ids = [run.run_id for run in client.runs(["EXEC"])]
        if len(ids) == amount:
            return ids
        time.sleep(0.05)
    raise AssertionError("the runs did not start")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_without_a_terminal_the_runs_are_cancelled(client: Client, number: signal.Signals, code: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "mosaic", *LONG, "--seeds", "1,2", "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_for_training(client, 2)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (code, "")
    assert [run["outcome"] for run in json.loads(out)["runs"]] == ["cancelled", "cancelled"]


def test_at_a_terminal_the_answer_decides(client: Client, var: Path) -> None:
    with at_terminal(*LONG) as terminal:
        terminal.read_until(r"per second")
        terminal.process.send_signal(signal.SIGINT)
        terminal.read_until(r"\[d\]etach or \[c\]ancel")
        terminal.type("c\n")
        terminal.read_until(r"■ cancelled")
        assert terminal.process.wait(PATIENCE) == 130
    assert [run.outcome for run in client.runs()] == ["cancelled"]


def test_a_second_interrupt_leaves_the_run_going(client: Client) -> None:
    with at_terminal(*LONG) as terminal:
        (run_id,) = wait_for_training(client, 1)
        terminal.process.send_signal(signal.SIGINT)
        terminal.read_until(r"\[d\]etach or \[c\]ancel")
        terminal.process.send_signal(signal.SIGINT)
        terminal.read_until(r"continues in the background")
        assert terminal.process.wait(PATIENCE) == 0
    assert client.get(run_id).status == "EXEC"
    client.cancel(run_id)
    assert client.wait(run_id).outcome == "cancelled"


def test_gc_does_at_a_terminal_what_the_answer_says(client: Client) -> None:
    run = client.wait(client.submit(script_config("steps.py")).run_id, timeout=PATIENCE)
    for answer, code, left in (("n", 1, [run.run_id]), ("y", 0, [])):
        with at_terminal("gc", "--older-than", "0") as terminal:
            terminal.read_until(r"Remove 1 run\? \[y/N\]")
            terminal.type(f"{answer}\n")
            assert terminal.process.wait(PATIENCE) == code
        assert [one.run_id for one in client.runs()] == left
