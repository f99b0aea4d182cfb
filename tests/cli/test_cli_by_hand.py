"""`mosaic play ENVIRONMENT`: a person at a terminal, without a policy."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import psutil
import pytest

from conftest import RunMosaic
from mosaic.client.by_hand import KeyMap, Tally, recorded_text
from support.policies import save_cartpole
from support.terminal import PATIENCE, at_terminal

HOME = "\x1b[?1049l"
"""The terminal's own picture is back."""

ARCADE = {
    "chords": [
        {"keys": ["space"], "action": 1, "word": "fire"},
        {"keys": ["right"], "action": 2, "word": "right"},
        {"keys": ["left"], "action": 3, "word": "left"},
        {"keys": ["right", "space"], "action": 4, "word": "rightfire"},
        {"keys": ["up", "x"], "action": 5, "word": "jump"},
    ],
    "axes": [],
    "aliases": {"d": "right"},
    "idle": 0,
    "time": "runs",
}
CAR = {
    "chords": [],
    "axes": [
        {"key": "left", "index": 0, "value": -1.0, "word": "left"},
        {"key": "right", "index": 0, "value": 1.0, "word": "right"},
        {"key": "up", "index": 1, "value": 0.5, "word": "gas"},
    ],
    "aliases": {},
    "idle": [0.0, 0.0],
    "time": "runs",
}


def test_keys_that_are_down_together_make_one_action_or_several_in_turn() -> None:
    keys = KeyMap(ARCADE)
    assert keys.actions() == [] and keys.action() is None
    assert keys.press("d") and keys.down == ["right"] and keys.action() == 2
    keys.press("right")
    keys.press("space")
    assert keys.actions() == [4]
    keys.release("d")
    assert keys.actions() == [1]
    keys.press("left")
    # No action is meant by both, and the later key is the last.
    assert keys.actions() == [1, 3] and keys.action() == 3
    assert not keys.press("y") and keys.named("up") == "up"
    keys.let_go()
    keys.press("up")
    assert keys.actions() == []
    keys.press("x")
    assert keys.action() == 5
    assert [cap.sign for cap in keys.caps] == ["space", "→", "←", "↑ + X"]


def test_keys_of_numbers_set_them_and_the_later_of_two_wins() -> None:
    keys = KeyMap(CAR, [2])
    keys.press("left")
    keys.press("up")
    assert keys.action() == [-1.0, 0.5]
    keys.press("right")
    assert keys.action() == [1.0, 0.5]
    keys.release("right")
    assert keys.action() == [-1.0, 0.5]
    nested = KeyMap({**CAR, "idle": [[0.0], [0.0]]}, [2, 1])
    nested.press("up")
    assert nested.action() == [[0.0], [0.5]]


def test_the_mean_is_that_of_ended_episodes_and_recordings_are_told_in_short() -> None:
    tally = Tally()
    assert tally.mean is None
    tally.add({"return": 1.0, "length": 3})
    tally.add({"return": 4.0, "length": 5})
    assert (tally.mean, tally.lengths) == (2.5, [3, 5])
    assert recorded_text(None) == ""
    both = {"files": ["/a/b.npz", "/a/b.mp4"], "problem": None}
    assert recorded_text(both) == "Recorded /a/b (.npz and .mp4)."
    assert recorded_text({"files": [], "problem": "No."}) == "No."


def test_time_passes_with_the_first_key_and_the_next_episode_begins_on_a_key(
    tmp_path: Path, var: Path
) -> None:
    kept = tmp_path / "kept"
    with at_terminal("play", "LunarLander-v3", "--seed", "7", "--record", str(kept)) as terminal:
        before = terminal.mode()
        terminal.read_until(r"LunarLander-v3 by hand   episode 1, seed 7   ● recording")
        terminal.read_until(r"step 0 of 1,000, 1,000 left \(20 s\)")
        terminal.read_until(r"left engine .* main engine .* right engine")
        terminal.read_until(r"Time starts with the first key")
        terminal.type("\x1b[A")
        terminal.read_until(r"2 main engine")
        terminal.read_until(r"0 nothing \(no key\)")
        terminal.read_until(r"The episode ended after \d+ steps, return")
        terminal.read_until(r"mean of 1 episode")
        while "episode 2, seed 8" not in terminal.seen:
            terminal.type("\r")
            terminal._read(0.3)
        terminal.type("q")
        assert terminal.wait() == 0
        assert terminal.mode() == before and HOME in terminal.seen
        assert "1 episode, mean return" in terminal.seen.split(HOME)[1]
    (file,) = kept.glob("*.npz")
    data = np.load(file)
    assert data["seed"] == 7 and 2 in data["actions"] and data["terminated"][-1]
    assert list(var.iterdir()) == []


def test_turns_wait_for_keys_and_a_record_can_be_begun_on_the_way(
    tmp_path: Path, var: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with at_terminal("play", "--env", "FrozenLake-v1", "--env-kwargs", '{"is_slippery": false}') as terminal:
        terminal.read_until(r"step 0 of 100, 100 left\s")
        terminal.type("\x1b[C")
        terminal.read_until(r"step 1 of 100, 99 left   reward 0.00   2 right")
        terminal.type("r")
        terminal.read_until(r"From the next episode on episodes are recorded in recordings")
        terminal.type("n")
        terminal.read_until(r"episode 2, seed \d+   ● recording")
        # WASD stands for the arrows, also with Shift.
        terminal.type("s")
        terminal.read_until(r"step 1 of 100.* 1 down")
        terminal.type("D")
        terminal.read_until(r"step 2 of 100.* 2 right")
        terminal.read_until(r"The episode ended after 2 steps, return 0")
        terminal.read_until(r"Recorded")
        terminal.type("b")
        terminal.read_until(r"episode 3")
        terminal.type("t")
        terminal.read_until(r"Time passes by itself")
        terminal.type(".q")
        assert terminal.wait() == 0
        assert "recorded recordings/FrozenLake-v1_seed-" in terminal.seen
    # The last one was left after a step of its own.
    assert len(list((tmp_path / "recordings").glob("*.npz"))) == 2


def test_the_terminal_is_as_before_when_a_game_is_ended_from_outside(tmp_path: Path, var: Path) -> None:
    with at_terminal("play", "CartPole-v1") as terminal:
        before = terminal.mode()
        terminal.read_until(r"q quit")
        (player,) = psutil.Process(terminal.process.pid).children()
        os.kill(terminal.process.pid, signal.SIGTERM)
        assert terminal.wait() == 143
        assert terminal.mode() == before and HOME in terminal.seen
        player.wait(PATIENCE)


def test_a_killed_game_is_told_in_a_sentence(tmp_path: Path, var: Path) -> None:
    with at_terminal("play", "CartPole-v1") as terminal:
        terminal.read_until(r"q quit")
        (player,) = psutil.Process(terminal.process.pid).children()
        player.kill()
        terminal.type("\x1b[C")
        assert terminal.wait() == 1
        assert "was ended by SIGKILL" in terminal.seen and "Traceback" not in terminal.seen


def test_what_cannot_be_played_gets_one_line_and_exit_code_2(
    run_mosaic: RunMosaic, tmp_path: Path, var: Path
) -> None:
    model = str(save_cartpole(tmp_path))
    for argv, said in (
        (["play"], "There is nothing to play"),
        (["play", model, "--record", "here"], "--record is for environments played by hand"),
        (["play", "CartPole-v1", "--stochastic"], "--stochastic is for a policy"),
        (["play", "CartPole-v1", "--algo", "ppo"], "--algo is for a policy"),
        (["play", "CartPole-v1"], "play needs a terminal"),
    ):
        done = run_mosaic(*argv, check=False)
        assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
    for name, said in (("CartPol-v1", "did you mean 'CartPole-v1'?"), ("no:Env-v0", "cannot be imported")):
        with at_terminal("play", name) as terminal:
            assert terminal.wait() == 2
            assert said in " ".join(terminal.seen.split()) and "Traceback" not in terminal.seen


def test_a_terminal_that_is_too_small_is_told_so(var: Path) -> None:
    with at_terminal("play", "CartPole-v1", may_change=True) as terminal:
        terminal.read_until(r"q quit")
        # Nothing is pressed: the new size alone is drawn for.
        terminal.resize(30)
        terminal.process.send_signal(signal.SIGWINCH)
        terminal.read_until(r"make it\s+larger")
        terminal.resize(80)
        terminal.process.send_signal(signal.SIGWINCH)
        terminal.read_until(r"by hand")
        terminal.type("q")
        assert terminal.wait() == 0
