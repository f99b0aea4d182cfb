"""What a tracker gets of a run's curves: each point once, whatever happens to run and tracker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosaic.analytics.event_files import EventWriter
from mosaic.tracking.feed import Feed, Point, new_videos, rows, without_rows


def write(
    folder: Path, steps: range, purge: int | None = None, tag: str = "charts/x", offset: float = 0.0
) -> None:
    writer = EventWriter(folder, purge)
    for step in steps:
        writer.add_scalar(tag, step + offset, step)
    writer.close()


def steps_of(points: list[Point], tag: str = "charts/x") -> list[int]:
    return [point.step for point in points if point.tag == tag]


def again(feed: Feed, folder: Path) -> Feed:
    """The feed of another process, which has read what this one has written down."""
    return Feed(folder, json.loads(json.dumps(feed.progress())))


def test_each_point_comes_once_and_the_newest_step_waits_for_the_next(tmp_path: Path) -> None:
    feed = Feed(tmp_path, {})
    assert feed.take() == []
    write(tmp_path / "runs" / "a", range(3))
    assert steps_of(feed.take()) == [0, 1]
    assert feed.take() == []
    write(tmp_path / "runs" / "a", range(3, 5))
    assert steps_of(feed.take()) == [2, 3]
    assert steps_of(feed.take(ended=True)) == [4]


def test_another_process_goes_on_where_the_last_one_was(tmp_path: Path) -> None:
    write(tmp_path / "runs" / "a", range(5))
    feed = Feed(tmp_path, {})
    assert steps_of(feed.take()) == [0, 1, 2, 3]
    feed = again(feed, tmp_path)
    write(tmp_path / "runs" / "a", range(5, 7))
    assert steps_of(feed.take(ended=True)) == [4, 5, 6]


@pytest.mark.parametrize("restarted", [False, True])
def test_what_a_resumed_run_writes_again_is_left_out(tmp_path: Path, restarted: bool) -> None:
    write(tmp_path / "runs" / "a", range(10))
    write(tmp_path / "runs" / "a", range(10), tag="losses/y")
    feed = Feed(tmp_path, {})
    assert steps_of(feed.take(ended=True)) == list(range(10))
    if restarted:
        feed = again(feed, tmp_path)
    # Back to step 4, and on from there: 4 to 9 are known.
    write(tmp_path / "runs" / "a", range(4, 12), purge=4)
    assert steps_of(feed.take(ended=True)) == [10, 11]
    # Once more, to before anything that was left out.
    write(tmp_path / "runs" / "a", range(2, 13), purge=2)
    points = feed.take(ended=True)
    assert (steps_of(points), steps_of(points, "losses/y")) == ([12], [])


def test_a_purge_does_not_touch_curves_that_end_before_it(tmp_path: Path) -> None:
    write(tmp_path / "runs" / "a", range(3), tag="eval/episodic_return")
    write(tmp_path / "runs" / "a", range(10))
    feed = Feed(tmp_path, {})
    feed.take(ended=True)
    write(tmp_path / "runs" / "a", range(3), purge=8, tag="eval/episodic_return", offset=9.0)
    found = [point.value for point in feed.take(ended=True) if point.tag == "eval/episodic_return"]
    assert found == [9.0, 10.0, 11.0], "the second evaluation of three episodes is a new one"


def test_a_second_folder_of_curves_is_told_apart(tmp_path: Path) -> None:
    write(tmp_path / "runs" / "a", range(2))
    feed = Feed(tmp_path, {})
    feed.take(ended=True)
    write(tmp_path / "runs" / "b", range(2))
    assert {point.tag for point in again(feed, tmp_path).take(ended=True)} == {"b/charts/x"}


@pytest.mark.parametrize(
    "progress", [{"cursor": "?"}, {"tops": 3}, {"held": [["x"]]}, {"tops": {"a": {"b": "c"}}}]
)
def test_a_damaged_note_begins_anew(tmp_path: Path, progress: dict[str, object]) -> None:
    write(tmp_path / "runs" / "a", range(2))
    assert steps_of(Feed(tmp_path, progress).take(ended=True)) == [0, 1]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), max_size=30), st.integers(0, 40))
def test_rows_hold_every_point_and_can_be_skipped(taken: list[tuple[str, int]], count: int) -> None:
    points = [Point(tag, step, float(at), float(at)) for at, (tag, step) in enumerate(taken)]
    made = rows(points)
    assert sorted(value for row in made for value in row.values.values()) == [point.value for point in points]
    assert rows(without_rows(points, count)) == made[count:]


def test_a_row_is_one_step_and_episodes_are_counted_apart() -> None:
    points = [Point("a", 1, 0.0, 1.0), Point("b", 1, 0.1, 2.0), Point("eval/episodic_return", 1, 0.2, 3.0)]
    first, second = rows(points)
    assert (first.values, first.counts_episodes) == ({"a": 1.0, "b": 2.0}, False)
    assert (second.values, second.counts_episodes) == ({"eval/episodic_return": 3.0}, True)


def test_a_video_is_taken_when_it_is_whole(tmp_path: Path) -> None:
    film = tmp_path / "videos" / "one.mp4"
    film.parent.mkdir()
    film.write_bytes(b"x")
    assert new_videos(tmp_path, set(), ended=False) == []
    (found,) = new_videos(tmp_path, set(), ended=True)
    assert new_videos(tmp_path, {found.path}, ended=True) == []
