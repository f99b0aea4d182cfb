"""What the Sweep tab makes of a study, and how trials stand in the list of runs."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gym_gui.models.listing import Listing
from gym_gui.models.runs import RunBook
from gym_gui.models.sweep import (
    TrialTable,
    about_trial,
    best_text,
    counts_text,
    may_be_weighed,
    picture_of,
)
from mosaic.client import RunRecord
from mosaic.sweeps.study import (
    ALGO,
    COMPLETE,
    ENV,
    FAILED,
    PRUNED,
    RUNNING,
    SEED,
    WAITING,
    Study,
    Trial,
)
from support.records import plain_record

TITLE = "Sweep of ppo · CartPole-v1"
SPACE: dict[str, dict[str, Any]] = {
    "lr": {"low": 1e-5, "high": 1e-1, "log": True, "step": None, "whole": False},
    "gamma": {"choices": [0.9, 0.99]},
    "alpha": {"low": 0.0, "high": 1.0, "log": False, "step": None, "whole": False},
}


def trial(number: int, value: float | None = None, state: str = COMPLETE, **told: Any) -> Trial:
    params = told.pop("params", {"lr": 1e-3, "gamma": 0.99})
    values = () if value is None or state != COMPLETE else (value,)
    points = told.pop("intermediate", {} if value is None else {100: value / 2, 200: value})
    return Trial(number, state, params, told.pop("values", values), points, (f"run{number}",), **told)


def study(*trials: Trial, **told: Any) -> Study:
    usual = {"objectives": ("charts/episodic_return (last)",), "directions": ("maximize",)}
    return Study("s", **{**usual, "distributions": SPACE, "wanted": 10, **told}, trials=trials)


def test_the_history_climbs_with_the_best_and_shows_what_was_pruned_and_failed() -> None:
    found = study(
        trial(0, 10.0),
        trial(1, 5.0),
        trial(2, 20.0),
        trial(3, 8.0, PRUNED, reason="pruned at step 200"),
        trial(4, state=FAILED, reason="exit code 1"),
    )
    history = picture_of(found).history
    assert [(one.shape, one.numbers.tolist()) for one in history.dots] == [
        ("dot", [0, 1, 2]),
        ("ring", [3]),
        ("cross", [4]),
    ]
    (line,) = history.strokes
    best = history.y.shares([10.0, 20.0])
    assert line.y[[0, -1]].tolist() == pytest.approx(best.tolist())
    assert "○ 1 pruned" in history.note and "× 1 failed" in history.note
    assert counts_text(found) == "5 of 10 trials: 3 complete, 1 pruned, 1 failed"
    assert best_text(found) == "Best 20.0 in trial 2: lr 0.001 · gamma 0.99"


def test_a_benchmark_is_shown_environment_by_environment() -> None:
    cells = [("ppo", "A-v0", 1), ("dqn", "A-v0", 1), ("ppo", "B-v0", 1), ("ppo", "A-v0", 2)]
    found = study(
        *(
            trial(number, 10.0 * (number + 1), params=dict(zip((ALGO, ENV, SEED), cell, strict=True)))
            for number, cell in enumerate(cells)
        ),
        distributions={ALGO: {"choices": ["ppo", "dqn"]}, ENV: {"choices": ["A-v0", "B-v0", "C-v0"]}},
        benchmark=True,
        wanted=12,
    )
    picture = picture_of(found)
    assert [one.title for one in picture.fronts] == ["A-v0", "B-v0", "C-v0"]
    first, second, third = picture.fronts
    assert first.dots[0].numbers.tolist() == [0, 1, 3]
    means = [one.y[0] for one in first.strokes]
    assert means == pytest.approx(first.y.shares([25.0, 20.0]).tolist())
    assert second.dots[0].numbers.tolist() == [2]
    assert third.empty
    assert not picture.slices
    assert not may_be_weighed(found)
    assert counts_text(found) == "4 of 12 runs: 4 complete"


def test_two_objectives_on_one_curve_keep_their_whole_names() -> None:
    names = ("charts/SPS (last)", "charts/SPS (best)")
    found = study(objectives=names, directions=("maximize", "maximize"))
    assert found.short_objectives == list(names)
    assert study().short_objectives == ["episodic_return"]


def test_the_history_falls_where_less_is_better() -> None:
    history = picture_of(
        study(trial(0, 10.0), trial(1, 30.0), trial(2, 4.0), directions=("minimize",))
    ).history
    assert history.strokes[0].y[-1] == pytest.approx(float(history.y.shares([4.0])[0]))


@pytest.mark.parametrize(
    ("trials", "told"),
    [
        ((), "No trial yet"),
        ((trial(0, state=RUNNING),), "No trial has ended yet"),
        ((trial(0, state=FAILED, reason="x"),), "Every trial so far has failed"),
        ((trial(0, 3.0, PRUNED),), "Every trial so far was pruned"),
        ((trial(0, 3.0, PRUNED), trial(1, state=FAILED)), "No trial is complete yet"),
    ],
)
def test_what_is_missing_is_told_in_a_sentence(trials: tuple[Trial, ...], told: str) -> None:
    picture = picture_of(study(*trials))
    slices = {one.empty for one in picture.slices}
    assert {picture.parallel.empty, *slices} <= {
        told,
        "No trial is complete yet",
        "No trial with it is complete yet",
    }
    assert told in {picture.parallel.empty, picture.history.empty}
    if trials and trials[0].state == FAILED:
        assert best_text(picture.study) == "Every trial so far has failed; the last one: x"


def test_a_log_range_has_a_log_axis_and_choices_have_their_names() -> None:
    found = study(
        trial(0, 1.0, params={"lr": 1e-3, "gamma": 0.9}), trial(1, 2.0, params={"lr": 1e-1, "gamma": 0.99})
    )
    slices = {one.title: one for one in picture_of(found).slices}
    lr, gamma = slices["lr"], slices["gamma"]
    assert lr.x.log and not slices["alpha"].x.log
    places = lr.x.shares([1e-5, 1e-3, 1e-1])
    assert places[1] == pytest.approx((places[0] + places[2]) / 2)
    assert gamma.x.names == ("0.9", "0.99")
    assert slices["alpha"].empty == "No trial with it is complete yet"


def test_true_and_one_are_two_choices() -> None:
    distributions = {"mixed": {"choices": [True, 1, "1"]}}
    trials = [trial(at, float(at), params={"mixed": value}) for at, value in enumerate([True, 1, "1"])]
    (figure,) = picture_of(study(*trials, distributions=distributions)).slices
    assert len(figure.x.names) == 3
    xs = np.concatenate([one.x for one in figure.dots])
    assert len({round(float(x) * 3 - 0.5) for x in xs}) == 3


def test_a_study_made_elsewhere_is_drawn_without_a_search_space() -> None:
    found = study(
        trial(0, 1.0, params={"x": 0.5, "kind": "a"}),
        trial(1, 2.0, params={"x": 1.5}),
        distributions={},
        wanted=None,
    )
    picture = picture_of(found)
    assert {one.title for one in picture.slices} == {"x", "kind"}
    x, kind, reached = picture.parallel.places[1]
    assert [axis.title for axis in picture.parallel.axes] == ["x", "kind", "episodic_return"]
    # The line of a trial without a parameter passes by its axis, and leads on to what it has reached.
    assert kind == pytest.approx((x + reached) / 2)


def test_the_front_is_that_of_the_study() -> None:
    chance = random.Random(1)
    trials = [trial(at, values=(chance.random(), chance.random())) for at in range(60)]
    found = study(*trials, objectives=("a (last)", "b (last)"), directions=("maximize", "minimize"))
    picture = picture_of(found, 1)
    assert picture.best == {one.number for one in found.front}
    (figure,) = picture.fronts
    (chosen,) = [one for one in figure.dots if one.role == "best"]
    assert set(chosen.numbers.tolist()) == picture.best
    line = figure.strokes[0]
    assert (np.diff(line.x) >= 0).all() and (np.diff(line.y) >= 0).all()
    assert "with several objectives" in picture.intermediate.empty
    assert best_text(found).endswith("on the Pareto front.")


def test_parameters_stand_in_the_order_of_their_weight() -> None:
    picture = picture_of(study(trial(0, 1.0)), weights={"gamma": 0.9, "alpha": 0.1})
    assert [one.title for one in picture.slices] == ["gamma", "alpha", "lr"]
    assert [one.title for one in picture.parallel.axes] == ["gamma", "alpha", "lr", "episodic_return"]


def test_the_table_is_sorted_by_any_column_with_what_has_no_value_at_the_end() -> None:
    table = TrialTable()
    table.show(
        study(trial(0, 5.0), trial(1, state=WAITING), trial(2, 50.0), trial(3, 7.0, PRUNED, reason="cut"))
    )
    value = table.columns.index("value")
    for descending, order in ((True, [2, 3, 0, 1]), (False, [0, 3, 2, 1])):
        table.sort(value, descending)
        assert [one.number for one in table.rows] == order
    for column in range(len(table.columns)):
        table.sort(column, False)
        assert sorted(one.number for one in table.rows) == [0, 1, 2, 3]
    reason = table.columns.index("reason")
    assert [table.cell(one, reason).text for one in table.rows if one.number == 3] == ["cut"]


def test_the_pointer_is_told_what_a_trial_is() -> None:
    found = study(trial(3, 7.0, PRUNED, reason="pruned at step 200"))
    assert about_trial(found, found.trials[0]).splitlines() == [
        "Trial 3, pruned",
        "7.000 at step 200",
        "pruned at step 200",
        "lr  0.001",
        "gamma  0.99",
    ]


# The list


def sweep_run(run_id: str = "01SWEEP", **told: Any) -> RunRecord:
    usual = {
        "run_name": "Sweep of ppo · CartPole-v1",
        "worker_type": "sweep",
        "status": "EXEC",
        "submitted_at": 1.0,
    }
    head = {"trials": 3, "total_trials": 10, "progress": 0.3, "mean_return": 99.0}
    return plain_record(run_id, **{**usual, "headline": head, **told})


def trial_run(number: int, sweep: str = "01SWEEP", **told: Any) -> RunRecord:
    config = {
        "metadata": {
            "worker": {"type": "cleanrl", "config": {"algo": "ppo", "env_id": "CartPole-v1", "seed": 1}},
            "ui": {"sweep": sweep, "trial": number},
        }
    }
    usual = {"outcome": "completed", "submitted_at": 2.0 + number, "run_name": f"ppo-trial-{number}"}
    return plain_record(f"02TRIAL{number:04d}", **{**usual, "config": config, **told})


def test_a_thousand_trials_are_one_row_until_it_is_opened() -> None:
    book = RunBook()
    book.update([*(trial_run(at) for at in reversed(range(1000))), sweep_run()])
    listing = Listing(book)
    listing.look_again()
    assert listing.keys == ["01SWEEP"]
    row = listing.row("01SWEEP")
    assert row is not None
    assert (row.title, row.count, row.opened, row.run_ids) == (
        "Sweep of ppo · CartPole-v1",
        1000,
        False,
        ("01SWEEP",),
    )
    assert row.detail == "3 of 10 trials" and row.value == "99.0"
    listing.set_opened("01SWEEP", True)
    assert len(listing.keys) == 1001
    newest = listing.row(listing.keys[1])
    assert newest is not None and (newest.title, newest.about, newest.child) == ("Trial 999", "seed 1", True)
    assert listing.key_of("01SWEEP") == "01SWEEP"
    assert listing.key_of("02TRIAL0007") == "01SWEEP/02TRIAL0007"


def test_trials_come_before_their_sweep_and_stay_after_it() -> None:
    book = RunBook()
    book.update([trial_run(0)])
    assert book.group_keys() == ["01SWEEP"]
    book.update([sweep_run()])
    group = book.group_of("02TRIAL0000")
    assert group is not None and group.first.run_id == "01SWEEP"
    book.remove(["01SWEEP"])
    listing = Listing(book)
    listing.look_again()
    row = listing.row("01SWEEP")
    assert row is not None and row.title.startswith("Trials of sweep")
    book.remove(["02TRIAL0000"])
    assert not book.group_keys()


def test_two_sweeps_of_one_kind_are_two_rows() -> None:
    book = RunBook()
    book.update([sweep_run(), sweep_run("01SWEEQ", submitted_at=1.5), trial_run(0), trial_run(1, "01SWEEQ")])
    assert book.group_keys() == ["01SWEEQ", "01SWEEP"]
    ended = replace(sweep_run(), status="TERM", outcome="completed", started_at=1.0, ended_at=62.0)
    book.update([ended])
    listing = Listing(book)
    listing.look_again()
    row = listing.row("01SWEEP")
    assert row is not None and row.detail == "3 of 10 trials · 1:01"


def test_the_lineage_of_a_population_joins_what_began_with_what() -> None:
    trials = [
        trial(0, 10.0),
        trial(1, 2.0),
        trial(2, 15.0, parent=0),
        trial(3, 18.0, parent=0),
        trial(4, state=RUNNING, parent=3),
    ]
    (figure,) = picture_of(study(*trials, members=2)).fronts
    assert figure.title == "Lineage"
    links = {one.role: np.count_nonzero(~np.isnan(one.x)) // 2 for one in figure.strokes}
    # The best is a copy: its line is that of the best, and the member that went on has one of its own.
    assert links == {"accent": 1, "best": 1}
    assert not picture_of(study(*trials)).fronts
