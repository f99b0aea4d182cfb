"""A run that is stopped and resumed ends with the same bytes as one that never stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cleanrl_worker.config.checkpoint_files import FORMAT, list_checkpoints
from cleanrl_worker.kit.state import decode, encode
from mosaic.analytics.store import RunMetrics
from mosaic.contract.errors import StorageError

STEPS = 16_000
TIMELIKE = ("charts/SPS", "time/")


def command(algo: str, env_id: str, *flags: str) -> list[str]:
    module = f"cleanrl_worker.algorithms.{algo}"
    base = [f"--env-id={env_id}", f"--total-timesteps={STEPS}", "--checkpoint-every=1500"]
    return [sys.executable, "-m", module, *base, "--seed=5", "--eval-episodes=0", *flags]


def model_of(folder: Path) -> bytes:
    (path,) = folder.glob("runs/*/*.cleanrl_model")
    return path.read_bytes()


def curves_of(folder: Path) -> dict[str, list[tuple[int, float]]]:
    table = RunMetrics.open(folder / "runs")
    return {
        tag: list(zip(table.series(tag).steps, table.series(tag).values, strict=True))
        for tag in table.names
        if not tag.startswith(TIMELIKE)
    }


def run_until_checkpoint(folder: Path, flags: list[str], number: signal.Signals) -> Path:
    """Start a run, and end it by a signal once it has written a checkpoint."""
    with (folder / "stderr").open("wb") as stderr:
        process = subprocess.Popen(flags, cwd=folder, stderr=stderr)
    before = len(list_checkpoints(folder / "checkpoints"))
    while len(list_checkpoints(folder / "checkpoints")) <= min(before, 1):
        assert process.poll() is None, (folder / "stderr").read_text()
        time.sleep(0.005)
    os.kill(process.pid, number)
    process.wait()
    return list_checkpoints(folder / "checkpoints")[-1]


GRID, ROBOT = "MiniGrid-Empty-5x5-v0", "InvertedPendulum-v5"
ROLLOUTS = ("--num-steps=256", "--num-envs=2", "--update-epochs=2", "--num-minibatches=4")
IMAGES = (
    "--total-timesteps=400",
    "--checkpoint-every=60",
    "--num-envs=2",
    "--num-steps=20",
    "--update-epochs=1",
)
OFF_POLICY = ("--total-timesteps=1000", "--checkpoint-every=150", "--learning-starts=200", "--batch-size=32")
"""An update for each step is slow: such runs are short."""
CHUNKS = (
    "--total-timesteps=26000",
    "--checkpoint-every=4000",
    "--buffer-size=12000",
    "--learning-starts=9000",
)
"""Enough steps for several chunks of the replay buffer, some of which are no longer needed at the end."""
CARTS = [
    {"env_id": "CartPole-v0", "condition": "episode_return>=22|episodes>=60"},
    {"env_id": "CartPole-v1", "steps": 2000},
    {"env_id": "CartPole-v0"},
]
"""The same cart with different limits on the length of an episode."""
ROBOTS = [{"env_id": ROBOT, "condition": "episodes>=20&steps>=150"}, {"env_id": ROBOT}]
ROOMS = [
    {"env_id": "MiniGrid-Empty-5x5-v0", "steps": 600},
    {"env_id": "MiniGrid-Empty-6x6-v0", "condition": "episodes>=6"},
    {"env_id": "MiniGrid-Empty-8x8-v0"},
]


def curriculum(stages: list[dict[str, object]]) -> str:
    return f"--curriculum={json.dumps(stages)}"


@pytest.mark.parametrize(
    ("algo", "env_id", "flags"),
    [
        ("ppo", "CartPole-v1", ()),
        (
            "ppo",
            "BabyAI-GoToLocal-v0",
            ("--total-timesteps=3000", "--checkpoint-every=500", "--update-epochs=1"),
        ),
        ("ppo_atari", "ALE/Breakout-v5", IMAGES),
        ("ppo_atari_lstm", "PongNoFrameskip-v4", IMAGES),
        ("ppo_atari_lstm", "mosaic/Recall-v0", IMAGES),
        ("ppo_continuous_action", ROBOT, ROLLOUTS),
        ("rpo_continuous_action", "Pendulum-v1", ROLLOUTS),
        ("dqn", "CartPole-v1", (*CHUNKS, "--num-envs=3")),
        ("dqn_jax", "CartPole-v1", ("--learning-starts=1000", "--total-timesteps=8000", "--tau=0.5")),
        ("c51", "CartPole-v1", ("--learning-starts=1000", "--total-timesteps=8000")),
        ("pqn", "CartPole-v1", ()),
        ("ddpg_continuous_action", "Pendulum-v1", OFF_POLICY),
        ("td3_continuous_action", "Pendulum-v1", (*OFF_POLICY, "--num-envs=3")),
        ("sac_continuous_action", ROBOT, OFF_POLICY),
        ("ppo_continuous_action", "dm_control/pendulum-swingup-v0", (*ROLLOUTS, "--total-timesteps=5000")),
        ("ppo", GRID, ("--total-timesteps=4000", "--checkpoint-every=500", curriculum(ROOMS))),
        ("pqn", "CartPole-v0", (curriculum(CARTS),)),
        ("dqn", "CartPole-v0", (*CHUNKS, "--num-envs=3", curriculum(CARTS))),
        ("sac_continuous_action", ROBOT, (*OFF_POLICY, "--num-envs=2", curriculum(ROBOTS))),
    ],
)
def test_stopped_and_resumed_ends_with_the_same_bytes(
    tmp_path: Path, algo: str, env_id: str, flags: tuple[str, ...]
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    subprocess.run(command(algo, env_id, *flags), cwd=whole, check=True)
    resume: list[str] = []
    for number in (signal.SIGKILL, signal.SIGTERM):
        checkpoint = run_until_checkpoint(parts, command(algo, env_id, *flags, *resume), number)
        resume = [f"--resume-from={checkpoint}"]
    subprocess.run(command(algo, env_id, *flags, *resume), cwd=parts, check=True)
    assert model_of(parts) == model_of(whole)
    assert curves_of(parts) == curves_of(whole)


def test_the_last_two_checkpoints_stay_and_hold_no_code(tmp_path: Path) -> None:
    subprocess.run(command("ppo", "CartPole-v1"), cwd=tmp_path, check=True)
    kept = list_checkpoints(tmp_path / "checkpoints")
    assert len(kept) == 2
    content = decode(kept[-1])
    assert (content["algo"], content["args"]["seed"]) == ("ppo", 5)
    assert b"pickle" not in kept[-1].read_bytes()


def test_a_checkpoint_of_another_algorithm_or_a_broken_one_is_refused(tmp_path: Path) -> None:
    foreign, broken = tmp_path / "foreign.npz", tmp_path / "broken.npz"
    args = {"total_timesteps": 100}
    content = {"format": FORMAT, "algo": "dqn", "step": 5, "folder": "x", "args": args, "parts": {}}
    foreign.write_bytes(encode(content))
    broken.write_bytes(b"not a checkpoint")
    refused = ((foreign, "is of dqn, not of ppo"), (broken, "is not a checkpoint, or is a broken one"))
    for path, message in refused:
        done = subprocess.run(
            command("ppo", "CartPole-v1", f"--resume-from={path}"),
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2
        assert message in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_a_state_comes_back_as_it_was(tmp_path: Path) -> None:
    state = {
        "array": np.arange(6, dtype=np.float32).reshape(2, 3),
        "nested": {"list": [1, 2.5, "x", None, np.ones(2)], "big": 2**100, "none": None},
        "empty": np.zeros((0, 4)),
    }
    path = tmp_path / "state.npz"
    path.write_bytes(encode(state))
    back = decode(path)
    np.testing.assert_array_equal(back["array"], state["array"])
    assert back["array"].dtype == np.float32
    assert back["nested"]["list"][:4] == [1, 2.5, "x", None]
    assert back["nested"]["big"] == 2**100
    assert back["empty"].shape == (0, 4)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(StorageError, match="cannot be read"):
        decode(path)


def test_a_checkpoint_that_cannot_be_written_ends_the_run_with_that_cause(tmp_path: Path) -> None:
    subprocess.run(command("ppo", "CartPole-v1", "--total-timesteps=4000"), cwd=tmp_path, check=True)
    kept = list_checkpoints(tmp_path / "checkpoints")
    # Files of more than 64 KiB cannot be written, as on a disk that has no more room.
    limited = ["bash", "-c", 'ulimit -f 64; exec "$0" "$@"', *command("ppo", "CartPole-v1")]
    done = subprocess.run(limited, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "The checkpoint at step 1536 cannot be written" in done.stderr
    assert list_checkpoints(tmp_path / "checkpoints") == kept
    assert decode(kept[-1])["step"] == 4000
    assert not [path for path in (tmp_path / "checkpoints").iterdir() if path.name.startswith(".")]
