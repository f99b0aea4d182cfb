"""The words beside the live picture, and where pictures go."""

from __future__ import annotations

import pytest

from gym_gui.models.hud import absence_of, batch_line, caption, hud_of, staleness
from gym_gui.ui.widgets.frame_view import arrange, crisp
from mosaic.analytics.eval_summary import EvalScores, EvalSummary
from mosaic.fastlane.grid import Metrics
from mosaic.fastlane.reader import SlotStatus
from support.gui_records import record

_BATCH = EvalScores(3, 50, 112.3, 110, 90.1, 142.6, 12.0, (0, 0), 0, 0, 0, 0, 0, 1.0)


def test_the_hud_of_training_has_the_reward_and_the_return_and_speed_that_stand_everywhere() -> None:
    run = record(headline={"mean_return": 487.3, "last_return": 12.0, "sps": 21_940.0})
    hud = hud_of(run, SlotStatus("live"), Metrics(1.0, 42.0, 900.0))
    assert hud.numbers == (("reward", "1.00"), ("mean return", "487.3"), ("steps/s", "21,940"))
    assert (hud.state, hud.role, hud.batch) == ("connected", "good", "")


def test_the_hud_of_an_evaluation_says_so_and_has_its_newest_batch() -> None:
    summary = EvalSummary({}, 200, _BATCH, (_BATCH,))
    run = record(asked={"extras": {"mode": "policy_eval"}})
    hud = hud_of(run, SlotStatus("live"), Metrics(1.0, 2.0, 3.0), summary)
    assert hud.numbers[0][0] == "reward (Eval)"
    assert hud.batch == "eval batch 3 · 50 episodes · mean 112.3 ± 12.0 · min 90.1 · max 142.6"
    assert batch_line(None) == "eval: the first batch is being played"


@pytest.mark.parametrize(
    ("values", "status", "title"),
    [
        ({"status": "TERM", "outcome": "completed"}, SlotStatus("ended"), "The run has ended"),
        ({"status": "INIT", "reason": "waits for a GPU"}, SlotStatus("waiting"), "has not begun"),
        ({"asked": {"extras": {"video_mode": "off"}}}, SlotStatus("waiting"), "Live frames are off"),
        ({"status": "PAUSE"}, SlotStatus("stale"), "paused"),
        ({}, SlotStatus("no picture", "it renders nothing"), "no picture"),
        ({}, SlotStatus("stale", "the training process is gone"), "No new picture"),
        ({"status": "RDY"}, SlotStatus("waiting"), "Starting…"),
        ({"status": "RDY"}, SlotStatus("waiting", "importing"), "Importing…"),
        ({}, SlotStatus("waiting", "importing"), "Importing…"),
        ({}, SlotStatus("waiting", "making environments"), "Making the environments…"),
        ({"headline": {"phase": "importing"}}, SlotStatus("waiting"), "Importing…"),
        ({}, SlotStatus("waiting", "its environments take their first steps"), "on its way"),
    ],
)
def test_without_a_picture_it_says_why_and_what_next(values: dict, status: SlotStatus, title: str) -> None:
    absence = absence_of(record(**values), status)
    assert title in absence.title
    assert absence.advice


def test_a_start_says_how_long_it_takes_by_now() -> None:
    run = record(started_at=1000.0)
    importing = SlotStatus("waiting", "importing")
    assert absence_of(run, importing, now=1002.4).advice == "The script is loading its libraries: 2 s so far."


def test_before_the_first_step_the_hud_has_no_numbers_and_says_what_is_done() -> None:
    run = record(started_at=1000.0)
    hud = hud_of(run, SlotStatus("waiting", "importing"), Metrics(0.0, 0.0, 0.0), now=1002.4)
    assert (hud.numbers, hud.state, hud.role) == ((), "importing · 2 s", "dim")


def test_a_picture_that_moves_has_no_word_over_it() -> None:
    assert staleness(SlotStatus("live")) == ""
    assert staleness(SlotStatus("stale", "training is paused")) == "Training is paused"


def test_the_caption_counts_environments() -> None:
    assert caption(8, 29.7) == "8 environments · 30 frames/s"
    assert caption(1, 12.0) == "1 environment · 12 frames/s"
    assert caption(0, 0.0) == ""


def test_eight_pictures_in_a_wide_place_are_two_rows_of_four() -> None:
    places = arrange([(600, 400)] * 8, 1200, 500)
    assert len({round(place.top()) for place in places}) == 2
    assert len({round(place.left()) for place in places}) == 4


@pytest.mark.parametrize(("width", "height"), [(300, 900), (900, 300), (64, 64), (1920, 1080)])
def test_pictures_keep_their_proportions_and_stay_inside(width: int, height: int) -> None:
    for place in arrange([(600, 400), (84, 84), (160, 210)], width, height):
        assert place.left() >= -0.01 and place.left() + place.width() <= width + 0.01
        assert place.top() >= -0.01 and place.top() + place.height() <= height + 0.01
    (alone,) = arrange([(160, 210)], width, height)
    assert alone.width() / alone.height() == pytest.approx(160 / 210)


def test_small_pictures_are_enlarged_as_blocks_and_large_ones_smoothly() -> None:
    assert crisp(6.0, 84, 84)
    assert crisp(1.4, 64, 64)
    assert not crisp(1.4, 600, 400)
    assert not crisp(0.5, 600, 400)


def test_without_pictures_or_room_there_are_no_places() -> None:
    assert arrange([], 100, 100) == []
    assert arrange([(10, 10)], 0, 100) == []
