"""What a chart shows, decided without a window."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from gym_gui.models.charting import (
    MOST_POINTS,
    ChartOptions,
    above_zero,
    batches_line,
    beside_main,
    common_window,
    drawings,
    full_range,
    head_note,
    in_powers,
    keys_of,
    line_of,
    main_tag,
    readings,
    reward_per_step,
    sections,
    to_csv,
    value_range,
)
from gym_gui.models.series import Curve
from mosaic.analytics import scales
from mosaic.analytics.eval_summary import EvalScores, EvalSummary
from support.gui_records import record


def curve(count: int = 100, slope: float = 1.0) -> Curve:
    steps = np.arange(count, dtype=np.float64)
    return Curve(steps * 10, 1000.0 + steps / 2, steps * slope)


def test_a_hundred_runs_of_a_hundred_thousand_points_are_drawn_with_few() -> None:
    lines = [line_of(curve(100_000), ChartOptions(), str(number)) for number in range(100)]
    painted = drawings(lines, 0, 1e6, 1600)
    assert sum(len(drawing.main[0]) for drawing in painted) <= MOST_POINTS
    assert all(drawing.band is None and drawing.extremes is None for drawing in painted)


def test_a_long_curve_is_a_line_with_its_band_and_extremes_and_a_short_one_has_its_points() -> None:
    (drawing,) = drawings([line_of(curve(5000), ChartOptions(smoothing=0.05))], 0, 50_000, 500)
    assert drawing.band is not None and drawing.extremes is not None and drawing.raw is None
    assert np.all(drawing.extremes[1] <= drawing.band[1]) and np.all(drawing.extremes[2] >= drawing.band[2])
    (drawing,) = drawings([line_of(curve(70), ChartOptions(smoothing=0.2))], 0, 700, 500)
    assert drawing.raw is not None and drawing.raw[1][-1] == 69.0
    assert drawing.main[1][-1] < 69.0


def test_one_point_is_a_dot() -> None:
    line = line_of(curve(1), ChartOptions())
    (drawing,) = drawings([line], -1, 1, 500)
    assert drawing.dots is not None
    assert [one.tolist() for one in drawing.dots] == [[0.0], [0.0]]
    assert full_range([replace(line, x=np.array([500.0]))]) == (0.0, 1000.0)


def test_without_smoothing_there_is_one_line() -> None:
    (drawing,) = drawings([line_of(curve(), ChartOptions(smoothing=0.0))], 0, 1000, 500)
    assert (drawing.raw, drawing.band) == (None, None)


def test_lines_of_one_chart_have_one_window() -> None:
    options = ChartOptions(smoothing=0.1)
    window = common_window([curve(100), curve(1000)], options)
    assert window == 1000
    assert line_of(curve(100), options, window=window).about == "mean over 1k steps"


def test_on_a_logarithmic_axis_places_are_powers_of_ten() -> None:
    options = ChartOptions(smoothing=0.0, log_x=True)
    line = line_of(curve(), options)
    assert (line.x[0], line.x[-1]) == (1.0, pytest.approx(np.log10(990)))
    assert [row.split(",")[2] for row in to_csv("loss", [line], options).splitlines()[1:3]] == ["10", "20"]


def test_a_logarithmic_height_needs_values_above_zero() -> None:
    assert not above_zero([line_of(curve(), ChartOptions())])
    positive = Curve(np.arange(3.0), np.arange(3.0), np.array([1.0, 10.0, 100.0]))
    line = line_of(positive, ChartOptions(smoothing=0.0))
    assert above_zero([line])
    (drawing,) = drawings([line], 0, 2, 500)
    assert in_powers(drawing).main[1].tolist() == [0.0, 1.0, 2.0]


def test_the_legend_names_several_lines_and_explains_one() -> None:
    options = ChartOptions(smoothing=0.1)
    one, other = line_of(curve(), options, "a", 0), line_of(curve(), options, "b", 1)
    assert [(key.kind, key.text) for key in keys_of([one, other])] == [("line", "a"), ("line", "b")]
    assert [key.text for key in keys_of([one])] == [
        "a · mean over 100 steps",
        "± 1 std",
        "minimum to maximum",
    ]


def test_the_number_beside_a_title_is_the_headline_s() -> None:
    run = record(headline={"mean_return": 487.3, "sps": 21_940.4})
    line = line_of(curve(5), ChartOptions())
    assert head_note(run, "charts/episodic_return", line) == "mean return 487.3"
    assert head_note(run, "charts/SPS", line) == "21,940 steps/s"
    assert head_note(run, "losses/value_loss", line) == "4.000"
    assert head_note(None, "losses/value_loss", replace(line, lost=3)) == "3 not a number · 4.000"


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


def test_where_a_line_has_ended_it_has_no_value() -> None:
    options = ChartOptions(smoothing=0.0)
    lines = [line_of(curve(100), options, "short"), line_of(curve(1000), options, "long")]
    assert [one.label for one in readings(lines, 1000)] == ["long", "short"]
    assert [one.label for one in readings(lines, 5000)] == ["long"]


def test_csv_has_every_point_not_the_thinned_ones() -> None:
    text = to_csv("loss", [line_of(curve(5000), ChartOptions(), "a")], ChartOptions())
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
        EvalScores(number, 10, 100.0 * number, 0, 0, 900, 5.0, (0, 0), 0, 0, 0, 0, 0, 1.0)
        for number in (1, 2)
    ]
    line = batches_line(EvalSummary({}, 20, scores[-1], tuple(scores)))
    assert line.x.tolist() == [1.0, 2.0]
    assert line.trend is not None
    assert (line.shown.tolist(), line.trend.low.tolist()) == ([100.0, 200.0], [95.0, 195.0])


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


@pytest.mark.parametrize(
    ("low", "high"), [(21, 39), (499.99999, 500.00001), (1_000_000, 1_000_400), (0.1, 0.29)]
)
@pytest.mark.parametrize("most", [1, 2, 3, 8])
def test_there_is_more_than_one_tick_and_no_two_have_the_same_words(
    low: float, high: float, most: int
) -> None:
    for ticks, words in (
        (scales.nice_ticks, scales.value_ticks),
        (scales.nice_steps, scales.step_ticks),
        (scales.nice_times, scales.time_ticks),
    ):
        spacing, found = ticks(low, high, most)
        assert len(found) >= 2
        assert len(set(words(found, spacing))) == len(found)


@pytest.mark.parametrize(("low", "high"), [(1, 4), (0, 3), (1, 14), (0, 9.5), (10, 22)])
def test_steps_along_an_axis_are_whole(low: float, high: float) -> None:
    _, found = scales.nice_steps(low, high, 6)
    assert 2 <= len(found) <= 6
    assert all(place.is_integer() and low <= place <= high for place in found)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.0, 5.7, ["1", "10", "100", "1,000", "10,000", "100,000"]),
        (1.2, 2.1, ["20", "50", "100"]),
        (-2.1, -0.9, ["0.01", "0.02", "0.05", "0.1"]),
        (2.691, 2.7, ["492", "494", "496", "498", "500"]),
        (-0.162, -0.16, ["0.6890", "0.6895", "0.6900", "0.6905", "0.6910", "0.6915"]),
        (-6.0, -3.5, ["1e−06", "1e−05", "0.0001"]),
    ],
)
def test_ticks_of_a_logarithmic_axis_are_round(low: float, high: float, words: list[str]) -> None:
    spacing, found = scales.log_ticks(low, high, 6)
    assert scales.log_value_ticks(found, spacing) == words


def test_steps_and_times_of_a_logarithmic_axis_have_units() -> None:
    assert scales.log_step_ticks([2.0, 3.0, 4.30103], 1.0) == ["100", "1k", "20k"]
    assert scales.log_time_ticks([1.0, 2.0], 1.0) == ["0:10", "1:40"]


def test_an_axis_that_has_just_become_logarithmic_is_asked_for_its_old_range() -> None:
    spacing, found = scales.log_ticks(0.0, 250_000.0, 6)
    for words in (scales.log_step_ticks, scales.log_time_ticks, scales.log_value_ticks):
        assert len(words(found, spacing)) == len(found) > 1


def test_an_empty_range_has_no_ticks() -> None:
    assert scales.nice_ticks(1.0, 1.0, 5)[1] == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(487.31, "487.3"), (0.0, "0.000"), (-0.00321, "−0.003210"), (21940.4, "21,940"), (1e-7, "1.000e−07")],
)
def test_a_value_has_four_digits_that_mean_something(value: float, text: str) -> None:
    assert scales.value_text(value) == text
