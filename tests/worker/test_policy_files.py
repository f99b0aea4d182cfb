"""Policies are found by name, and listed with what their cards and headers say."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from cleanrl_worker.config.policy_files import each_policy, find_policy
from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY
from mosaic.contract.errors import NotFoundError, UserError
from mosaic.contract.paths import RunPaths, VarPaths

FIRST, SECOND, EMPTY = (
    "01AAAAAAAAAAAAAAAAAAAAAAAA",
    "01AABBBBBBBBBBBBBBBBBBBBBB",
    "01ZZZZZZZZZZZZZZZZZZZZZZZZ",
)


@pytest.fixture
def var(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs with policies, and a newer one without any."""
    paths = VarPaths(tmp_path / "var")
    ppo = importlib.import_module(DEFAULT_ALGO_REGISTRY["ppo"])
    for run_id, flags in ((FIRST, ()), (SECOND, ("--eval-every=100",))):
        folder = paths.run(run_id).run_dir
        folder.mkdir(parents=True)
        monkeypatch.chdir(folder)
        base = ["--num-steps=50", "--total-timesteps=400", "--seed=4", "--checkpoint-every=200"]
        assert ppo.main([*base, "--eval-episodes=2", *flags]) == 0
        paths.run(run_id).logs.mkdir()
    (paths.runs / EMPTY / "logs").mkdir(parents=True)
    beat = {"event": "heartbeat", "payload": {"last_return": 9.0, "mean_return": 21.0}}
    paths.run(FIRST).events.write_text(json.dumps(beat) + "\nnot JSON\n")
    paths.run(SECOND).manifest.write_text(json.dumps({"headline": {"last_return": 1.0, "mean_return": 17.5}}))
    monkeypatch.chdir(tmp_path)
    return paths.root


def test_a_run_means_its_newest_policy_or_its_best(var: Path, tmp_path: Path) -> None:
    newest = find_policy(SECOND, tmp_path, var)
    assert (newest.is_model, newest.best, newest.step, newest.algo) == (True, False, 400, "ppo")
    assert find_policy("last", tmp_path, var) == newest, "a run without policies is passed over"
    assert find_policy(SECOND[:5].lower(), tmp_path, var) == newest
    assert find_policy(f"var/trainer/runs/{SECOND}", tmp_path, var).path == newest.path
    best = find_policy("last:best", tmp_path, var)
    assert best.is_model and best.best and best.path.endswith(".best.cleanrl_model")
    Path(best.path).unlink()
    assert find_policy("last:best", tmp_path, var).path.endswith("best.npz")
    Path(newest.path).unlink()
    checkpoint = find_policy(SECOND, tmp_path, var)
    assert (Path(checkpoint.path).name, checkpoint.step) == ("step-000000000400.npz", 400)
    assert find_policy(checkpoint.path, tmp_path).step == 400


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("01AA", "'01AA' is the beginning of 2 run ids"),
        ("nothing.cleanrl_model", "There is no policy 'nothing.cleanrl_model'"),
        (EMPTY, "There is no policy in "),
        ("01Q", "There is no policy '01Q': name a .cleanrl_model file"),
    ],
)
def test_a_name_that_means_nothing_is_answered_with_a_sentence(
    var: Path, tmp_path: Path, name: str, problem: str
) -> None:
    with pytest.raises(UserError, match=problem):
        find_policy(name, tmp_path, var)


def test_without_any_run_last_means_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="There is no run with a policy yet"):
        find_policy("last", tmp_path, tmp_path)
    assert list(each_policy(tmp_path)) == []


def test_all_policies_are_listed_with_what_they_are_of(var: Path) -> None:
    found = list(each_policy(var))
    assert [facts.run_id for facts in found] == sorted((facts.run_id or "" for facts in found), reverse=True)
    assert {(facts.algo, facts.env_id, facts.seed) for facts in found} == {("ppo", "CartPole-v1", 4)}
    assert all(facts.size == Path(facts.path).stat().st_size for facts in found)
    first = [facts for facts in found if facts.run_id == FIRST]
    names = [Path(facts.path).name for facts in first]
    assert names[0] == "ppo.cleanrl_model" and "best.npz" in names and "step-000000000200.npz" in names
    earned = {Path(facts.path).name: facts.mean_return for facts in first}
    assert earned["ppo.cleanrl_model"] in (21.0, earned["best.npz"])
    best = next(facts for facts in found if facts.run_id == SECOND and facts.best and facts.is_model)
    score = next(facts for facts in found if facts.run_id == SECOND and facts.best and not facts.is_model)
    assert best.mean_return == score.mean_return is not None


def test_a_file_that_does_not_read_is_listed_without_what_it_says(var: Path) -> None:
    paths: RunPaths = VarPaths(var).run(FIRST)
    broken = paths.checkpoints / "step-000000000999.npz"
    broken.write_bytes(b"not a zip")
    facts = next(facts for facts in each_policy(var) if facts.path == str(broken))
    assert (facts.algo, facts.step, facts.size) == (None, None, 9)
