"""What live frames add to a step in which nothing is drawn.

Run as a script, inside a run's environment, it measures and tells a JSON line.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from tables import Row

from cleanrl_worker.config.live import LiveFrames, LiveSettings

RUN_ID = f"BENCH-UNWATCHED-{os.getpid()}"
ENVIRONMENTS = 8
LIMIT_NS = 1000.0


class Empty(gymnasium.Env[Any, Any]):
    """Does nothing, so that only what is around it costs."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012
    observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(2)
    _answer = (np.zeros(1, np.float32), 1.0, False, False, {})

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        return self._answer


def run(short: bool) -> list[Row]:
    """A wrapped environment beside a bare one, and our own vector environment with taps and without."""
    live = LiveFrames(RUN_ID, LiveSettings())
    environment = live.add_to({**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, None)
    command = [sys.executable, "-m", "fastlane_cases.unwatched", "5" if short else "25"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    live.close()
    assert done.returncode == 0, "the measuring process failed"
    return [
        Row(
            name,
            f"{found['best']:.0f} ns (best), {found['median']:.0f} ns (median of {found['rounds']})",
            "1 µs added to a step",
            found["median"] <= LIMIT_NS,
        )
        for name, found in json.loads(done.stdout.splitlines()[-1]).items()
    ]


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Nanoseconds added to one step, in rounds that take turns."""
    gymnasium.register("Empty-v0", entry_point=Empty)
    gymnasium.register("EmptyEpisodes-v0", entry_point=Empty, max_episode_steps=1000)
    unpatched = gymnasium.make.__wrapped__  # type: ignore[attr-defined]
    ours, between, bare = (
        make("Empty-v0", disable_env_checker=True) for make in (gymnasium.make, gymnasium.make, unpatched)
    )
    # As it is while somebody looks and the next picture is not due.
    between.tap.mark[0], between.tap.due_at = time.monotonic(), float("inf")
    many = [_vector(make) for make in (gymnasium.make, unpatched)]
    return {
        "Nobody watching: `gymnasium.make`, empty step": _added(
            [_single(ours), _single(bare)], 100_000, rounds
        ),
        "Watched, steps between two pictures: `gymnasium.make`, empty step": _added(
            [_single(between), _single(bare)], 100_000, rounds
        ),
        f"Nobody watching: our VectorEnv of {ENVIRONMENTS}, for each environment": _added(
            many, 10_000, rounds, ENVIRONMENTS
        ),
    }


def _single(env: Any) -> Callable[[], Any]:
    env.reset(seed=1)
    return lambda step=env.step: step(0)


def _vector(make: Callable[..., Any]) -> Callable[[], Any]:
    from cleanrl_worker.kit.vector_env import VectorEnv

    envs = VectorEnv([make("EmptyEpisodes-v0", disable_env_checker=True) for _ in range(ENVIRONMENTS)])
    out = np.zeros((ENVIRONMENTS, 1), np.float32)
    envs.reset(1, out)
    actions = [0] * ENVIRONMENTS
    return lambda: envs.step(actions, out)


def _added(
    steps: list[Callable[[], Any]], count: int, rounds: int, environments: int = 1
) -> dict[str, float]:
    """Nanoseconds for one step of one environment, ours less the bare one."""
    pairs = [[_seconds(step, count) / count / environments * 1e9 for step in steps] for _ in range(rounds)]
    ours, bare = zip(*pairs, strict=True)
    return {
        "best": min(ours) - min(bare),
        "median": statistics.median(mine - other for mine, other in pairs),
        "rounds": rounds,
    }


def _seconds(step: Callable[[], Any], count: int) -> float:
    """CPU time, as other work on the machine is no cost of ours."""
    began = time.process_time()
    for _ in range(count):
        step()
    return time.process_time() - began


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
