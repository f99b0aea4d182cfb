"""What the Play view shows and allows, without a window."""

from __future__ import annotations

from typing import Any

import pytest

from gym_gui.ui.presenters.play import (
    ActionSpace,
    Closed,
    Command,
    Opened,
    PlayPresenter,
    Refusal,
    Running,
    Seen,
    bars,
    observation_rows,
)

CART = {"kind": "discrete", "n": 2, "meanings": ["left", "right"]}


def init(space: dict[str, Any] = CART, **fields: Any) -> Opened:
    told = {
        "algo": "ppo",
        "env_id": "CartPole-v1",
        "trained_steps": 500_000,
        "deterministic": True,
        "action_space": space,
        "fps": 50,
        "notes": [],
    }
    return Opened(told | fields)


def ready(seed: int = 7) -> Seen:
    output = {"action": 1, "value": 96.1, "probabilities": [0.1, 0.9], "action_values": None}
    message = {"type": "ready", "seed": seed, "observation": [0.03125, -1.0], "next": output}
    return Seen(message, None, "this environment cannot render", 0, False)


def step(number: int, **fields: Any) -> Seen:
    message: dict[str, Any] = {
        "type": "step",
        "step": number,
        "action": 1,
        "by": "policy",
        "observation": [0.5, 0.25],
        "reward": 1.0,
        "terminated": False,
        "truncated": False,
        "return": float(number),
        "next": {"action": 0, "value": None, "probabilities": None, "action_values": None},
    }
    return Seen(message | fields, None, "", fields.get("yours", 0), fields.get("running", False))


def last_step(number: int, **fields: Any) -> Seen:
    episode = {"return": float(number), "length": number, "seed": 7}
    return step(number, next=None, episode=episode, **{"terminated": True, **fields})


def shown(presenter: PlayPresenter) -> dict[str, str]:
    return dict(presenter.numbers())


def begun(space: dict[str, Any] = CART) -> PlayPresenter:
    presenter = PlayPresenter("loading")
    presenter.take(init(space))
    presenter.take(ready())
    return presenter


def test_an_episode_is_told_from_its_first_observation_to_its_end() -> None:
    presenter = PlayPresenter("loading")
    assert not presenter.open and "loaded" in presenter.sentence[0]
    presenter.take(init())
    presenter.take(ready())
    assert presenter.open and presenter.phase == "playing"
    assert shown(presenter) == {
        "Step": "0",
        "Return": "0.00",
        "Reward": "–",
        "Action": "–",
        "Seed": "7",
        "Episode": "1",
    }
    assert presenter.next_text() == "1 right · value 96.100"
    presenter.take(step(1, by="caller"))
    assert shown(presenter)["Action"] == "1 right · you" and shown(presenter)["Reward"] == "1.000"
    presenter.take(last_step(2))
    assert presenter.phase == "ended" and presenter.next_action() is None and presenter.next_text() == "–"
    assert presenter.sentence == ("Episode 1 ended after 2 steps, return 2.00.", "good")
    assert [episode.text for episode in presenter.episodes] == ["return 2.00 · 2 steps"]
    presenter.take(ready(8))
    assert presenter.phase == "playing" and shown(presenter)["Episode"] == "2"


def test_an_episode_that_was_cut_off_says_so() -> None:
    presenter = begun()
    presenter.take(last_step(500, terminated=False, truncated=True))
    assert "was truncated after 500 steps" in presenter.sentence[0]


def test_keys_ask_for_what_they_stand_for_while_a_session_is_open() -> None:
    presenter = PlayPresenter()
    assert presenter.command("space") is None
    presenter = begun()
    assert presenter.command("space") == Command("step")
    assert presenter.command("left") == Command("step", 0)
    assert presenter.command("1") == Command("step", 1)
    assert presenter.command("7") is None and presenter.command("up") is None
    assert [presenter.command(key) for key in "nar+-"] == [
        Command("reset"),
        Command("again"),
        Command("run"),
        Command("faster"),
        Command("slower"),
    ]
    presenter.take(last_step(3))
    assert presenter.command("left") is None and presenter.command("n") == Command("reset")


def test_a_refusal_stops_it_and_a_lost_session_is_a_state_of_its_own() -> None:
    presenter = begun()
    presenter.take(Running(True))
    assert presenter.running
    presenter.take(Refusal("The action is 7, but it must be a whole number from 0 to 1."))
    assert presenter.open and not presenter.running and presenter.sentence[1] == "warn"
    presenter.take(step(1))
    assert presenter.sentence[0] == ""
    presenter.take(Closed("The session's process was ended by SIGKILL."))
    assert not presenter.open
    assert presenter.sentence == ("The session's process was ended by SIGKILL.", "error")


def test_what_to_know_of_a_policy_is_said_while_it_plays() -> None:
    presenter = PlayPresenter("loading")
    presenter.take(init(notes=["The statistics of its observations are missing."]))
    presenter.take(ready())
    assert presenter.sentence == ("The statistics of its observations are missing.", "warn")


def test_the_speed_is_that_of_the_environment_and_stays_within_its_bounds() -> None:
    slow = PlayPresenter("loading")
    slow.take(init(fps=4))
    assert slow.speed == 2
    for _ in range(20):
        slow.change_speed(faster=True)
    assert slow.speed == 120
    for _ in range(20):
        slow.change_speed(faster=False)
    assert slow.speed == 1


def test_bars_are_probabilities_or_values_over_their_range() -> None:
    presenter = begun()
    assert [(bar.text, bar.share, bar.chosen) for bar in presenter.policy_output()] == [
        ("10 %", 0.1, False),
        ("90 %", 0.9, True),
    ]
    valued = bars({"action": 0, "probabilities": None, "action_values": [4.0, 2.0, None]}, [0, 1, 2])
    assert [(bar.text, bar.share) for bar in valued] == [("4.000", 1.0), ("2.000", 0.5), ("0.000", 0.0)]
    assert bars({"action": [0.5], "probabilities": None, "action_values": None}, [0, 1]) == []


def test_observations_are_numbers_or_the_size_of_what_is_too_much_to_read() -> None:
    assert observation_rows([0.03125, -1.0]) == [
        ("0", "0.031"),
        ("1", "−1.000"),
    ]
    grid = {"image": [[[1, 2, 3]] * 7] * 7, "direction": 2, "mission": "go to the door"}
    assert observation_rows(grid) == [
        ("image", "7 × 7 × 3"),
        ("direction", "2"),
        ("mission", "go to the door"),
    ]
    assert observation_rows([0.0] * 30)[-1] == ("…", "14 more")


def test_discrete_actions_are_choices_with_their_keys() -> None:
    space = ActionSpace({"kind": "discrete", "n": 3, "start": 1, "meanings": ["south", "north", "pick up"]})
    assert [(one.action, one.word, one.keys) for one in space.choices] == [
        (1, "south", "0 ↓"),
        (2, "north", "1 ↑"),
        (3, "pick up", "2"),
    ]
    assert space.by_key("up") == 2 and not space.fields
    plain = ActionSpace({"kind": "discrete", "n": 4})
    assert [one.word for one in plain.choices] == ["action 0", "action 1", "action 2", "action 3"]


def test_continuous_actions_are_fields_with_their_bounds() -> None:
    space = ActionSpace(
        {"kind": "box", "shape": [2], "dtype": "float32", "low": [-2.0, -1.0], "high": [2.0, 1.0]}
    )
    assert [(one.name, one.low, one.high) for one in space.fields] == [
        ("action 0", -2.0, 2.0),
        ("action 1", -1.0, 1.0),
    ]
    first = space.fields[0]
    assert (
        first.at(0) == -2.0
        and first.at(first.steps) == 2.0
        and first.at(first.step_of(0.5)) == pytest.approx(0.5)
    )
    assert first.step_of(99.0) == first.steps
    assert space.build([0.5, -1.0]) == [0.5, -1.0] and space.numbers([0.5, -1.0]) == [0.5, -1.0]


def test_actions_of_any_shape_are_put_together_again() -> None:
    grid = ActionSpace(
        {
            "kind": "box",
            "shape": [2, 2],
            "dtype": "float32",
            "low": [[0, 0], [0, 0]],
            "high": [[1, 1], [1, 1]],
        }
    )
    assert [one.name for one in grid.fields] == ["action 0, 0", "action 0, 1", "action 1, 0", "action 1, 1"]
    assert grid.build([0.1, 0.2, 0.3, 0.4]) == [[0.1, 0.2], [0.3, 0.4]]
    several = ActionSpace({"kind": "multi_discrete", "nvec": [3, 2]})
    assert [(one.high, one.whole) for one in several.fields] == [(2, True), (1, True)]
    assert several.build([1.0, 0.0]) == [1, 0]
    switches = ActionSpace({"kind": "multi_binary", "shape": [2]})
    assert switches.build([1, 0]) == [1, 0]
    free = ActionSpace(
        {"kind": "box", "shape": [1], "dtype": "float32", "low": [None], "high": [None], "unbounded": True}
    )
    assert not free.fields[0].bounded
    many = ActionSpace({"kind": "discrete", "n": 100})
    assert not many.choices and many.build([42.0]) == 42
