"""`mosaic play`: keys at a terminal, a policy in a process of its own."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

import psutil
import pytest

from conftest import RunMosaic
from mosaic.cli.commands.play import Keyboard, shown
from mosaic.client.playing import Choices
from mosaic.contract.errors import UserError
from support.policies import save_cartpole, save_grid, save_pendulum
from support.terminal import PATIENCE, Terminal, at_terminal

HOME = "\x1b[?1049l"
"""The terminal's own picture is back."""


@contextmanager
def playing(*argv: str) -> Iterator[tuple[Terminal, list[Any]]]:
    """A game that has begun, and how its terminal was before."""
    with at_terminal("play", *argv) as terminal:
        before = terminal.mode()
        terminal.read_until(r"q quit")
        assert terminal.mode() != before
        yield terminal, before


def left_as_it_was(terminal: Terminal, before: list[Any]) -> bool:
    return terminal.mode() == before and HOME in terminal.seen


def test_keys_step_run_take_over_and_quit(tmp_path: Path, var: Path) -> None:
    with playing(str(save_cartpole(tmp_path)), "--seed", "7") as (terminal, before):
        terminal.read_until(r"ppo on CartPole-v1 after 1,000 steps, best actions")
        terminal.read_until(r"episode 1, seed 7   step 0 .*\s*next [01] (left|right)   value ")
        assert "▀" in terminal.seen
        terminal.type(" ")
        terminal.read_until(r"step 1   return 1.0   last [01] (left|right) by policy")
        terminal.type("1")
        terminal.read_until(r"step 2   return 2.0   last 1 right by you")
        terminal.type("\x1b[D")
        terminal.read_until(r"step 3   return 3.0   last 0 left by you")
        # A function key, a key without a meaning, and a line.
        terminal.type("\x1b[15~5a7")
        terminal.read_until(r"action: 7")
        terminal.type("\n")
        terminal.read_until(r"must be a whole number from 0 to 1")
        terminal.type("n")
        terminal.read_until(r"episode 2, seed 8   step 0")
        terminal.type("++r")
        terminal.read_until(r"r pause \(120/s")
        terminal.read_until(r"episode 3, seed 9")
        terminal.seen = ""
        terminal.type("r")
        terminal.read_until(r"r run \(120/s, \+ -\)  n new episode  0-1 ←→ your action  q quit")
        terminal.type("q")
        assert terminal.wait() == 0
        assert left_as_it_was(terminal, before)
    assert list(var.iterdir()) == []


def test_continuous_actions_are_typed(tmp_path: Path, var: Path) -> None:
    with playing(str(save_pendulum(tmp_path)), "--stochastic") as (terminal, _):
        terminal.read_until(r"sampled actions")
        terminal.read_until(r"a type an action")
        terminal.type("a0.x\x7f5")
        terminal.read_until(r"action: 0\.5")
        terminal.type("\r")
        terminal.read_until(r"step 1 .*last \[0\.5\] by you")
        terminal.type("a9\r")
        terminal.read_until(r"out of bounds")
        terminal.type("ax\r")
        terminal.read_until(r"'x' is not an action")
        terminal.type("a1\x1b")
        terminal.read_until(r"action: 1")
        terminal.seen = ""
        terminal.read_until(r"space step")
        terminal.type("\r")
        terminal.read_until(r"step 2 .*by policy")
        terminal.type("q")
        assert terminal.wait() == 0


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, 1)]
)
def test_the_terminal_is_as_before_however_the_game_ends(
    number: signal.Signals, code: int, tmp_path: Path, var: Path
) -> None:
    with playing(str(save_cartpole(tmp_path))) as (terminal, before):
        if number == signal.SIGKILL:
            (player,) = psutil.Process(terminal.process.pid).children()
            player.kill()
            terminal.type(" ")
        else:
            terminal.process.send_signal(number)
        assert terminal.wait() == code
        assert left_as_it_was(terminal, before)
        if number == signal.SIGKILL:
            assert "was ended by SIGKILL" in terminal.seen


def test_a_signal_just_before_the_wait_for_a_key_ends_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = os.openpty()
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    with os.fdopen(slave) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        with Keyboard() as keyboard:
            signal.raise_signal(signal.SIGUSR1)
            Timer(0.5, os.write, (master, b"x")).start()
            assert keyboard.read(PATIENCE) is None
            assert keyboard.read(PATIENCE) == "x"
    signal.signal(signal.SIGUSR1, before)
    os.close(master)


def test_the_policys_process_ends_with_a_game_that_is_killed(tmp_path: Path, var: Path) -> None:
    with playing(str(save_cartpole(tmp_path))) as (terminal, _):
        (player,) = psutil.Process(terminal.process.pid).children()
        os.kill(terminal.process.pid, signal.SIGKILL)
        player.wait(PATIENCE)


def test_without_a_terminal_or_a_policy_there_is_one_clear_line(
    run_mosaic: RunMosaic, tmp_path: Path
) -> None:
    done = run_mosaic("play", "none.cleanrl_model", check=False)
    assert done.returncode == 2 and done.stderr.startswith("mosaic: play needs a terminal")
    with at_terminal("play", str(tmp_path / "none.cleanrl_model")) as terminal:
        assert terminal.wait() == 2
        assert "mosaic: There is no policy" in terminal.seen and "Traceback" not in terminal.seen


def test_arrows_follow_the_words_of_the_actions() -> None:
    grid = Choices({"kind": "discrete", "n": 4, "meanings": ["left", "down", "right", "up"]})
    assert [grid.by_key(key) for key in ("left", "down", "right", "up", "3", "4", "x")] == [
        *(0, 1, 2, 3, 3, None, None)
    ]
    taxi = Choices({"kind": "discrete", "n": 3, "start": 1, "meanings": ["south", "north", "pick up"]})
    assert [taxi.by_key(key) for key in ("down", "up", "left", "0")] == [1, 2, None, 1]
    plain = Choices({"kind": "discrete", "n": 3})
    assert [plain.by_key(key) for key in ("left", "right", "up")] == [0, 2, None]
    many = Choices({"kind": "discrete", "n": 18})
    assert many.by_key("left") is None and many.typed("17") == 17 and "a types others" in many.help()
    box = Choices({"kind": "box", "shape": [2]})
    assert box.by_key("1") is None and box.typed("0.5, -1") == [0.5, -1] and box.typed("[[1]]") == [[1]]
    assert box.name([0.12345, -1.0]) == "[0.123 -1]"
    with pytest.raises(UserError, match="is not an action"):
        box.typed("up")


def test_observations_are_shown_in_short() -> None:
    assert shown([0.12345, 1.0]) == "0.123 1.000"
    assert shown([0.0] * 9) == "0.000 " * 8 + "…"
    assert shown([[[1, 2, 3]] * 7] * 5) == "5 × 7 × 3"
    assert shown({"image": [[1]], "direction": 2, "mission": "go"}) == "image 1 × 1, direction 2, mission go"


def test_a_mission_has_a_line_of_its_own(tmp_path: Path, var: Path) -> None:
    with playing(str(save_grid(tmp_path))) as (terminal, _):
        terminal.read_until(r"mission get to the green goal square")
        terminal.read_until(r"sees image 7 × 7 × 3, direction 0\s")
        terminal.type("q")
        assert terminal.wait() == 0
