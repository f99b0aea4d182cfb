"""The run list: order, groups, filters, words, and thousands of runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QItemSelectionModel
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from gym_gui.models.filters import RunFilter
from gym_gui.models.listing import Listing
from gym_gui.models.runs import RunBook
from gym_gui.services.sparklines import POINTS, Sketch, mean_curve, sketch_returns
from gym_gui.ui.presenters.window import Labels, changes_for, shared_labels
from gym_gui.ui.widgets.run_list import RunListModel
from mosaic.analytics.event_files import ScalarChunk, Series
from mosaic.client import RunRecord
from support.window import live, made_run


def seeds(number: int, *wanted: int, **changes: object) -> list[RunRecord]:
    """Runs of one configuration, submitted in a moment."""
    first = made_run(number, total_timesteps=5000 + number, **changes)
    found = []
    for at, seed in enumerate(wanted):
        run = made_run(number * 100 + at, seed=seed, total_timesteps=5000 + number, **changes)
        found.append(replace(run, submitted_at=first.submitted_at + at))
    return found


def listing_of(*runs: RunRecord) -> Listing:
    book = RunBook()
    listing = Listing(book)
    listing.update(book.update(runs))
    return listing


def test_the_newest_run_stands_first_whenever_it_is_told_of() -> None:
    book = RunBook()
    book.update([made_run(5), made_run(9)])
    book.update([made_run(7)])
    book.update([made_run(2)])
    assert [int(key) for key in book.group_keys()] == [9, 7, 5, 2]
    assert [int(run.run_id) for run in book] == [9, 7, 5, 2]


def test_seeds_submitted_together_are_one_group_and_a_repetition_is_another() -> None:
    book = RunBook()
    book.update(seeds(1, 1, 2, 3))
    again = [replace(run, run_id=f"9{run.run_id[1:]}", submitted_at=9e9) for run in seeds(1, 1)]
    book.update(again)
    newest, first = (book.group(key) for key in book.group_keys())
    assert newest is not None and first is not None
    assert (newest.seeds, first.seeds) == ([1], [1, 2, 3])


def test_a_removed_run_leaves_its_group_and_the_last_takes_the_group_along() -> None:
    book = RunBook()
    first, second = seeds(1, 1, 2)
    book.update([first, second])
    book.remove([first.run_id])
    assert book.get(first.run_id) is None
    assert len(book) == 1
    book.settings(second)
    book.remove([second.run_id])
    assert book.group_keys() == []
    assert not any(kept for name, kept in vars(book).items() if name not in ("_ordered", "whole_queue")), (
        "nothing is kept of it"
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", 3),
        ("ppo", 2),
        ("ppo cart", 1),
        ("env:acrobot", 1),
        ("algo:dqn", 1),
        ("algo:acrobot", 0),
        ("tag:night", 1),
        ("seed:4", 1),
        ("mind the step", 1),
        ("state:completed", 3),
        ("state=completed", 3),
        ("state!=completed", 0),
        ("algo=ppo", 2),
        ("algo=pp", 0),
        ("env=acro*", 1),
        ("env=Acrobot-v1", 1),
        ("env!=Acrobot-v1", 2),
        ("tag=night", 1),
        ("tag=nig", 0),
        ("tag!=night", 2),
        ("name=ppo-cartpole-v1", 1),
        ('notes:"the step"', 1),
        ("return>400", 3),
        ("return>=487.25 return<=487.25", 3),
        ("return>487.25", 0),
        ("return<4k", 3),
        ("steps=500k", 3),
        ("seed=4", 1),
        ("seed!=4 ppo", 2),
        ("duration<1min", 3),
        ("duration>1h", 0),
        ("learning_rate=0.01", 1),
        ("learning-rate=1e-2", 1),
        ("learning_rate>0.001", 1),
        ("anneal_lr=true", 1),
        ("total_timesteps=1002", 1),
        ("nothing_like_it=1", 0),
        ("return>", 3),
        ("return>many", 0),
        ('"mind the', 1),
    ],
)
def test_words_find_runs_by_what_they_are(text: str, found: int) -> None:
    runs = [
        made_run(1),
        made_run(2, env_id="Acrobot-v1", tags=["night"]),
        made_run(
            3,
            algo="dqn",
            seed=4,
            extras={
                "notes": "Mind the step",
                "algo_params": {"learning_rate": 0.01, "anneal_lr": True},
            },
        ),
    ]
    book = RunBook()
    book.update(runs)
    assert sum(book.finds(RunFilter(text=text), run) for run in book) == found


def test_a_condition_that_cannot_be_understood_says_so() -> None:
    assert RunFilter(text="ppo return>400").problem == ""
    assert RunFilter(text="return>").problem == ""
    assert RunFilter(text="ppo return>many").problem.startswith("'many' is not a number")
    assert RunFilter(text="seed=x").problem.startswith("'x' is not a number")


def test_conditions_know_the_defaults_of_parameters() -> None:
    book = RunBook()
    listing = Listing(book)
    asked = made_run(2, extras={"algo_params": {"learning_rate": 0.01}})
    listing.update(book.update([made_run(1), asked]))
    listing.set_filter(RunFilter(text="learning_rate<0.001"))
    assert listing.keys == []
    assert [run.worker_config["algo"] for run in book.unknown_algorithms([asked])] == ["ppo"]
    book.set_defaults({"ppo": {"learning_rate": 0.00025}})
    listing.look_again()
    assert listing.keys == [made_run(1).run_id]
    assert book.is_default(made_run(1), "learning_rate")
    assert not book.is_default(asked, "learning_rate")
    assert book.unknown_algorithms([asked]) == []


def test_counts_follow_the_runs_and_the_words() -> None:
    book = RunBook()
    listing = Listing(book)
    waits = live(made_run(1), "INIT", reason="waits for 1 more CPU")
    listing.update(book.update([waits, live(made_run(2)), made_run(3, outcome="failed")]))
    assert listing.counts() == {"all": 3, "running": 1, "waiting": 1, "failed": 1}
    listing.update(book.update([live(waits)]))
    assert listing.counts() == {"all": 3, "running": 2, "waiting": 0, "failed": 1}
    listing.set_filter(RunFilter("running", "seed:1"))
    assert [int(key) for key in listing.keys] == [2, 1]
    listing.set_filter(RunFilter("all", "nothing like it"))
    assert listing.keys == []
    assert listing.counts()["all"] == 0


def test_counts_are_of_runs_and_a_filter_means_one_run() -> None:
    first, second, third = seeds(1, 1, 2, 3)
    listing = listing_of(first, replace(second, outcome="failed"), third, made_run(9))
    assert listing.counts() == {"all": 4, "running": 0, "waiting": 0, "failed": 1}
    listing.set_filter(RunFilter("failed", "seed:1"))
    assert listing.keys == [], "no run is both"
    listing.set_filter(RunFilter("failed", "seed:2"))
    assert len(listing.keys) == 1


def test_a_place_in_the_queue_is_counted_anew_when_the_queue_moves() -> None:
    waiting = [
        live(made_run(at, place=float(at)), "INIT", reason=f"waits behind {at - 1} runs in the queue")
        for at in range(1, 5)
    ]
    book = RunBook()
    listing = Listing(book)
    listing.update(book.update(waiting))
    assert [int(run_id) for run_id in book.queue()] == [1, 2, 3, 4]
    stale = listing.update(book.update([live(waiting[0])]))
    assert waiting[3].run_id in stale
    row = listing.row(waiting[3].run_id)
    assert row is not None
    assert row.reason == "Waits behind 2 runs in the queue"
    book.update([replace(waiting[3], priority=5), live(waiting[1])])
    assert [int(run_id) for run_id in book.queue()] == [4, 3]
    assert book.get(waiting[2].run_id) == replace(waiting[2], reason="waits behind 1 run in the queue")


def test_a_row_says_how_a_run_is() -> None:
    running = live(made_run(1), headline={"mean_return": 487.25, "progress": 0.741, "step": 370_688})
    row = listing_of(running).row(running.run_id)
    assert row is not None
    assert (row.title, row.value) == ("ppo · CartPole-v1", "487.2")
    assert (row.state.word, row.state.role, row.detail) == ("Running", "good", "seed 1 · 74 %")
    assert row.progress == pytest.approx(0.741)
    done = listing_of(made_run(1)).row(made_run(1).run_id)
    assert done is not None
    assert (done.state.word, done.detail, done.progress) == ("Completed", "500k steps · 0:23", None)
    failed = made_run(1, outcome="failed", reason="the worker ran out of memory")
    row = listing_of(failed).row(failed.run_id)
    assert row is not None
    assert (row.detail, row.reason) == ("at 500k steps", "The worker ran out of memory")


def test_a_name_of_its_own_and_tags_stand_in_the_row_and_are_found() -> None:
    named = made_run(1, run_name="The long one", tags=["night", "sweep"])
    book = RunBook()
    listing = Listing(book)
    listing.update(book.update([named, made_run(2)]))
    row, other = listing.row(named.run_id), listing.row(made_run(2).run_id)
    assert row is not None and other is not None
    assert (row.title, row.about) == ("The long one", "ppo · CartPole-v1")
    assert row.detail == "500k steps · 0:23 · #night #sweep"
    assert (other.title, other.about) == ("ppo · CartPole-v1", "")
    listing.update(book.update([replace(made_run(2), tags=["late"])]))
    listing.set_filter(RunFilter(text="#late"))
    assert listing.keys == [made_run(2).run_id]


def test_labels_of_several_runs_change_only_what_was_changed() -> None:
    runs = [made_run(1, tags=["a", "b"]), made_run(2, tags=["b", "c"], run_name="mine")]
    before = shared_labels(runs)
    assert before == Labels(None, ("b",), "")
    after = Labels.of_texts("", "#b, d", "", before)
    changes = changes_for(runs, before, after)
    assert [one.tags for one in changes.values()] == [("a", "b", "d"), ("c", "b", "d")]
    assert list(changes) == [run.run_id for run in runs]
    assert {one.name for one in changes.values()} == {None}
    assert changes_for(runs, before, before) == {}
    gone = Labels.of_texts("", "", "for the paper", before)
    assert [(one.tags, one.notes) for one in changes_for(runs, before, gone).values()] == [
        (("a",), "for the paper"),
        (("c",), "for the paper"),
    ]


def test_a_row_says_what_a_run_does_before_its_first_step_and_when_the_disk_is_full() -> None:
    found = []
    for phase in ("importing", "making environments", "first steps", "waiting for space"):
        run = live(made_run(1), headline={"phase": phase})
        row = listing_of(run).row(run.run_id)
        assert row is not None
        found.append((row.state.word, row.detail))
    assert found == [
        ("Starting", "seed 1 · importing"),
        ("Starting", "seed 1 · making environments"),
        ("Running", "seed 1"),
        ("Waiting for space", "seed 1"),
    ]


def test_what_a_run_waits_for_is_named_not_numbered() -> None:
    holder = live(made_run(2, algo="sac", env_id="HalfCheetah-v5"))
    waiting = live(made_run(3), "INIT", reason=f"waits for GPU 0, held by run {holder.run_id}")
    row = listing_of(holder, waiting).row(waiting.run_id)
    assert row is not None
    assert row.reason == "Waits for GPU 0, held by sac · HalfCheetah-v5"


def test_a_group_speaks_for_all_its_seeds_and_opens() -> None:
    first, second, third = seeds(1, 1, 2, 3)
    listing = listing_of(live(first, headline={"progress": 0.5}), second, third)
    row = listing.row(listing.keys[0])
    assert row is not None
    assert (row.state.word, row.detail) == ("Running", "seeds 1–3 · 2 of 3 done")
    assert row.run_id == first.run_id
    assert row.opened is False
    listing.set_opened(row.key, True)
    assert len(listing.keys) == 4
    child = listing.row(listing.keys[2])
    assert child is not None
    assert (child.title, child.child, child.run_ids) == ("Seed 2", True, (second.run_id,))
    assert listing.key_of(third.run_id) == listing.keys[3]


def test_the_qt_model_keeps_its_rows_right_through_every_change(qtbot: QtBot) -> None:
    book = RunBook()
    model = RunListModel(Listing(book))
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.update(book.update([made_run(number) for number in (1, 3, 5)]))
    model.update(book.update([made_run(2), made_run(4), made_run(9)]))
    model.update(book.update(seeds(70, 1, 2)))
    model.set_opened(model.listing.keys[0], True)
    model.set_filter(RunFilter(text="seed:2"))
    model.set_filter(RunFilter())
    model.update(book.remove([made_run(3).run_id, made_run(9).run_id]))
    shown = [row.key for at in range(model.rowCount()) if (row := model.row(at)) is not None]
    assert shown == model.listing.keys
    assert len(shown) == 7


def test_thousands_of_runs_are_put_into_words_only_when_they_are_seen(qtbot: QtBot) -> None:
    book = RunBook()
    listing = Listing(book)
    model = RunListModel(listing)
    model.update(book.update([made_run(number) for number in range(5000)]))
    assert model.rowCount() == 5000
    assert not listing._rows
    assert "ppo · CartPole-v1" in str(model.data(model.index(4999)))
    assert len(listing._rows) == 1


def test_the_chosen_row_stays_chosen_when_others_come_and_go(qtbot: QtBot) -> None:
    book = RunBook()
    model = RunListModel(Listing(book))
    model.update(book.update([made_run(number) for number in (1, 2, 3)]))
    chosen = QItemSelectionModel(model)
    chosen.select(model.index(1), QItemSelectionModel.SelectionFlag.Select)
    model.update(book.update([made_run(4), made_run(5)]))
    model.update(book.remove([made_run(3).run_id]))
    (index,) = chosen.selectedIndexes()
    row = model.row(index.row())
    assert row is not None
    assert row.run_id == made_run(2).run_id


def series_of(*values: float, start: int = 0) -> Series:
    made = Series()
    for at, value in enumerate(values):
        made.append(start + at, 0.0, value)
    return made


def test_a_curve_keeps_its_shape_however_long_it_is() -> None:
    sketch = Sketch()
    sketch.extend(series_of(*(float(at) for at in range(100_000))))
    points = sketch.points()
    assert len(points) <= POINTS
    assert points == sorted(points)
    assert points[0] < 3_000
    assert points[-1] > 97_000


def test_a_curve_forgets_what_was_purged_and_prefers_training_returns() -> None:
    chunks = [
        ScalarChunk("a", None, {"charts/episodic_return": series_of(1, 2, 3, 100, 100)}),
        ScalarChunk("a", 3, {"charts/episodic_return": series_of(4, 5, start=3)}),
        ScalarChunk("b", None, {"eval/episodic_return": series_of(9, 9)}),
    ]
    assert sketch_returns(chunks).points() == [1, 2, 3, 4, 5]
    assert sketch_returns([]).points() == []
    lost = ScalarChunk("a", None, {"charts/episodic_return": series_of(float("nan"))})
    assert sketch_returns([lost]).points() == []


def test_curves_of_several_seeds_become_one() -> None:
    mean = mean_curve([[0.0, 2.0], [2.0, 4.0, 6.0], [7.0]])
    assert (mean[0], mean[-1]) == (1.0, 4.0)
    assert mean_curve([[]]) == []
