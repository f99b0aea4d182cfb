"""Saved filters and chosen columns of the list of runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from many_runs import fill

from conftest import RunMosaic
from mosaic.client.saved_filters import SavedFilter, SavedFilters
from mosaic.contract.errors import NotFoundError, StorageError, UserError
from mosaic.contract.paths import VarPaths


def test_a_filter_that_was_saved_is_used_by_its_name(var: Path, run_mosaic: RunMosaic) -> None:
    fill(VarPaths(var), 60, folders=0)
    assert "No filter is saved yet" in run_mosaic("filters").stdout
    assert "runs @good" in run_mosaic("filters", "save", "good", "algo=ppo", "return>200").stdout
    run_mosaic("filters", "save", "my 🏆 broken ones", "--state", "failed")
    assert [one["name"] for one in json.loads(run_mosaic("filters", "--json").stdout)] == [
        "good",
        "my 🏆 broken ones",
    ]
    good = json.loads(run_mosaic("runs", "@GOOD", "--all", "--json").stdout)
    assert good == json.loads(run_mosaic("runs", "--filter", "algo=ppo return>200", "--all", "--json").stdout)
    assert good and all(run["algo"] == "ppo" and run["headline"]["mean_return"] > 200 for run in good)
    broken = json.loads(run_mosaic("runs", "@my 🏆 broken ones", "ppo", "--all", "--json").stdout)
    assert broken and {run["outcome"] for run in broken} <= {"failed", "timed_out"}
    assert "in place of algo=ppo return>200" in run_mosaic("filters", "save", "Good", "seed=1").stdout
    assert run_mosaic("filters", "rm", "good").stdout == "@Good is removed: seed=1\n"


def test_what_cannot_be_a_filter_is_refused_in_a_sentence(var: Path, run_mosaic: RunMosaic) -> None:
    fill(VarPaths(var), 3, folders=0)
    for words, said in (
        (("filters", "save", "x", "return>many"), "'many' is not a number"),
        (("filters", "save", "@x", "seed=1"), "cannot be called '@x'"),
        (("filters", "save", "x"), "would find every run"),
        (("filters", "rm", "nobody"), "No filter is saved as 'nobody'"),
        (("filters", "sve", "x"), "did you mean 'save'?"),
        (("filters", "--state", "failed"), "--state is for saving a filter"),
        (("runs", "@nobody"), "No filter is saved as 'nobody'"),
        (("runs", "--columns", "id,%"), "'%' is not the name of a column"),
        (("runs", "--columns", ", ,"), "--columns needs names"),
    ):
        refused = run_mosaic(*words, check=False)
        assert refused.returncode == 2 and said in refused.stderr, (words, refused.stderr)
        assert refused.stderr.count("\n") == 1
    run_mosaic("filters", "save", "lost", "--state", "failed")
    both = run_mosaic("runs", "@lost", "--state", "running", check=False)
    assert both.returncode == 2 and "@lost and --state ask for different states" in both.stderr


def test_columns_are_those_asked_for_in_their_order(var: Path, run_mosaic: RunMosaic) -> None:
    fill(VarPaths(var), 30, folders=0)
    lines = run_mosaic("runs", "--columns", "return,learning_rate,id,gamma,env_id").stdout.splitlines()
    assert lines[0].split() == ["return", "learning_rate", "id", "gamma", "env"]
    # Nobody asked for another gamma: it is the default of the algorithm.
    assert "0.99" in {line.split()[3] for line in lines[1:-1]} <= {"0.9", "0.95", "0.99"}
    narrow = run_mosaic("runs", "--columns", "id,name,env,notes,learning_rate,return", env={"COLUMNS": "60"})
    assert max(map(len, narrow.stdout.splitlines()[:21])) <= 60
    rows = json.loads(run_mosaic("runs", "--columns", "seed,nothing", "--limit", "4", "--json").stdout)
    assert len(rows) == 4
    assert all(list(row["columns"]) == ["seed", "nothing"] for row in rows)
    assert all(row["columns"]["nothing"] is None and row["columns"]["seed"] for row in rows)


def test_two_who_save_at_once_lose_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from mosaic.client.saved_filters import *\n"
        "store = SavedFilters(Path(sys.argv[1]))\n"
        "for at in range(20): store.save(SavedFilter(f'{sys.argv[2]} {at}', f'seed={at}'))"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name]) for name in "ab"]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    assert {one.name for one in SavedFilters(tmp_path).all()} == {
        f"{name} {at}" for name in "ab" for at in range(20)
    }


@pytest.mark.parametrize("text", ["{", "[]", '{"filters": [{"name": 3}]}', '{"filters": null}', "\0"])
def test_a_damaged_store_is_told_of_and_never_written_over(tmp_path: Path, text: str) -> None:
    store = SavedFilters(tmp_path)
    store.path.write_text(text)
    for call in (store.all, lambda: store.save(SavedFilter("a", "b")), lambda: store.remove(["a"])):
        with pytest.raises(StorageError, match="cannot be read"):
            call()
    assert store.path.read_text() == text


def test_all_named_filters_go_or_none(tmp_path: Path) -> None:
    store = SavedFilters(tmp_path)
    store.save(SavedFilter("a", "seed=1"))
    with pytest.raises(NotFoundError):
        store.remove(["a", "b"])
    assert [one.name for one in store.all()] == ["a"]
    with pytest.raises(UserError, match="too long"):
        store.save(SavedFilter("x" * 61, "seed=1"))
    with pytest.raises(UserError, match="is not one of"):
        store.save(SavedFilter("x", "seed=1", "sleeping"))
