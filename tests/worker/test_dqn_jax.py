"""An algorithm in JAX: no torch beside it, files that Flax reads, and nothing compiled twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import numpy as np
import optax
import pytest
from flax import serialization

from cleanrl_worker.algorithms import dqn_jax
from cleanrl_worker.config.checkpoint_files import find_origin
from cleanrl_worker.evaluation.models import open_model
from cleanrl_worker.kit.jax_backend import Target, Tree, load_tree
from cleanrl_worker.kit.spec import Misfit
from cleanrl_worker.kit.state import decode, encode
from mosaic.contract.errors import UserError
from support.hiding import HIDE_JAX

SHORT = (
    "--total-timesteps=600",
    "--learning-starts=200",
    "--batch-size=16",
    "--eval-every=300",
    "--eval-episodes=2",
    "--checkpoint-every=300",
)


class TheirNetwork(nn.Module):
    """As CleanRL's script for JAX has it."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.relu(nn.Dense(120)(x))
        x = nn.relu(nn.Dense(84)(x))
        return nn.Dense(2)(x)


def python(code: str, folder: Path, lines: str = "") -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, input=lines, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


TRAIN_AND_EVALUATE = """
import sys
from pathlib import Path
from cleanrl_worker.portable import launcher
preview = "--before=cleanrl_worker.kit.preview"
assert launcher.main(["--preload", preview, "cleanrl_worker.algorithms.dqn_jax", *{flags!r}]) == 0
assert "jax" in sys.modules and "torch" not in sys.modules
from cleanrl_worker.evaluation.evaluate_policy import main
for policy in (*Path("runs").glob("*/dqn_jax.cleanrl_model"), "checkpoints/step-000000000600.npz"):
    assert main([f"--policy-path={{policy}}", "--eval-episodes=3"]) == 0
assert "torch" not in sys.modules
"""
PLAY = """
import sys
from cleanrl_worker.evaluation.interactive import main
assert main(["--policy-path={policy}"]) == 0
assert "jax" in sys.modules and "torch" not in sys.modules
"""


def test_training_evaluating_and_playing_need_no_torch(tmp_path: Path) -> None:
    told = python(TRAIN_AND_EVALUATE.format(flags=SHORT), tmp_path)
    assert told.count("3 episodes, mean ") == 2
    (path,) = tmp_path.glob("runs/*/dqn_jax.cleanrl_model")
    played = python(PLAY.format(policy=path), tmp_path, '{"type": "reset"}\n{"type": "step"}\n')
    kinds = [json.loads(line)["type"] for line in played.splitlines()]
    assert kinds[0] == "init" and kinds[-1] == "stopped" and "error" not in kinds


def test_the_model_file_is_what_flax_reads_and_theirs_are_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert dqn_jax.main(SHORT) == 0
    (ours,) = tmp_path.glob("runs/*/dqn_jax.cleanrl_model")
    network = TheirNetwork()
    params = network.init(jax.random.PRNGKey(3), np.zeros((1, 4), np.float32))
    obs = np.random.default_rng(1).normal(size=(30, 4)).astype(np.float32)
    expected = network.apply(serialization.from_bytes(params, ours.read_bytes()), obs)
    theirs = tmp_path / "theirs.cleanrl_model"
    theirs.write_bytes(serialization.to_bytes(params))
    found = open_model(theirs, env_id="CartPole-v1")
    assert found.spec.name == "dqn_jax"
    with found.make_envs(1) as envs:
        played = open_model(ours).load_policy(envs).judge(obs)
        assert found.load_policy(envs).act(obs) == np.argmax(network.apply(params, obs), axis=1).tolist()
    np.testing.assert_allclose(played.action_values, np.asarray(expected), rtol=1e-5, atol=1e-6)
    assert find_origin(theirs).step is None
    resumed = ["--total-timesteps=300", "--learning-starts=1000", f"--resume-from={theirs}"]
    assert dqn_jax.main([*resumed, "--checkpoint-every=300"]) == 0
    parts = decode(tmp_path / "checkpoints" / "step-000000000300.npz")["parts"]
    for name in ("network", "target"):
        kernel = parts[name]["params"]["Dense_1"]["kernel"]
        np.testing.assert_array_equal(kernel, np.asarray(params["params"]["Dense_1"]["kernel"]))


def shaped(**shapes: tuple[int, ...]) -> dict[str, Any]:
    return {"params": {name: {"kernel": np.ones(shape, np.float32)} for name, shape in shapes.items()}}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (shaped(a=(2, 3)), "it lacks params.b.kernel"),
        (shaped(a=(2, 3), b=(3, 1), c=(1,)), "it has params.c.kernel, which have no place there"),
        (shaped(a=(2, 3), b=(4, 1)), "params.b.kernel has the shape (4, 1) where (3, 1) is needed"),
        ({"params": {"a": "text"}}, "it does not hold the weights of one network by their names"),
        ([1, 2], "it does not hold the weights of one network by their names"),
    ],
)
def test_what_does_not_fit_is_said_as_for_torch(given: Any, said: str) -> None:
    with pytest.raises(Misfit) as misfit:
        load_tree(shaped(a=(2, 3), b=(3, 1)), given)
    assert str(misfit.value) == said


def test_a_tree_comes_back_from_a_checkpoint_by_its_names(tmp_path: Path) -> None:
    params = {"layer": {"kernel": np.arange(6, dtype=np.float32).reshape(2, 3)}}
    optimizer = optax.adam(0.1)
    slopes = jax.tree.map(np.ones_like, params)
    moments = Tree(optimizer.update(slopes, optimizer.init(params))[1])
    path = tmp_path / "parts.npz"
    path.write_bytes(encode({"moments": moments.state()}))
    again = Tree(optimizer.init(params))
    again.load(decode(path)["moments"])
    assert jax.tree.structure(again.value) == jax.tree.structure(moments.value)
    jax.tree.map(np.testing.assert_array_equal, again.value, moments.value)
    assert again.state()["0"]["mu"]["layer"]["kernel"].shape == (2, 3)


def test_a_target_goes_its_share_of_the_way() -> None:
    network = Tree({"kernel": np.zeros(3, np.float32)})
    target = Target(network)
    network.value = {"kernel": np.ones(3, np.float32)}
    target.follow(0.25)
    np.testing.assert_allclose(target.value["kernel"], 0.25)
    target.follow(1.0)
    np.testing.assert_array_equal(target.value["kernel"], network.value["kernel"])


def test_fewer_observations_are_not_compiled_anew(tmp_path: Path) -> None:
    path = tmp_path / "some.cleanrl_model"
    params = TheirNetwork().init(jax.random.PRNGKey(1), np.zeros((1, 4), np.float32))
    path.write_bytes(serialization.to_bytes(params))
    obs = np.random.default_rng(2).normal(size=(11, 4)).astype(np.float32)
    model = open_model(path, "dqn_jax", "CartPole-v1")
    with model.make_envs(1) as envs:
        policy = model.load_policy(envs)
        policy.act(obs)
        compiled = dqn_jax.action_values._cache_size()
        for rows in (10, 3, 1):
            policy.seed(5)
            assert policy.act(obs[:rows]) == policy.act(obs)[:rows]
        # Another policy of the same network shares what was compiled.
        assert len(model.load_policy(envs).act(obs)) == 11
        assert dqn_jax.action_values._cache_size() == compiled
        policy.seed(5)
        drawn = [policy.act(np.repeat(obs[:1], 500, axis=0), deterministic=False) for _ in range(2)]
    assert drawn[0] != drawn[1]
    share = np.mean(np.array(drawn) != policy.act(obs[:1])[0])
    assert 0.0 < share < 0.1, "a twentieth of the actions is random, half of which are the best one"


def test_without_jax_the_command_that_installs_it_is_said_before_anything_starts(tmp_path: Path) -> None:
    arguments = ["--algo", "dqn_jax", "--env-id", "CartPole-v1", "--total-timesteps", "9", "--dry-run"]
    code = f"{HIDE_JAX}\nfrom cleanrl_worker.cli import main\nraise SystemExit(main({arguments}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.strip() == "dqn_jax needs the optional set 'jax': run `mosaic extras install jax`."
    assert list(tmp_path.iterdir()) == []
    model = tmp_path / "some.cleanrl_model"
    model.write_bytes(b"\x81\xa6params\x80")
    opened = f"from cleanrl_worker.evaluation.models import open_model\nopen_model(Path({str(model)!r}))"
    code = f"{HIDE_JAX}\nfrom pathlib import Path\n{opened}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "some.cleanrl_model needs the optional set 'jax': run" in done.stderr.splitlines()[-1]


def test_a_broken_file_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "some.cleanrl_model"
    params = TheirNetwork().init(jax.random.PRNGKey(1), np.zeros((1, 4), np.float32))
    path.write_bytes(serialization.to_bytes(params)[:-100])
    with pytest.raises(
        UserError, match=r"^\S+ is not a Flax file of plain weights, so it cannot be loaded\.$"
    ):
        open_model(path, "dqn_jax", "CartPole-v1")
