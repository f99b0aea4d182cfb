"""A module that only a file names is imported by nobody: not to check, to play, to resume or to evaluate."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cleanrl_worker import cli
from cleanrl_worker.config.checkpoint_files import FORMAT
from cleanrl_worker.evaluation.evaluate_policy import main as evaluate
from cleanrl_worker.evaluation.models import open_model
from cleanrl_worker.supervisor.offers import CATALOG
from conftest import RunMosaic
from mosaic.client import Client, eval_config, resume_config, train_config
from mosaic.client.playing import PlaySession
from mosaic.contract.errors import UntrustedModuleError, UserError
from mosaic.contract.paths import VarPaths
from support.foreign_models import layers
from support.policies import save_policy
from support.terminal import at_terminal

EVIL = """
from pathlib import Path
import gymnasium
Path(__file__).with_name("was-imported").touch()
gymnasium.register("Evil-v0", entry_point="gymnasium.envs.classic_control:CartPoleEnv")
"""
ENV = "evilmod:Evil-v0"
SENTENCE = r"names the module 'evilmod', whose code would be run: .*--trust evilmod"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder, in which somebody has put a module and a policy that names it."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "evilmod.py").write_text(EVIL)
    monkeypatch.chdir(folder)
    return folder


def was_imported(place: Path) -> bool:
    return (place / "was-imported").exists()


def model(place: Path, env_id: str = ENV, **args: Any) -> Path:
    weights = layers("critic", 4, 64, 64, 1) | layers("actor", 4, 64, 64, 2)
    return save_policy(place / "x.cleanrl_model", weights, "ppo", env_id, **args)


def checkpoint(place: Path, **args: Any) -> Path:
    """A full checkpoint as far as it is read before anything starts."""
    known = {"env_id": "CartPole-v1", "seed": 1, "total_timesteps": 100_000, **args}
    header = {"format": FORMAT, "algo": "ppo", "args": known, "step": 1000, "folder": "x", "parts": {}}
    path = place / "step-000000001000.npz"
    with path.open("wb") as file:
        np.savez(file, __shape__=np.frombuffer(json.dumps(header).encode(), np.uint8))
    return path


def beside_a_manifest(place: Path) -> Path:
    """The model of somebody's script, with a manifest that says what it is of."""
    folder = place / "run" / "runs" / "x"
    folder.mkdir(parents=True)
    shutil.move(model(place), folder / "ppo.cleanrl_model")
    (place / "x.policy.json").unlink()
    (place / "run" / "analytics.json").write_text(json.dumps({"env_id": ENV, "algo": "ppo"}))
    return folder / "ppo.cleanrl_model"


ONE_STAGE = json.dumps([{"env_id": ENV, "steps": 5000}, {"env_id": "CartPole-v1"}])


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda place: eval_config(model(place)), id="evaluate a model"),
        pytest.param(lambda place: eval_config(checkpoint(place, env_id=ENV)), id="evaluate a checkpoint"),
        pytest.param(lambda place: eval_config(beside_a_manifest(place)), id="evaluate beside a manifest"),
        pytest.param(
            lambda place: eval_config(model(place, "CartPole-v1", env_kwargs=json.dumps({"env_id": ENV}))),
            id="evaluate with arguments",
        ),
        pytest.param(
            lambda place: eval_config(
                model(place, "CartPole-v1", env_kwargs=json.dumps({"env_id": ENV})), env_id="CartPole-v1"
            ),
            id="evaluate with arguments on the environment that was named",
        ),
        pytest.param(lambda place: resume_config(model(place)), id="resume a model"),
        pytest.param(lambda place: resume_config(checkpoint(place, env_id=ENV)), id="resume a checkpoint"),
        pytest.param(
            lambda place: resume_config(checkpoint(place, curriculum=ONE_STAGE)), id="resume in a curriculum"
        ),
        pytest.param(
            lambda place: resume_config(checkpoint(place, env_kwargs=json.dumps({"entry_point": ENV}))),
            id="resume with arguments",
        ),
        pytest.param(lambda place: PlaySession.start(model(place)).close(), id="play"),
        pytest.param(lambda place: open_model(checkpoint(place, env_id=ENV)), id="open"),
        pytest.param(
            lambda place: CATALOG.check(
                {"run_id": "a", "extras": {"mode": "policy_eval", "policy_path": str(model(place))}},
                None,
                None,
            ),
            id="the daemon's own check",
        ),
    ],
)
def test_what_only_a_file_names_is_refused_and_not_imported(
    ask: Callable[[Path], object], place: Path, var: Path
) -> None:
    with pytest.raises(UntrustedModuleError, match=SENTENCE) as refused:
        ask(place)
    assert refused.value.module == "evilmod" and not was_imported(place) and "evilmod" not in sys.modules


def test_a_session_by_hand_imports_nothing_either(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    extras = json.dumps({"mode": "policy_eval", "policy_path": str(model(place))})
    assert cli.main(["--extras", extras, "--dry-run"]) == 2
    assert evaluate([f"--policy-path={model(place)}"]) == 2
    assert capsys.readouterr().err.count("--trust evilmod") == 2
    assert not was_imported(place)


def test_who_names_the_environment_or_says_yes_is_trusted(place: Path, var: Path) -> None:
    for given in ({"env_id": ENV}, {"extras": {"trust_modules": ["evilmod"]}}):
        config = eval_config(model(place), **given)
        assert config["metadata"]["worker"]["config"]["env_id"] == ENV and was_imported(place)
        (place / "was-imported").unlink()
    with pytest.raises(UntrustedModuleError):
        eval_config(model(place), extras={"trust_modules": ["evil", "evilmod.sub"]})
    with pytest.raises(UserError, match="must be a list of modules"):
        eval_config(model(place), extras={"trust_modules": "evilmod"})
    with PlaySession.start(model(place), trust=["evilmod"]) as session:
        assert session.init["env_id"] == ENV


def test_a_run_of_ones_own_is_trusted_by_its_record_and_its_copy_is_not(
    place: Path, client: Client, run_mosaic: RunMosaic
) -> None:
    params = {
        "num_steps": 16,
        "num_envs": 1,
        "num_minibatches": 1,
        "eval_episodes": 0,
        "checkpoint_every": 16,
    }
    config = train_config("ppo", ENV, total_timesteps=32, params=params)
    run = client.wait(client.submit(config).run_id, timeout=90)
    assert run.outcome == "completed", run.reason
    assert eval_config("last")["metadata"]["worker"]["config"]["env_id"] == ENV
    assert resume_config(run.run_dir, extend=100)["metadata"]["worker"]["config"]["env_id"] == ENV
    # Also where only an option says which folder it lies in.
    run_mosaic("eval", "last", "--dry-run", "--var", str(client.paths.root), env={"MOSAIC_VAR": "/nowhere"})
    copied = VarPaths(place / "copied")
    shutil.copytree(client.paths.trainer / "runs", copied.runs)
    shutil.copytree(client.paths.configs, copied.configs)
    with pytest.raises(UntrustedModuleError):
        resume_config(copied.runs / run.run_id, extend=100)
    # A file that was put into a run's folder later names what nobody has submitted.
    (place / "other.py").write_text(EVIL)
    with pytest.raises(UntrustedModuleError):
        eval_config(model(Path(run.run_dir), "other:Evil-v0"))


def test_the_terminal_asks_and_the_answer_holds(place: Path, var: Path) -> None:
    with at_terminal("eval", str(model(place)), "--dry-run") as terminal:
        terminal.read_until(r"Import 'evilmod'\? \[y/N\]")
        terminal.type("\n")
        assert terminal.wait() == 2 and not was_imported(place)
    with at_terminal("eval", str(model(place)), "--dry-run") as terminal:
        terminal.read_until(r"Import 'evilmod'\? \[y/N\]")
        terminal.type("y\n")
        terminal.read_until("All checks passed")
        assert terminal.wait() == 0 and was_imported(place)
