"""The study of a sweep: no crash between two calls loses a trial, and nobody takes it from its sweep."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import optuna
import pytest

from mosaic.contract.errors import MosaicError, StorageError, UserError
from mosaic.sweeps import search as search_module
from mosaic.sweeps.configs import best_configs, sweep_config
from mosaic.sweeps.optuna_records import importance, read_elsewhere
from mosaic.sweeps.search import Search
from mosaic.sweeps.spec import SweepSpec
from mosaic.sweeps.storage import DATABASE, holds_studies, open_storage
from mosaic.sweeps.study import COMPLETE, FAILED, PRUNED, RUNNING, StudyReader, StudyWriter, Trial
from support.records import plain_record
from sweeps.conftest import quick_spec

KINDS = ["journal", "sqlite"]


def opened(folder: Path, spec: SweepSpec | None = None, sweep: str = "A", **more: Any) -> Search:
    return Search(spec or quick_spec(), sweep, folder, {}, **more)


@pytest.mark.parametrize("storage", KINDS)
def test_a_trial_that_was_asked_for_is_found_again(tmp_path: Path, storage: str) -> None:
    spec = quick_spec(storage=storage)
    first = opened(tmp_path, spec)
    asked = [first.ask(), first.ask()]
    first.set_runs(0, ["run-0"])
    again = opened(tmp_path, spec)
    found = again.open_trials()
    assert [one.params for one in found] == [one.params for one in asked]
    assert [one.runs for one in found] == [("run-0",), ()]
    assert not again.spent
    told = again.tell(0, COMPLETE, [3.0])
    assert (told.state, told.values) == (COMPLETE, (3.0,))
    assert [one.number for one in opened(tmp_path, spec).open_trials()] == [1]


@pytest.mark.parametrize("storage", KINDS)
def test_a_trial_whose_parameters_were_only_half_chosen_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: str
) -> None:
    space = {"lr": {"low": 1e-5, "high": 1.0, "log": True}, "width": [4, 8, 16]}
    spec = quick_spec(space=space, storage=storage)
    search = opened(tmp_path, spec)

    def killed(space: Any, trial: Any) -> None:
        trial.suggest_float("lr", 1e-5, 1.0, log=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(search_module, "suggest", killed)
    with pytest.raises(KeyboardInterrupt):
        search.ask()
    monkeypatch.undo()
    half = read_elsewhere(str(tmp_path / DATABASE), "", {}).trials[0]
    (found,) = opened(tmp_path, spec).open_trials()
    assert set(half.params) == {"lr"}
    assert found.params["lr"] == half.params["lr"]
    assert set(found.params) == {"lr", "width"}


def test_a_line_that_a_crash_has_torn_is_cut_off(tmp_path: Path) -> None:
    search = opened(tmp_path)
    search.ask()
    journal = tmp_path / DATABASE
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"op_code": 6, "wor')
    again = opened(tmp_path)
    again.ask()
    assert journal.read_bytes().startswith(whole)
    assert [one.number for one in opened(tmp_path).open_trials()] == [0, 1]


def test_a_killed_writer_holds_no_lock(tmp_path: Path) -> None:
    search = opened(tmp_path)
    lock = search.storage._backend._lock
    lock.acquire()
    descriptor = lock._descriptor
    lock.release()
    assert descriptor >= 0
    # Optuna's own lock is a link that a killed process leaves: nothing here waits for one.
    (tmp_path / f"{DATABASE}.lock").symlink_to(tmp_path / DATABASE)
    opened(tmp_path).ask()


def test_counts_and_the_best_survive_a_restart(tmp_path: Path) -> None:
    search = opened(tmp_path)
    for value in (1.0, 5.0, 2.0):
        search.tell(search.ask().number, COMPLETE, [value])
    search.tell(search.ask().number, FAILED, reason="no luck")
    again = opened(tmp_path)
    assert again.progress() == (4, 5.0)
    assert again.has_values
    record = again.record()
    assert record.best is not None
    assert record.best.number == 1
    assert record.trials[3].reason == "no luck"
    assert record.best_so_far() == [(0, 1.0), (1, 5.0), (2, 5.0)]
    assert not again.spent
    again.ask()
    again.ask()
    assert again.spent


def test_a_study_belongs_to_one_sweep_until_that_releases_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    spec = quick_spec(storage=url, study="mine")
    first = opened(tmp_path, spec)
    first.tell(first.ask().number, COMPLETE, [1.0])
    with pytest.raises(StorageError, match="in use by A"):
        opened(tmp_path, spec, sweep="B")
    first.release()
    second = opened(tmp_path, spec, sweep="B")
    assert second.wanted == 1 + spec.trials
    assert second.progress() == (1, 1.0)
    opened(tmp_path, quick_spec(storage=url, study="another"), sweep="C")


def test_the_study_of_a_sweep_that_has_ended_without_a_word_goes_on(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    spec = quick_spec(storage=url, study="mine")
    cut_off = opened(tmp_path, spec).ask()
    second = Search(spec, "B", tmp_path, {}, has_ended=lambda sweep: sweep == "A")
    assert second.ask().params == cut_off.params
    with pytest.raises(StorageError, match="in use by B"):
        Search(spec, "C", tmp_path, {}, has_ended=lambda sweep: sweep == "A")


def test_a_database_is_looked_at_without_making_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/none.db"
    with pytest.raises(UserError, match="There is no study in"):
        read_elsewhere(url, "", {})
    assert not holds_studies(url, {})
    assert not list(tmp_path.iterdir())
    with pytest.raises(StorageError, match="is not a folder"):
        holds_studies(f"sqlite:///{tmp_path}/away/none.db", {})


def test_a_study_with_other_directions_is_not_mixed_up(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    optuna.create_study(storage=url, study_name="loss", direction="minimize")
    with pytest.raises(StorageError, match="is to minimize"):
        opened(tmp_path, quick_spec(storage=url, study="loss"))


def test_a_study_of_plain_optuna_goes_on_in_a_sweep(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/plain.db"
    study = optuna.create_study(storage=url, study_name="plain", direction="maximize")
    study.optimize(lambda trial: trial.suggest_float("lr", 1e-5, 1.0, log=True), n_trials=3)
    open_trial = study.ask()
    spec = quick_spec(storage=url, study="plain")
    with pytest.raises(StorageError, match="running elsewhere"):
        opened(tmp_path, spec)
    study.tell(open_trial, state=optuna.trial.TrialState.FAIL)
    search = opened(tmp_path, spec)
    assert search.ask().number == 4
    assert search.wanted == 4 + spec.trials


def test_a_study_of_another_format_is_not_touched(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/later.db"
    study = optuna.create_study(storage=url, study_name="later", direction="maximize")
    study.set_user_attr("mosaic:format", 99)
    with pytest.raises(StorageError, match="another version of MOSAIC"):
        opened(tmp_path, quick_spec(storage=url, study="later"))


def test_a_database_of_another_version_of_optuna_is_told_in_a_sentence(tmp_path: Path) -> None:
    import sqlite3

    file = tmp_path / "old.db"
    optuna.create_study(storage=f"sqlite:///{file}")
    with sqlite3.connect(file) as database:
        database.execute("UPDATE version_info SET schema_version = 1, library_version = '0.1.0'")
        database.execute("UPDATE alembic_version SET version_num = 'v0.9.0.a'")
    database.close()
    with pytest.raises(StorageError, match="another version of Optuna") as caught:
        open_storage(f"sqlite:///{file}", None, {})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("nonsense://x", "nonsense"),
        ("postgresql://nobody:secretword@127.0.0.1:1/none", "127.0.0.1:1/none"),
        ("mysql://nobody:secretword@127.0.0.1:1/none", "127.0.0.1:1/none"),
        ("/no/such/file.db", "not a file"),
        ("@env:NOT_SET_ANYWHERE", "NOT_SET_ANYWHERE"),
    ],
)
def test_a_storage_that_cannot_be_opened_is_told_without_its_password(where: str, words: str) -> None:
    with pytest.raises(MosaicError) as caught:
        open_storage(where, None, {})
    assert words in str(caught.value)
    assert "secretword" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_a_study_is_told_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("hello\nworld\n")
    with pytest.raises(MosaicError, match="not one of Optuna's"):
        read_elsewhere(str(file), "", {})


@pytest.mark.parametrize("storage", KINDS)
def test_a_sweep_goes_on_with_the_study_of_another(tmp_path: Path, storage: str) -> None:
    spec = quick_spec(storage=storage)
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    first = opened(old, spec, sweep="OLD")
    first.tell(first.ask().number, COMPLETE, [1.0])
    left = first.ask()
    # It was killed for good: nothing was told of its last trial.
    continued = quick_spec(storage=storage, study="OLD", trials=3)
    for _ in range(2):
        second = opened(new, continued, sweep="NEW", continues=("OLD", old))
    record = second.record()
    assert [one.state for one in record.trials[:2]] == [COMPLETE, FAILED]
    assert second.wanted == 2 + 3
    assert second.ask().params == left.params
    assert second.ask().params != left.params
    assert read_elsewhere(str(old / DATABASE), "", {}).trials[1].state == RUNNING
    with pytest.raises(StorageError, match="There is no study in"):
        opened(tmp_path, continued, continues=("NONE", tmp_path / "none"))


def test_the_search_seed_decides_the_trials(tmp_path: Path) -> None:
    def params(folder: str, seed: int) -> list[Any]:
        (tmp_path / folder).mkdir()
        search = opened(tmp_path / folder, quick_spec(sampler={"name": "random", "seed": seed}))
        return [search.ask().params for _ in range(3)]

    assert params("a", 1) == params("b", 1)
    assert params("c", 2) != params("d", 1)


def test_a_restarted_search_does_not_repeat_itself(tmp_path: Path) -> None:
    spec = quick_spec(sampler="random")
    first = opened(tmp_path, spec).ask()
    assert opened(tmp_path, spec).ask().params != first.params


def test_a_pruner_is_asked_with_what_was_reported(tmp_path: Path) -> None:
    spec = quick_spec(pruner={"name": "median", "n_startup_trials": 1, "n_warmup_steps": 0})
    search = opened(tmp_path, spec)
    good, bad = search.ask(), search.ask()
    assert not search.report(good.number, 10.0, 100)
    search.tell(good.number, COMPLETE, [10.0])
    assert search.report(bad.number, 1.0, 100)
    search.mark_pruned(bad.number, 100)
    assert opened(tmp_path, spec).pruned_at(bad.number) == 100
    told = search.tell(bad.number, PRUNED)
    assert (told.state, told.values, told.intermediate) == (PRUNED, (1.0,), {100: 1.0})


def test_a_grid_ends_when_it_is_used_up(tmp_path: Path) -> None:
    spec = quick_spec(space={"width": [4, 8]}, sampler="grid", trials=2)
    search = opened(tmp_path, spec)
    widths = []
    for _ in range(2):
        trial = search.ask()
        widths.append(trial.params["width"])
        search.tell(trial.number, COMPLETE, [1.0])
    assert sorted(widths) == [4, 8]
    assert search.spent


def test_what_is_to_be_tried_first_is(tmp_path: Path) -> None:
    search = opened(tmp_path, quick_spec(try_first=[{"lr": 0.5}, {"lr": 0.25}]))
    assert [search.ask().params["lr"] for _ in range(2)] == [0.5, 0.25]
    again = opened(tmp_path, quick_spec(try_first=[{"lr": 0.5}, {"lr": 0.25}]))
    assert again.ask().params["lr"] not in (0.5, 0.25)


def test_importance_finds_the_parameter_that_matters(tmp_path: Path) -> None:
    space = {"lr": {"low": 1e-5, "high": 1.0, "log": True}, "width": {"low": 4, "high": 64}}
    search = opened(tmp_path, quick_spec(space=space, sampler="random", trials=40))
    while not search.spent:
        trial = search.ask()
        search.tell(trial.number, COMPLETE, [-abs(math.log10(float(trial.params["lr"] or 1)) + 2)])
    found = importance(read_elsewhere(str(tmp_path / DATABASE), "", {}))
    assert next(iter(found)) == "lr"
    assert found["lr"] > 0.6
    assert sum(found.values()) == pytest.approx(1)


def test_a_study_elsewhere_is_chosen_by_its_name(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/two.db"
    with pytest.raises(UserError, match="There is no study in"):
        read_elsewhere(url, "", {})
    for name in ("first", "second"):
        optuna.create_study(storage=url, study_name=name, directions=["maximize", "minimize"])
    with pytest.raises(UserError, match="holds 2 studies"):
        read_elsewhere(url, "", {})
    with pytest.raises(UserError, match="did you mean 'second'"):
        read_elsewhere(url, "secnd", {})
    study = read_elsewhere(url, "second", {})
    assert (study.name, study.directions, study.objectives) == (
        "second",
        ("maximize", "minimize"),
        ("value 0", "value 1"),
    )


def test_numbers_of_a_foreign_study_that_json_does_not_have_hide_no_trial(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/plain.db"
    made = optuna.create_study(storage=url, direction="maximize")
    for value in (1.0, math.inf, 3.0, 2.0, 2.5):
        trial = made.ask()
        trial.suggest_float("lr", 0.0, 1.0)
        trial.report(math.nan, 10)
        made.tell(trial, value)
    StudyWriter(tmp_path).begin(read_elsewhere(url, "", {}))
    study = StudyReader(tmp_path).poll()
    assert study is not None
    assert len(study.trials) == 5
    assert study.best is not None
    assert (study.best.number, study.best_so_far()) == (2, [(0, 1.0), (2, 3.0), (3, 3.0), (4, 3.0)])
    assert set(importance(study)) <= {"lr"}


def test_a_trial_that_was_made_elsewhere_has_nothing_to_train_with() -> None:
    config = sweep_config(quick_spec())["metadata"]["worker"]
    run = plain_record("01SWEEP", worker_type="sweep", config={"metadata": {"worker": config, "ui": {}}})
    with pytest.raises(UserError, match="has no parameter that is searched here"):
        best_configs(run, Trial(3, COMPLETE, {"x": 1.0}, (2.0,)), [5])
    (made,) = best_configs(run, Trial(3, COMPLETE, {"lr": 0.5}, (2.0,)), [5])
    assert made["metadata"]["worker"]["config"]["extras"]["algo_params"] == {"lr": 0.5}


def test_the_mirror_tells_what_the_study_has(tmp_path: Path) -> None:
    search, writer, reader = opened(tmp_path), StudyWriter(tmp_path), StudyReader(tmp_path)
    assert reader.poll() is None
    search.tell(search.ask().number, COMPLETE, [1.0])
    writer.begin(search.record())
    assert reader.poll() == search.record()
    trial = search.ask()
    writer.add(trial.number, state=RUNNING, params=dict(trial.params), runs=["r"], started_at=1.0)
    writer.add(trial.number, intermediate={10: 0.5})
    writer.add(trial.number, intermediate={20: 0.75})
    with (tmp_path / "study.jsonl").open("ab") as file:
        file.write(b'{"trial": 1, "stat')
    study = reader.poll()
    assert study is not None
    assert study.trials[1] == Trial(
        1, RUNNING, trial.params, intermediate={10: 0.5, 20: 0.75}, runs=("r",), started_at=1.0
    )
    assert reader.poll() is study
    # The sweep starts again, and writes it anew.
    writer.begin(search.record())
    again = reader.poll()
    assert again is not None
    assert again.trials[1].runs == ()


def test_the_space_is_known_before_the_first_trial(tmp_path: Path) -> None:
    space = {"lr": {"low": 1e-4, "high": 1.0, "log": True}, "width": [4, 8], "points": {"low": 2, "high": 9}}
    record = opened(tmp_path, quick_spec(space=space)).record()
    assert record.distributions == {
        "lr": {"low": 1e-4, "high": 1.0, "log": True, "step": None, "whole": False},
        "width": {"choices": [4, 8]},
        "points": {"low": 2, "high": 9, "log": False, "step": None, "whole": True},
    }


def test_what_a_later_version_writes_besides_is_passed_over(tmp_path: Path) -> None:
    search = opened(tmp_path)
    search.ask()
    StudyWriter(tmp_path).begin(search.record())
    file = tmp_path / "study.jsonl"
    head, *trials = [json.loads(line) for line in file.read_text().splitlines()]
    lines = [{**head, "colour": "red"}, *({**one, "weight": 3} for one in trials)]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert StudyReader(tmp_path).poll() == search.record()
