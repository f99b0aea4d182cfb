"""What a chart shows, decided without a window."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from gym_gui.models import scales
from gym_gui.models.charting import (
    MOST_POINTS,
    ChartOptions,
    batches_line,
    drawings,
    full_range,
    line_of,
    readings,
    to_csv,
    value_range,
)
from gym_gui.models.metrics import beside_main, main_tag, reward_per_step, sections
from gym_gui.models.series import Curve
from mosaic.analytics.eval_summary import EvalScores, EvalSummary


def curve(count: int = 100, slope: float = 1.0) -> Curve:
    steps = np.arange(count, dtype=np.float64)
    return Curve(steps * 10, 1000.0 + steps / 2, steps * slope)


def test_a_hundred_runs_of_a_hundred_thousand_points_are_drawn_with_few() -> None:
    lines = [line_of(curve(100_000), ChartOptions(), str(number)) for number in range(100)]
    painted = drawings(lines, 0, 1e6, 1600)
    assert sum(len(drawing.main[0]) for drawing in painted) <= MOST_POINTS
    assert all(drawing.raw is None for drawing in painted)


def test_raw_values_lie_behind_the_smoothed_line() -> None:
    (drawing,) = drawings([line_of(curve(), ChartOptions(smoothing=0.9))], 0, 1000, 500)
    assert drawing.raw is not None
    assert drawing.raw[1][-1] == 99.0
    assert drawing.main[1][-1] < 99.0


def test_without_smoothing_there_is_one_line() -> None:
    (drawing,) = drawings([line_of(curve(), ChartOptions(smoothing=0.0))], 0, 1000, 500)
    assert drawing.raw is None


def test_over_time_a_curve_begins_at_zero() -> None:
    line = line_of(curve(), ChartOptions(axis="time"))
    assert (line.x[0], line.x[-1]) == (0.0, 49.5)


def test_the_range_holds_all_lines() -> None:
    lines = [line_of(curve(10), ChartOptions()), line_of(curve(20), ChartOptions())]
    assert full_range(lines) == (0.0, 190.0)
    assert full_range([]) is None
    assert full_range([line_of(curve(1), ChartOptions())]) == (-1.0, 1.0)


def test_the_height_fits_what_is_seen() -> None:
    painted = drawings([line_of(curve(), ChartOptions(smoothing=0.0))], 0, 100, 500)
    low, high = value_range(painted, 0, 100)
    assert -1 < low < 0
    assert 10 < high < 11
    assert value_range([], 0, 1) == (0.0, 1.0)


def test_the_pointer_reads_the_nearest_value_of_each_line_highest_first() -> None:
    options = ChartOptions(smoothing=0.0)
    found = readings([line_of(curve(), options, "a"), line_of(curve(slope=3), options, "b")], 52.0)
    assert [(one.label, one.x, one.value) for one in found] == [("b", 50.0, 15.0), ("a", 50.0, 5.0)]


def test_csv_has_every_point_not_the_thinned_ones() -> None:
    text = to_csv("loss", [line_of(curve(5000), ChartOptions(), "a")], "step")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 5000
    assert (rows[3]["line"], rows[3]["metric"], rows[3]["step"], rows[3]["value"]) == (
        "a",
        "loss",
        "30",
        "3.0",
    )


def test_an_evaluation_is_drawn_batch_by_batch() -> None:
    scores = [
        EvalScores(number, 10, 100.0 * number, 0, 0, 0, 5.0, (0, 0), 0, 0, 0, 0, 0, 1.0) for number in (1, 2)
    ]
    line = batches_line(EvalSummary({}, 20, scores[-1], tuple(scores)))
    assert line.x.tolist() == [1.0, 2.0]
    assert line.band is not None
    assert (line.shown.tolist(), line.band[0].tolist()) == ([100.0, 200.0], [95.0, 195.0])


def test_metrics_stand_in_the_order_people_look_for_them() -> None:
    tags = ["time/env", "losses/value_loss", "charts/SPS", "charts/episodic_return", "zeta", "losses/entropy"]
    found = sections(tags)
    assert [section.name for section in found] == ["charts", "losses", "time", "other"]
    assert found[0].tags == ("charts/episodic_return", "charts/SPS")
    assert [section.tags for section in sections(tags, "LOSS value")] == [("losses/value_loss",)]


def test_the_return_comes_first_and_losses_beside_it() -> None:
    tags = ["losses/value_loss", "charts/episodic_return", "charts/SPS", "losses/entropy", "time/env"]
    assert main_tag(tags) == "charts/episodic_return"
    assert beside_main(tags) == ["losses/value_loss", "losses/entropy", "charts/SPS"]
    assert main_tag([]) is None
    assert main_tag(["mine"]) == "mine"


def test_the_reward_of_a_step_counts_long_episodes_more() -> None:
    assert reward_per_step([10.0, 1.0], [10.0, 100.0]) == pytest.approx(0.1)
    assert reward_per_step([], []) is None


@pytest.mark.parametrize(
    ("values", "spacing", "words"),
    [
        ([0, 125_000, 250_000], 125_000, ["0", "125k", "250k"]),
        ([0, 500_000, 1_000_000], 500_000, ["0", "0.5M", "1.0M"]),
        ([0, 50, 100], 50, ["0", "50", "100"]),
    ],
)
def test_steps_along_an_axis_share_a_unit(values: list[float], spacing: float, words: list[str]) -> None:
    assert scales.step_ticks(values, spacing) == words


def test_values_along_an_axis_have_as_many_decimals_as_they_need() -> None:
    assert scales.value_ticks([-0.006, -0.003, 0.0], 0.003) == ["−0.006", "−0.003", "0.000"]
    assert scales.value_ticks([21000, 22500], 1500) == ["21,000", "22,500"]


@pytest.mark.parametrize(
    ("low", "high"), [(0, 487.3), (-0.015, -0.003), (0, 5e5), (21235, 22544), (-1e-9, 1e-9)]
)
def test_ticks_are_few_round_and_inside(low: float, high: float) -> None:
    spacing, ticks = scales.nice_ticks(low, high, 5)
    assert 2 <= len(ticks) <= 5
    assert all(low - spacing * 1e-6 <= tick <= high + spacing * 1e-6 for tick in ticks)


def test_an_empty_range_has_no_ticks() -> None:
    assert scales.nice_ticks(1.0, 1.0, 5)[1] == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(487.31, "487.3"), (0.0, "0.000"), (-0.00321, "−0.003210"), (21940.4, "21,940"), (1e-7, "1.000e−07")],
)
def test_a_value_has_four_digits_that_mean_something(value: float, text: str) -> None:
    assert scales.value_text(value) == text
