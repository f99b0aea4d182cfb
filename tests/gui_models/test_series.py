"""Curves as arrays: thinned without losing a peak, smoothed, averaged."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gym_gui.models.charting import ChartOptions, line_of, mean_line
from gym_gui.models.series import Curve, Pyramid, curve_of, nearest, thin, trend_of, window_of
from mosaic.analytics.store import NO_POINTS, MetricSeries


def curve(steps: object, values: object) -> Curve:
    steps = np.asarray(steps, np.float64)
    return Curve(steps, steps, np.asarray(values, np.float64))


def test_a_curve_leaves_out_what_is_not_a_number_and_counts_it() -> None:
    values = np.array([5.0, 7.0, math.nan, math.inf])
    found = curve_of(MetricSeries(np.array([10, 20, 30, 40]), values, np.array([1.0, 2.0, 3.0, 4.0])))
    assert found.steps.tolist() == [10, 20]
    assert found.times.tolist() == [1, 2]
    assert found.values.tolist() == [5.0, 7.0]
    assert found.lost == 2
    assert len(curve_of(NO_POINTS)) == 0


def test_thinning_keeps_every_peak_in_its_place() -> None:
    values = np.zeros(100_000)
    values[[12_345, 77_777]] = 50.0, -30.0
    x = np.arange(100_000.0)
    xs, ys = thin(x, values, Pyramid(values), 0, 100_000, 500)
    assert len(xs) <= 1000
    assert (ys.max(), ys.min()) == (50.0, -30.0)
    assert abs(xs[ys.argmax()] - 12_345) <= 100_000 / 500
    assert np.all(np.diff(xs) >= 0)


def test_thinning_a_piece_shows_its_points_one_by_one_with_a_neighbour_on_each_side() -> None:
    values = np.arange(100_000.0)
    xs, ys = thin(values, values, Pyramid(values), 500.5, 510.5, 800)
    assert xs.tolist() == list(range(500, 512))
    assert ys.tolist() == xs.tolist()


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=600),
    st.integers(2, 40),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_what_is_thinned_never_leaves_the_range_of_what_it_shows(
    values: list[float], columns: int, one: float, two: float
) -> None:
    numbers = np.array(values)
    x = np.arange(len(values), dtype=np.float64)
    low, high = sorted((one * len(values), two * len(values)))
    xs, ys = thin(x, numbers, Pyramid(numbers), low, high, columns)
    inside = numbers[(x >= low) & (x <= high)]
    assert len(xs) == len(ys) <= 2 * columns + 2
    if len(inside):
        assert ys.min() <= inside.min() and ys.max() >= inside.max()
    assert not len(ys) or (ys.min() >= numbers.min() and ys.max() <= numbers.max())


def test_a_curve_is_smoothed_over_steps_and_not_over_points() -> None:
    dense, sparse = np.arange(0, 1000.0), np.arange(1000, 10_000.0, 100)
    x = np.concatenate([dense, sparse])
    values = np.where(np.arange(len(x)) % 2 == 0, 1.0, 3.0)
    found = trend_of(x, values, 900.0)
    assert found is not None
    assert found.mean[len(found.x) // 4] == pytest.approx(2.0, abs=0.2)
    # Nine points of the sparse half fill a window, where the dense half has nine hundred.
    near = x[(x > 5000 - 500) & (x < 5000 + 400)]
    index = int(np.argmin(abs(found.x - 5000)))
    around = values[np.isin(x, near)]
    assert found.mean[index] == pytest.approx(around.mean(), abs=0.25)
    assert len(found.x) < 200


def test_a_trend_has_spread_and_extremes_and_a_band_that_no_value_lies_beyond() -> None:
    generator = np.random.default_rng(1)
    values = np.minimum(generator.normal(480, 60, 8202), 500.0)
    values[4000] = 20.0
    found = trend_of(np.arange(8202.0) * 60, values, 10_000.0)
    assert found is not None
    assert len(found.x) < 600
    assert found.greatest.max() == 500.0 and found.high.max() <= 500.0
    assert found.least.min() == 20.0
    assert abs(found.x[found.least.argmin()] - 4000 * 60) < 10_000 / 9
    middle = len(found.x) // 2
    assert found.std[middle] == pytest.approx(values.std(), rel=0.2)
    assert np.all(np.abs(np.diff(found.mean)) < 15), "a clear line"


def test_one_value_that_is_very_large_leaves_the_digits_of_the_others() -> None:
    values = np.full(5000, 0.25)
    values[:10] = 1e15
    found = trend_of(np.arange(5000.0), values, 100.0)
    assert found is not None
    assert found.mean[-1] == 0.25 and found.std[-1] == 0.0


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=300), st.floats(0.5, 1e3), st.floats(0.001, 50))
def test_a_trend_stays_inside_the_values(values: list[float], window: float, step: float) -> None:
    numbers = np.array(values)
    found = trend_of(np.arange(len(values)) * step, numbers, window)
    if found is not None:
        room = 1e-6 * (1 + np.abs(numbers).max())
        for edge in (found.mean, found.low, found.high, found.least, found.greatest):
            assert edge.min() >= numbers.min() - room and edge.max() <= numbers.max() + room
        assert np.all(np.diff(found.x) > 0)
        part = found.piece(found.x[0], found.x[-1], 5)
        assert (part.x[0], part.x[-1]) == (found.x[0], found.x[-1])
        assert (part.least.min(), part.greatest.max()) == (found.least.min(), found.greatest.max())


def test_few_points_are_left_as_they_are() -> None:
    assert trend_of(np.arange(5.0), np.arange(5.0), 0.0) is None
    assert trend_of(np.arange(5.0) * 100, np.arange(5.0), 10.0) is None


def test_the_window_is_a_round_share_of_the_axis_that_does_not_change_with_every_step() -> None:
    assert window_of(500_000, 0.02) == 10_000
    assert window_of(501_000, 0.02) == 10_000
    assert window_of(0, 0.02) == window_of(100, 0) == 0


@pytest.mark.parametrize(("at", "index"), [(-5, 0), (0.4, 0), (0.6, 1), (99, 3)])
def test_the_nearest_point_is_found(at: float, index: int) -> None:
    assert nearest(np.arange(4.0), at) == index


def test_of_no_points_none_is_nearest() -> None:
    assert nearest(np.empty(0), 1.0) is None


def test_the_mean_of_seeds_has_their_standard_deviation_around_it() -> None:
    options = ChartOptions(smoothing=0.0)
    steps = np.arange(0, 1000.0)
    lines = [line_of(curve(steps, np.full(1000, value)), options) for value in (1.0, 2.0, 3.0)]
    line = mean_line("three", 0, lines)
    assert line.trend is not None
    assert np.allclose(line.shown, 2.0)
    assert np.allclose(line.trend.std, np.std([1.0, 2.0, 3.0]))
    assert (line.trend.least.min(), line.trend.greatest.max()) == (1.0, 3.0)


def test_seeds_need_no_steps_in_common_and_may_end_at_different_ones() -> None:
    options = ChartOptions(smoothing=0.0)
    short = curve(np.arange(0, 500.0, 7), np.full(72, 10.0))
    long = curve(np.arange(3, 1000.0, 11), np.full(91, 20.0))
    line = mean_line("two", 0, [line_of(short, options), line_of(long, options)])
    assert np.allclose(line.shown[100:180], 15.0)
    assert np.allclose(line.shown[-50:], 20.0)


def test_the_mean_of_nothing_is_an_empty_line() -> None:
    assert len(mean_line("none", 0, [line_of(curve([], []), ChartOptions())]).x) == 0
