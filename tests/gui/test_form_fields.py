"""Fields of a form: what people type becomes a value or a sentence, and a change is known as one."""

from __future__ import annotations

import pytest

from gym_gui.models.form_state import (
    Field,
    FormState,
    about_seeds,
    parse,
    parse_seeds,
    seeds_problem,
    show,
    show_seeds,
)
from mosaic.contract.errors import UserError

STEPS = Field("steps", "count", 500_000, minimum=1)
RATE = Field("learning_rate", "float", 0.00025, minimum=0.0)
KL = Field("target_kl", "float", None, optional=True)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        (STEPS, "500,000", 500_000),
        (STEPS, "500k", 500_000),
        (STEPS, " 1e6 ", 1_000_000),
        (STEPS, "2.5M", 2_500_000),
        (STEPS, "1_000", 1_000),
        (RATE, "1e-3", 0.001),
        (RATE, ".5", 0.5),
        (KL, "", None),
        (Field("on", "bool", True), "off", False),
        (Field("on", "bool", True), "Yes", True),
        (Field("mode", default="grid", choices=("grid", "off")), "off", "off"),
        (Field("kwargs", "json", ""), '{"gravity": 5}', '{"gravity": 5}'),
    ],
)
def test_what_people_type_is_understood(field: Field, text: str, value: object) -> None:
    assert parse(field, text) == value


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        (STEPS, "", "steps is empty, but must be a whole number"),
        (STEPS, "0", "steps is 0, but must be a whole number of at least 1, such as 50,000 or 500k."),
        (STEPS, "1.5", "steps is '1.5', but must be a whole number"),
        (STEPS, "5,0", "steps is '5,0', but must be a whole number"),
        (RATE, "0,5", "learning_rate is '0,5', but must be a number of at least 0."),
        (RATE, "-1", "learning_rate is -1, but must be a number of at least 0."),
        (RATE, "nan", "learning_rate is 'nan', but must be a number"),
        (Field("gamma", "float", 0.9, minimum=0, maximum=1), "2", "must be a number from 0 to 1."),
        (Field("mode", default="a", choices=("a", "b")), "c", "must be one of a, b."),
        (Field("kwargs", "json", ""), "[1]", "must be a JSON object"),
        (Field("kwargs", "json", ""), "{", "must be a JSON object"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(field: Field, text: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(field, text)
    assert said in str(caught.value)


def test_values_are_shown_as_they_can_be_typed() -> None:
    assert [show(None), show(True), show(0.00025), show(4)] == ["", "on", "0.00025", "4"]
    assert show(500_000, "count") == "500,000"


def test_a_change_is_known_and_taken_back() -> None:
    state = FormState([STEPS, RATE, KL])
    assert state.changed() == []
    state.set("learning_rate", "2.5e-4")
    assert state.changed() == [], "the default, written otherwise"
    state.set("learning_rate", "1e-3")
    state.set("target_kl", "0.02")
    state.set("steps", "many")
    assert state.changed() == ["steps", "learning_rate", "target_kl"]
    assert state.problems() == [state.problem("steps")] and "'many'" in state.problem("steps")
    state.reset("steps")
    assert state.changes() == {"learning_rate": 0.001, "target_kl": 0.02}
    assert state.default_text("learning_rate") == "0.00025"
    state.set("target_kl", "  ")
    assert state.changed() == ["learning_rate"], "an optional field may be empty"
    state.reset()
    assert state.changed() == [] and state.text("learning_rate") == "0.00025"


def test_another_default_leaves_what_was_typed() -> None:
    state = FormState([STEPS])
    state.set_default("steps", 1_000_000)
    assert (state.text("steps"), state.is_changed("steps")) == ("1,000,000", False)
    state.set("steps", "5k")
    state.set_default("steps", 5_000)
    assert (state.text("steps"), state.is_changed("steps")) == ("5k", False)


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("1", (1,)), ("1, 2, 3", (1, 2, 3)), ("1-5", (1, 2, 3, 4, 5)), ("7,1–2", (7, 1, 2)), ("4,", (4,))],
)
def test_seeds_are_read(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds
    assert parse_seeds(show_seeds(seeds)) == seeds


@pytest.mark.parametrize("text", ["", "one", "5-1", "1 2", "-3", "0-100000", "3, 3", "1-5, 3"])
def test_what_are_no_seeds_is_said(text: str) -> None:
    assert seeds_problem(text)
    assert about_seeds(text) == ""


def test_seeds_say_how_many_runs_they_are() -> None:
    assert [about_seeds("3"), about_seeds("1-3")] == ["1 run", "3 runs"]
    assert [show_seeds((1, 2)), show_seeds((1, 2, 3)), show_seeds((3, 1))] == ["1, 2", "1-3", "3, 1"]
