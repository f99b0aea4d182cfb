"""The share of training time that drawing and publishing take while somebody looks.

Run as a script, inside a run's environment, it plays and tells a JSON line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import gymnasium
import numpy as np
from tables import Row

from cleanrl_worker.live import LiveFrames, LiveSettings
from fastlane_cases.processes import look_forever, process

ENV_IDS = ("CartPole-v1", "MiniGrid-Empty-8x8-v0", "ALE/Breakout-v5", "HalfCheetah-v5")
RUN_ID = f"BENCH-WATCHED-{os.getpid()}"
MODES = {"single": (1, 0.05), "grid": (8, 0.15)}
"""How many environments there are, and the share that they may take together."""
VIEWER_PAUSE = 1 / 60
HIDDEN = 64


def run(short: bool) -> list[Row]:
    """Each environment in both modes, with a viewer that looks 60 times a second."""
    seconds = 3.0 if short else 20.0
    return [_row(env_id, mode, seconds) for env_id in ENV_IDS for mode in MODES]


def _row(env_id: str, mode: str, seconds: float) -> Row:
    count, limit = MODES[mode]
    live = LiveFrames(RUN_ID, LiveSettings(mode, limit=count))
    environment = live.add_to({**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, None)
    command = [sys.executable, "-m", "fastlane_cases.watched", env_id, str(count), str(seconds)]
    with process(look_forever, RUN_ID, VIEWER_PAUSE):
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    live.close()
    assert done.returncode == 0, f"playing {env_id} failed"
    found = json.loads(done.stdout.splitlines()[-1])
    first = "the first" if count == 1 else "the first of all together"
    return Row(
        f"Watched: {env_id}, {mode}" + (f" of {count}" if count > 1 else ""),
        f"{found['share']:.1%}; {found['rate']:.1f} pictures a second each, "
        f"{found['draw_ms']:.1f} ms a picture; {first} {found['first_ms']:.0f} ms",
        f"{limit:.0%} of wall time",
        found["share"] <= limit,
    )


class Clock:
    """Times every call of `Tap.show` that made a picture, by tap."""

    def __init__(self) -> None:
        from cleanrl_worker.fastlane.tap import Tap

        self.drawn: dict[Any, list[tuple[float, float]]] = {}
        show = Tap.show

        def timed(tap: Any, *arguments: float) -> None:
            before, began = tap._rendered, time.monotonic()
            show(tap, *arguments)
            # A call may also put its picture off; that takes no time to speak of.
            if tap._rendered > before:
                self.drawn.setdefault(tap, []).append((began, time.monotonic()))

        Tap.show = timed  # type: ignore[method-assign]

    def seen(self, count: int, pictures: int) -> bool:
        return len(self.drawn) == count and all(len(shots) >= pictures for shots in self.drawn.values())


def play(env_id: str, count: int, seconds: float) -> dict[str, float]:
    """Random actions, each after a small policy's work, until there is enough to tell."""
    if env_id.startswith("ALE/"):
        import ale_py  # noqa: F401
    if env_id.startswith("MiniGrid-"):
        import minigrid  # noqa: F401
    clock = Clock()
    envs = [gymnasium.make(env_id) for _ in range(count)]
    for index, env in enumerate(envs):
        env.reset(seed=index)
        env.action_space.seed(index)
    weights = np.random.default_rng(0).standard_normal((HIDDEN, HIDDEN)).astype(np.float32)
    began, deadline = 0.0, time.monotonic() + 300
    # The first picture starts the renderer, and the one after it may still load something.
    while not began or time.monotonic() < began + seconds or not clock.seen(count, 4):
        assert time.monotonic() < deadline, f"{env_id}: too few pictures within five minutes"
        if not began and clock.seen(count, 2):
            began = time.monotonic()
        for env in envs:
            hidden = weights[0]
            for _ in range(3):
                hidden = np.tanh(weights @ hidden)
            result = env.step(env.action_space.sample())
            if result[2] or result[3]:
                env.reset()
    return _summary(list(clock.drawn.values()))


def _summary(taps: list[list[tuple[float, float]]]) -> dict[str, float]:
    """Over whole periods, from the begin of one picture to the begin of another; the first pictures apart."""
    share, rates, draws = 0.0, [], []
    for shots in taps:
        period = shots[-1][0] - shots[1][0]
        times = [end - begin for begin, end in shots[1:-1]]
        share += sum(times) / period
        rates.append(len(times) / period)
        draws += times
    return {
        "share": share,
        "rate": float(np.mean(rates)),
        "draw_ms": float(np.median(draws)) * 1000,
        "first_ms": sum(shots[0][1] - shots[0][0] for shots in taps) * 1000,
    }


if __name__ == "__main__":
    print(json.dumps(play(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
