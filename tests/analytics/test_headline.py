"""The headline of a run from its scalars."""

from __future__ import annotations

import json
import math

import pytest

from mosaic.analytics.event_files import ScalarChunk, Series
from mosaic.analytics.headline import MARKS_KEPT, Headline, HeadlineTracker


def chunk(
    points: dict[str, list[tuple[int, float, float]]], source: str = "runs/x", purge_from: int | None = None
) -> ScalarChunk:
    """Points are (step, wall time, value)."""
    made = ScalarChunk(source, purge_from)
    for tag, rows in points.items():
        made.series[tag] = Series()
        for row in rows:
            made.series[tag].append(*row)
    return made


def headline_of(*chunks: ScalarChunk, total_steps: int | None = 1000) -> Headline:
    tracker = HeadlineTracker(total_steps)
    for one in chunks:
        tracker.update([one])
    return tracker.headline()


def returns(steps: range, value: float = 1.0) -> dict[str, list[tuple[int, float, float]]]:
    return {"charts/episodic_return": [(step, float(step), value) for step in steps]}


def test_a_run_without_scalars_is_starting() -> None:
    assert headline_of() == Headline(total_steps=1000)
    assert headline_of(chunk({}, purge_from=40)).phase == "starting"


def test_a_training_run() -> None:
    headline = headline_of(
        chunk(
            {
                "charts/episodic_return": [(10, 1.0, 20.0), (30, 2.0, 40.0)],
                "charts/SPS": [(30, 2.0, 900.0), (60, 3.0, 950.0)],
                "losses/value_loss": [(250, 4.0, 0.1)],
                "time/rollout": [(60, 3.0, 0.75)],
                "time/update": [(60, 3.0, 0.25)],
                "something/else": [(10**9, 3.0, 0.25)],
            }
        )
    )
    assert headline == Headline(
        step=250,
        total_steps=1000,
        sps=80.0,
        last_return=40.0,
        mean_return=30.0,
        episodes=2,
        progress=0.25,
        phase="training",
        time_shares={"rollout": 0.75, "update": 0.25},
    )


def test_the_mean_is_over_the_last_hundred_episodes() -> None:
    headline = headline_of(chunk(returns(range(50), -1.0)), chunk(returns(range(50, 150), 3.0)))
    assert (headline.mean_return, headline.episodes) == (3.0, 150)


def test_stable_baselines_names_are_understood() -> None:
    headline = headline_of(
        chunk({"rollout/ep_rew_mean": [(500, 1.0, 33.0)], "time/fps": [(500, 1.0, 1200.0)]}), total_steps=None
    )
    assert (headline.step, headline.mean_return, headline.sps) == (500, 33.0, 1200.0)
    assert (headline.progress, headline.time_shares) == (None, {})


def test_speed_is_steps_over_the_last_seconds_whatever_the_script_calls_it() -> None:
    slow = [(step, step / 10, 0.0) for step in range(1000)]
    fast = [(1000 + step, 100 + step / 50, 0.0) for step in range(5000)]
    assert headline_of(chunk({"losses/a": slow + fast, "losses/b": slow})).sps == pytest.approx(50, rel=0.01)
    since_start = [(6000, 200.0, 31.0)]
    told = headline_of(chunk({"losses/a": slow + fast, "charts/SPS": since_start}))
    assert told.sps == pytest.approx(50, rel=0.01)
    assert headline_of(chunk({"losses/a": slow[:1]})).sps is None
    assert headline_of(chunk({"losses/a": slow[:1], "charts/SPS": [(0, 0.0, 12.0)]})).sps == 12.0


def test_a_script_that_writes_seldom_has_a_speed_too() -> None:
    rows = [(0, 0.0, 0.0), (600, 60.0, 0.0), (3000, 120.0, 0.0)]
    assert headline_of(chunk({"losses/a": rows})).sps == pytest.approx(40)


def test_evaluation_that_is_newer_than_training_shows() -> None:
    training = chunk({"charts/SPS": [(900, 10.0, 5.0)]})
    evaluation = chunk({"eval/episodic_return": [(0, 11.0, 5.0), (1, 12.0, 7.0)]}, source="tensorboard_eval")
    headline = headline_of(training, evaluation)
    assert (headline.phase, headline.step, headline.sps) == ("evaluating", 900, 5.0)
    assert headline_of(training, evaluation, chunk({"charts/SPS": [(950, 20.0, 5.0)]})).phase == "training"
    alone = headline_of(evaluation)
    assert (alone.phase, alone.last_return, alone.mean_return, alone.episodes) == ("evaluating", 7.0, 6.0, 2)


def test_a_purge_takes_back_steps_and_episodes() -> None:
    headline = headline_of(
        chunk(returns(range(300), 1.0)),
        chunk(returns(range(200, 210), 5.0), purge_from=200),
    )
    assert (headline.step, headline.episodes) == (209, 210)
    assert headline.last_return == 5.0


@pytest.mark.parametrize(("many", "off_by"), [(MARKS_KEPT, 0), (5 * MARKS_KEPT, 8), (40 * MARKS_KEPT, 64)])
def test_a_purge_far_back_counts_nearly_right(many: int, off_by: int) -> None:
    headline = headline_of(chunk(returns(range(many))), chunk({}, purge_from=many // 3))
    assert headline.step == many // 3
    assert many // 3 - off_by <= headline.episodes <= many // 3


def test_a_purge_of_the_last_episodes_counts_exactly() -> None:
    many = 5 * MARKS_KEPT + 3
    headline = headline_of(
        chunk(returns(range(many))), chunk(returns(range(many - 7, many)), purge_from=many - 7)
    )
    assert headline.episodes == many


def test_a_script_that_starts_over_in_a_new_folder_is_followed() -> None:
    old = chunk({"charts/SPS": [(800, 10.0, 5.0)]}, source="runs/one")
    new = chunk({"charts/SPS": [(16, 20.0, 4.0)]}, source="runs/two")
    assert headline_of(new, old).step == 16


def test_numbers_that_are_none_reach_json_as_null() -> None:
    for odd in (math.nan, math.inf, -math.inf):
        headline = headline_of(
            chunk(
                {
                    "charts/episodic_return": [(1, 1.0, 4.0), (2, 1.0, odd)],
                    "charts/SPS": [(1, 1.0, odd)],
                    "time/rollout": [(1, 1.0, odd)],
                    "rollout/ep_rew_mean": [(1, 1.0, odd)],
                }
            )
        )
        data = json.loads(json.dumps(headline.as_json(), allow_nan=False))
        assert (data["last_return"], data["mean_return"], data["sps"]) == (None, 4.0, None)
        raw = Headline(sps=odd, mean_return=odd, time_shares={"a": odd, "b": 0.5})
        assert json.loads(json.dumps(raw.as_json(), allow_nan=False))["time_shares"] == {"b": 0.5}


def test_json_has_all_of_it() -> None:
    headline = Headline(7, 10, 1.5, 2.5, 3.5, 4, 0.7, "training", {"rollout": 0.5})
    assert Headline(**json.loads(json.dumps(headline.as_json()))) == headline
