"""What the check before a run refuses is what training refuses, in the same words, and nothing else."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY
from cleanrl_worker.schemas.check import GREATEST_SEED, warn_together
from cleanrl_worker.schemas.model import load_schema
from cleanrl_worker.supervisor.offers import CATALOG
from conftest import RunMosaic
from gym_gui.ui.presenters.form_page import check_order
from mosaic.client import train_config
from mosaic.contract.errors import UserError
from support.policies import save_catch


def config(algo: str, steps: Any = 1000, seed: Any = 1, **params: Any) -> dict[str, Any]:
    tried = ("CartPole-v1", "Pendulum-v1", "mosaic/Catch-v0", "mosaic/Rally-v0")
    env = next(one for one in tried if not CATALOG.misfit(algo, one))
    fields = {"run_id": "r", "algo": algo, "env_id": env, "total_timesteps": steps, "seed": seed}
    return {**fields, "extras": {"algo_params": params}}


@pytest.mark.parametrize(
    ("algo", "steps", "params", "said"),
    [
        ("ppo", 1, {}, "total_timesteps is 1, which is less than one step of 4 environments; raise it or"),
        ("pqn", 7, {"num_envs": 8}, "total_timesteps is 7, which is less than one step of 8 environments"),
        ("ppo", 1000, {"num_minibatches": 513}, "num_minibatches is 513, but a rollout has only 512 steps"),
        (
            "pqn",
            1000,
            {"num_envs": 1, "num_steps": 1},
            "num_minibatches is 4, but a rollout has only 1 steps",
        ),
        ("dqn", 1000, {"buffer_size": 100}, "batch_size is 128, but the replay buffer holds only 100"),
        ("sac_continuous_action", 1000, {"batch_size": 10**7}, "batch_size is 10000000, but the replay"),
        ("ppo", 1000, {"eval_every": 10, "eval_episodes": 0}, "eval_every asks for evaluations, but"),
        ("c51", 1000, {"v_min": 5.0, "v_max": 5.0}, "v_min is 5.0, which is not less than v_max, 5.0"),
        ("ppo", 1000, {"exp_name": "x" * 101}, "exp_name has 101 characters; at most 100 are allowed"),
        ("ppo", 1000, {"num_steps": 10**16}, "is 10000000000000000, but must be at most 1e+15"),
        ("ppo", 1000, {"learning_rate": 1e31}, "is 1e+31, but must be at most 1e+30"),
        ("c51", 1000, {"v_min": -1e31}, "is -1e+31, but must be at most 1e+30"),
    ],
)
def test_values_that_do_not_fit_each_other_are_refused_before_and_in_training(
    algo: str,
    steps: int,
    params: dict[str, Any],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = config(algo, steps, **params)
    with pytest.raises(UserError) as refused:
        CATALOG.check(asked, None, None)
    assert said in str(refused.value)
    monkeypatch.chdir(tmp_path)
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in params.items()]
    module = importlib.import_module(DEFAULT_ALGO_REGISTRY[algo])
    assert module.main([f"--env-id={asked['env_id']}", f"--total-timesteps={steps}", *flags]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": 2**64}, "'seed' is 18446744073709551616, but it must be at most 2147483647."),
        ({"seed": GREATEST_SEED + 1}, "'seed' is 2147483648, but"),
        ({"seed": -1}, "'seed' is -1, but it must be a whole number of at least 0."),
        ({"total_timesteps": 10**18}, "'total_timesteps' is 1000000000000000000, but it must be at most"),
        ({"extras": {"seed_override": 2**64}}, "'extras.seed_override' is 18446744073709551616, but"),
        ({"extras": {"seed_override": "x"}}, "'extras.seed_override' is 'x', but it must be a whole number"),
        ({"env_id": "CartPole-v1\0"}, "'env_id' is 'CartPole-v1"),
    ],
)
def test_what_every_run_has_is_bounded_too(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=r"^[^\n]*$") as refused:
        CATALOG.check(config("ppo") | changes, None, None)
    assert said in str(refused.value)


def test_a_run_that_needs_more_memory_than_there_is_is_refused() -> None:
    with pytest.raises(UserError, match=r"would need about [\d,]+ MB .*; lower buffer_size\."):
        CATALOG.check(config("dqn", 10**13, buffer_size=10**12), None, None)
    with pytest.raises(UserError, match=r"this machine has [\d,]+ MB; lower num_envs or num_steps\."):
        CATALOG.check(config("ppo", 10**14, num_envs=10**11), None, None)
    # No longer than the budget, a rollout is no larger either.
    CATALOG.check(config("ppo", num_steps=10**12), None, None)


@pytest.mark.parametrize("algo", DEFAULT_ALGO_REGISTRY)
def test_the_defaults_of_every_algorithm_fit_each_other(algo: str, tmp_path: Path) -> None:
    schema = load_schema(algo)
    assert schema is not None
    defaults = {one.name: one.default for one in schema.parameters}
    needed = {"teacher_policy": str(save_catch(tmp_path))} if "teacher_policy" in defaults else {}
    steps = defaults["total_timesteps"]
    CATALOG.check(config(algo, steps, seed=GREATEST_SEED, **needed), None, None)
    assert CATALOG.warning(config(algo, steps, **needed)) == ""


def test_a_budget_in_which_nothing_is_learned_is_told_before_the_start(run_mosaic: RunMosaic) -> None:
    said = "Nothing will be learned: the first update comes at step 10,010, and the run ends at 5,000; raise"
    assert CATALOG.warning(config("dqn", 5000)).startswith(said)
    asked = ["train", "dqn", "CartPole-v1", "--steps", "5000"]
    told = run_mosaic(*asked, "--dry-run").stdout
    assert said in " ".join(told.split())
    short = [*asked[:-1], "200", "--set", "eval_episodes=0", "--detach"]
    done = run_mosaic(*short)
    assert "Nothing will be learned: the first update comes at step 10,010" in done.stderr
    run_mosaic("watch", "last", check=False)


class _Order:
    """What a form asks for."""

    def configs(self) -> list[dict[str, Any]]:
        return [train_config("dqn", "CartPole-v1", total_timesteps=5000)]


def test_the_check_of_a_form_tells_it_too() -> None:
    report = check_order(_Order(), CATALOG)
    assert report.ok and report.sentence.startswith("Nothing will be learned: the first update comes at step")


@pytest.mark.parametrize(
    ("values", "first"),
    [
        ({"learning_starts": 99}, None),
        ({"learning_starts": 100}, 101),
        ({"learning_starts": 85, "train_frequency": 10}, None),
        ({"learning_starts": 95, "train_frequency": 10}, None),
        ({"learning_starts": 0, "train_frequency": 101}, 101),
    ],
)
def test_the_first_update_is_counted_as_training_counts_it(values: dict[str, int], first: int | None) -> None:
    said = warn_together({"total_timesteps": 100, **values})
    assert (f"at step {first}, " in said) if first else (said == "")
