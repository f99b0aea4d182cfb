"""Which piece of an axis is shown."""

from __future__ import annotations

import pytest

from mosaic.analytics.scales import moved, scaled, zoomed

WHOLE = (0.0, 1000.0)


def test_a_piece_ends_where_the_whole_ends_and_may_be_chosen_backwards() -> None:
    assert zoomed((400.0, 200.0), WHOLE) == (200.0, 400.0)
    assert zoomed((-50.0, 300.0), WHOLE) == (0.0, 300.0)
    assert zoomed((-50.0, 3000.0), WHOLE) is None


def test_a_piece_never_shrinks_to_nothing() -> None:
    low, high = zoomed((500.0, 500.0), WHOLE) or WHOLE
    assert low == 500.0 and high > low


def test_moving_keeps_the_length_and_stops_at_the_ends() -> None:
    assert moved((100.0, 200.0), 50.0, WHOLE) == (150.0, 250.0)
    assert moved((100.0, 200.0), -500.0, WHOLE) == (0.0, 100.0)
    assert moved((100.0, 200.0), 5000.0, WHOLE) == (900.0, 1000.0)


def test_scaling_keeps_the_place_under_the_pointer() -> None:
    assert scaled((0.0, 1000.0), 0.5, 200.0, WHOLE) == (100.0, 600.0)
    assert scaled((400.0, 600.0), 0.5, None, WHOLE) == pytest.approx((450.0, 550.0))
    assert scaled((400.0, 600.0), 100.0, None, WHOLE) is None
