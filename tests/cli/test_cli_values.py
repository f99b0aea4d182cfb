"""What people type: numbers, seeds, settings."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from mosaic.cli import values
from mosaic.contract import words
from mosaic.contract.errors import UserError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        ("50000", 50_000),
        ("1_000_000", 1_000_000),
        ("500k", 500_000),
        ("500K", 500_000),
        ("1e6", 1_000_000),
        ("1E6", 1_000_000),
        ("2.5m", 2_500_000),
        ("1.5e3", 1500),
        ("1b", 1_000_000_000),
    ],
)
def test_counts_are_read_as_people_write_them(text: str, expected: int) -> None:
    assert values.count(text) == expected


@pytest.mark.parametrize(
    "text", ["", "0", "-5", "1.5", "1e-3", "k", "many", "1..2", "0.5k1", "nan", "inf", "1e999"]
)
def test_what_is_no_positive_whole_number_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="whole number"):
        values.count(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", [3]),
        ("1-5", [1, 2, 3, 4, 5]),
        ("1,3,7", [1, 3, 7]),
        ("1-3,10", [1, 2, 3, 10]),
        ("2, 1", [2, 1]),
    ],
)
def test_seeds_are_ranges_and_lists(text: str, expected: list[int]) -> None:
    assert values.seeds(text) == expected


@pytest.mark.parametrize("text", ["3,3,3", "1-5,3", "3,1-5"])
def test_a_seed_that_is_named_twice_is_said(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="names seed 3 more than once"):
        values.seeds(text)


@pytest.mark.parametrize("text", ["", "5-1", "a", "1,,2", "-3", "1-", "1.5", "0-1000000"])
def test_what_is_no_list_of_seeds_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="seeds"):
        values.seeds(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("30d", 2_592_000), ("12h", 43_200), ("2w", 1_209_600), ("1.5 min", 90), ("0", 0)]
)
def test_lengths_of_time_have_a_unit(text: str, seconds: float) -> None:
    assert values.age(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "d", "-3d", "3 months", "nan", "1e3d"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="length of time"):
        values.age(text)


def test_a_setting_is_a_name_and_a_value() -> None:
    assert values.setting("learning-rate=1e-3") == ("learning_rate", "1e-3")
    assert values.setting("note=a=b") == ("note", "a=b")
    with pytest.raises(ArgumentTypeError, match="name=value"):
        values.setting("learning_rate")


def test_a_setting_given_twice_is_a_mistake() -> None:
    with pytest.raises(UserError, match="'gamma' is given twice"):
        values.settings([("gamma", "1"), ("gamma", "2")])


def test_environment_arguments_are_a_json_object() -> None:
    assert values.json_object('{"gravity": 5.0}') == {"gravity": 5.0}
    for text in ("[1]", "gravity=5", "3"):
        with pytest.raises(ArgumentTypeError, match="JSON object"):
            values.json_object(text)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.84, "0.8 s"),
        (34, "34 s"),
        (125, "2 min 5 s"),
        (120, "2 min"),
        (4320, "1 h 12 min"),
        (180_000, "2 days 2 h"),
    ],
)
def test_durations_have_two_units_at_most(seconds: float, expected: str) -> None:
    assert words.duration(seconds) == expected


def test_progress_is_complete_only_at_the_end() -> None:
    assert words.percent(0.999) == "99 %"
    assert words.percent(1.0) == "100 %"
    assert words.percent(None) == "–"


def test_ids_are_cut_to_where_they_differ() -> None:
    ids = ["01M7GDQ48Q692K", "01M7GDQ48Q7AAA", "01M7GDSXJGNDW4"]
    assert words.unique_prefixes(ids) == {one: one[:11] for one in ids}
    assert words.unique_prefixes(ids[1:]) == {one: one[:10] for one in ids[1:]}


def test_a_waiting_run_says_what_it_waits_for() -> None:
    assert words.waiting("waits for 1 more CPU") == "waiting for 1 more CPU"
    assert words.waiting("starts again") == "waiting: starts again"
    assert words.waiting(None) == "waiting"
