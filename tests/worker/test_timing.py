"""The speed that a run reports is that of its own process, and says something from the first time on."""

from __future__ import annotations

import pytest

from cleanrl_worker.kit import timing
from cleanrl_worker.kit.timing import Stopwatch


class Curves:
    """Keeps what is logged, as (tag, value, step)."""

    def __init__(self) -> None:
        self.logged: list[tuple[str, float, int]] = []

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        self.logged.append((tag, value, step))

    def speeds(self) -> list[tuple[float, int]]:
        return [(value, step) for tag, value, step in self.logged if tag == "charts/SPS"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(timing, "perf_counter", lambda: now[0])
    return now


def test_a_resumed_run_counts_its_own_steps_and_time(clock: list[float]) -> None:
    watch, curves = Stopwatch(), Curves()
    clock[0] += 30.0
    watch.start(5000)
    watch.enter("act")
    clock[0] += 0.125
    watch.report(curves, 5010)
    assert not curves.logged
    watch.enter("update")
    clock[0] += 0.375
    watch.report(curves, 5050)
    assert curves.speeds() == [(100.0, 5050)]
    assert ("time/act", 0.25, 5050) in curves.logged
    assert ("time/update", 0.75, 5050) in curves.logged


def test_later_reports_come_at_most_once_a_second(clock: list[float]) -> None:
    watch, curves = Stopwatch(), Curves()
    watch.start(0)
    for step in range(1, 41):
        clock[0] += 0.125
        watch.report(curves, step)
    assert [step for _, step in curves.speeds()] == [2, 10, 18, 26, 34]
    assert [value for value, _ in curves.speeds()] == [8.0] * 5
    watch.finish(curves)
    assert len(curves.speeds()) == 5


def test_a_run_too_short_for_a_report_gets_one_at_its_end(clock: list[float]) -> None:
    watch, curves = Stopwatch(), Curves()
    watch.start(0)
    watch.finish(curves)
    assert not curves.logged
    clock[0] += 0.0625
    watch.report(curves, 10)
    watch.finish(curves)
    assert curves.speeds() == [(160.0, 10)]
