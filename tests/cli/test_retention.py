"""What may go: only what a rule lets go, never a live run, never one of the newest that stay."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mosaic.cli.commands.gc import (
    DAY,
    Leftover,
    LeftoverKind,
    Rule,
    ended_at,
    find_leftovers,
    folder_size,
    make_plan,
    remove_leftover,
    surplus_leftovers,
    surplus_runs,
)
from mosaic.client import RunRecord
from mosaic.contract.paths import VarPaths
from support.records import plain_record

NOW = 1_000 * DAY
OUTCOMES = ("completed", "cancelled", "timed_out", "failed")
TAGS = ("a", "b", "c")


def run_id(number: int) -> str:
    return f"01M7GDQ48Q692K09GV9V{number:06}"


def record(number: int, status: str, outcome: str | None, age: float, tags: list[str]) -> RunRecord:
    return plain_record(
        run_id(number),
        run_name="run",
        status=status,
        outcome=outcome,
        run_dir=f"/data/runs/{run_id(number)}",
        tags=tags,
        submitted_at=NOW - age - DAY,
        ended_at=NOW - age if status == "TERM" else None,
    )


# Whole seconds: a fraction of one may be lost in the sums below.
ages = st.integers(0, int(100 * DAY)).map(float)
some_tags = st.lists(st.sampled_from(TAGS), unique=True)
states = st.one_of(
    st.tuples(st.just("TERM"), st.sampled_from(OUTCOMES)),
    st.tuples(st.sampled_from(["INIT", "HSHK", "RDY", "EXEC", "PAUSE", "FAULT"]), st.none()),
)
records = st.lists(st.tuples(states, ages, some_tags), max_size=12).map(
    lambda rows: [record(at, *state, age, tags) for at, (state, age, tags) in enumerate(rows)]
)
rules = st.builds(
    Rule,
    older_than=ages,
    keep=st.integers(0, 5),
    outcomes=st.frozensets(st.sampled_from(OUTCOMES)),
    tags=st.frozensets(st.sampled_from(TAGS), max_size=1),
    not_tags=st.frozensets(st.sampled_from(TAGS), max_size=1),
)


@given(records, rules)
def test_only_ended_runs_go_to_which_every_rule_applies(runs: list[RunRecord], rule: Rule) -> None:
    going = surplus_runs(runs, rule, NOW)
    for run in going:
        assert run.ended
        assert NOW - ended_at(run) >= rule.older_than
        assert not rule.outcomes or run.outcome in rule.outcomes
        assert rule.tags <= set(run.tags)
        assert not rule.not_tags & set(run.tags)
    assert [ended_at(run) for run in going] == sorted(ended_at(run) for run in going)


@given(records, rules)
def test_the_newest_ended_runs_always_stay(runs: list[RunRecord], rule: Rule) -> None:
    going = {run.run_id for run in surplus_runs(runs, rule, NOW)}
    stay = [run for run in runs if run.ended and run.run_id not in going]
    assert len(stay) >= min(rule.keep, sum(run.ended for run in runs))
    newest = sorted((run for run in runs if run.ended), key=lambda run: (ended_at(run), run.run_id))
    assert not going & {run.run_id for run in newest[len(newest) - rule.keep :] if rule.keep}


@given(records, rules)
def test_what_stays_after_one_round_stays_in_the_next(runs: list[RunRecord], rule: Rule) -> None:
    going = {run.run_id for run in surplus_runs(runs, rule, NOW)}
    left = [run for run in runs if run.run_id not in going]
    assert surplus_runs(left, rule, NOW) == []


@given(records, rules)
def test_a_stricter_rule_lets_no_other_run_go(runs: list[RunRecord], rule: Rule) -> None:
    going = {run.run_id for run in surplus_runs(runs, rule, NOW)}
    for stricter in (replace(rule, older_than=rule.older_than + DAY), replace(rule, keep=rule.keep + 1)):
        assert {run.run_id for run in surplus_runs(runs, stricter, NOW)} <= going


@given(records, rules, st.sampled_from(list(LeftoverKind)), st.integers(0, 15), ages)
def test_no_leftover_of_a_live_run_goes(
    runs: list[RunRecord], rule: Rule, kind: LeftoverKind, number: int, age: float
) -> None:
    item = Leftover(kind, Path("/data/x"), 1, NOW - age, run_id(number))
    going = surplus_leftovers([item], runs, [], rule, NOW)
    live = {run.run_id for run in runs if not run.ended}
    known = {run.run_id for run in runs}
    if item.run_id in live:
        assert going == []
    elif kind == LeftoverKind.LOG:
        assert bool(going) == (item.run_id not in known and age >= rule.older_than)
    else:
        assert bool(going) == (kind == LeftoverKind.LINK or age >= DAY)


def write(path: Path, age_days: float, size: int = 10) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (time.time() - age_days * DAY,) * 2)
    return path


def test_the_folder_is_searched_for_what_belongs_to_nobody(tmp_path: Path) -> None:
    paths = VarPaths(tmp_path)
    paths.make()
    kept = paths.kept_logs(run_id(1))
    write(kept / "events.jsonl", age_days=40, size=100)
    dangling = paths.tensorboard / run_id(2)
    dangling.symlink_to(paths.runs / "gone")
    (paths.tensorboard / run_id(3)).symlink_to(paths.configs)
    unfinished = [
        write(paths.configs / ".config-X.json.abcd_123", age_days=2),
        write(paths.trainer / ".daemon.json.abcd1234", age_days=2),
        write(paths.run(run_id(4)).checkpoints / ".step-000000000512.npz.abcd1234", age_days=2),
        write(paths.run(run_id(4)).run_dir / "runs" / ".ppo.cleanrl_model.a1b2c3d4", age_days=2),
    ]
    # Files of others, whatever they are called, are not ours to remove.
    write(paths.run(run_id(4)).run_dir / ".vscode.settings", age_days=90)
    write(paths.run(run_id(4)).run_dir / "model.json", age_days=90)
    write(paths.logs / "trainer" / "notes" / "mine.txt", age_days=90)

    found = find_leftovers(paths)
    assert {(item.kind, item.path) for item in found} == {
        (LeftoverKind.LOG, kept),
        (LeftoverKind.LINK, dangling),
        *((LeftoverKind.TEMPORARY, path) for path in unfinished),
    }
    plan = make_plan([], [], found, Rule(), time.time())
    assert len(plan.leftovers) == len(found)
    assert plan.size == sum(item.size for item in found) >= 130
    for item in plan.leftovers:
        remove_leftover(item)
        remove_leftover(item)
    assert find_leftovers(paths) == []
    assert (paths.tensorboard / run_id(3)).is_symlink()
    assert (paths.run(run_id(4)).run_dir / ".vscode.settings").exists()


def test_what_is_too_young_stays(tmp_path: Path) -> None:
    paths = VarPaths(tmp_path)
    paths.make()
    write(paths.kept_logs(run_id(1)) / "events.jsonl", age_days=20)
    write(paths.configs / ".config-X.json.abcd_123", age_days=0.5)
    paths.kept_logs(run_id(2)).mkdir()
    plan = make_plan([], [], find_leftovers(paths), Rule(), time.time())
    assert plan.empty
    assert plan.size == 0


def test_the_size_of_a_folder_counts_links_as_links(tmp_path: Path) -> None:
    write(tmp_path / "run" / "a" / "b", age_days=0, size=7)
    write(tmp_path / "large", age_days=0, size=10_000)
    (tmp_path / "run" / "link").symlink_to(tmp_path / "large")
    assert 7 < folder_size(tmp_path / "run") < 1_000
    assert folder_size(tmp_path / "no-such-folder") == 0
