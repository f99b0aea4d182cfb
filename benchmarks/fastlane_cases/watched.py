"""The share of training time that drawing and publishing take while somebody looks.

Run as a script, inside a run's environment, it plays and tells a JSON line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from tables import Row

from cleanrl_worker.config.live import LiveFrames, LiveSettings
from cleanrl_worker.portable.fastlane.portrait import DRAWER_VARIABLE
from fastlane_cases.processes import look_forever, process
from mosaic.fastlane import layout, slots

RUN_ID = f"BENCH-WATCHED-{os.getpid()}"
MODES = {"single": (1, 0.05), "grid": (8, 0.15)}
"""How many environments there are, and the share that they may take together."""
OUTSIDE_SHARE = 0.01
OUTSIDE_RATE = 12.0
"""The share and the pictures per second of one environment that are promised where another process draws."""
VIEWER_PAUSE = 1 / 60
HIDDEN = 64


class Way(NamedTuple):
    """An environment, and who draws it."""

    env_id: str
    words: str = ""
    outside: bool = False
    busy: bool = False


WAYS = (
    Way("CartPole-v1", ", a process of its own draws", outside=True),
    Way("CartPole-v1"),
    Way("MiniGrid-Empty-8x8-v0"),
    Way("ALE/Breakout-v5"),
    Way("HalfCheetah-v5", ", a process of its own draws", outside=True),
    Way("HalfCheetah-v5"),
    Way(
        "HalfCheetah-v5", ", a process of its own would draw but all cores are busy", outside=True, busy=True
    ),
)


def run(short: bool) -> list[Row]:
    """Each environment in both modes, with a viewer that looks 60 times a second."""
    seconds = 3.0 if short else 20.0
    return [_row(way, mode, seconds) for way in WAYS for mode in MODES]


def _row(way: Way, mode: str, seconds: float) -> Row:
    count, limit = MODES[mode]
    live = LiveFrames(RUN_ID, LiveSettings(mode, limit=count))
    inherited = {name: value for name, value in os.environ.items() if name != DRAWER_VARIABLE}
    drawer = {} if way.outside else {DRAWER_VARIABLE: "off"}
    environment = live.add_to({**inherited, **drawer, "PYTHONPATH": os.pathsep.join(sys.path)}, None)
    command = [sys.executable, "-m", "fastlane_cases.watched", way.env_id, str(count), str(seconds)]
    with ExitStack() as stack:
        stack.enter_context(process(look_forever, RUN_ID, VIEWER_PAUSE))
        for _ in range(os.cpu_count() or 1 if way.busy else 0):
            stack.enter_context(process(_work_forever))
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    live.close()
    assert done.returncode == 0, f"playing {way.env_id} failed"
    found = json.loads(done.stdout.splitlines()[-1])
    freely = way.outside and not way.busy
    least = OUTSIDE_RATE if freely and count == 1 else 0.0
    most = OUTSIDE_SHARE if freely else limit
    return Row(
        f"Watched: {way.env_id}, {mode}" + (f" of {count}" if count > 1 else "") + way.words,
        f"{found['share']:.2%}; {found['rate']:.1f} pictures per second each, "
        f"{found['show_ms']:.2f} ms a call; until the first pictures {found['first_ms']:.0f} ms",
        f"{most:.0%} of wall time" + (f", {least:.0f} pictures per second" if least else ""),
        found["share"] <= most and found["rate"] >= least,
    )


def _work_forever() -> None:
    while True:
        pass


class Call(NamedTuple):
    """One call of `Tap.show`: when, how many pictures there were before, and whether it drew one itself."""

    began: float
    ended: float
    pictures: int
    drew: bool


class Clock:
    """Times every call of `Tap.show`, by tap."""

    def __init__(self) -> None:
        from cleanrl_worker.portable.fastlane.tap import Tap

        self.calls: dict[Any, list[Call]] = {}
        show = Tap.show

        def timed(tap: Any, *arguments: float) -> None:
            pictures, drawn, began = _pictures(tap), tap._rendered, time.monotonic()
            show(tap, *arguments)
            call = Call(began, time.monotonic(), pictures, tap._rendered > drawn)
            self.calls.setdefault(tap, []).append(call)

        Tap.show = timed  # type: ignore[method-assign]

    def seen(self, count: int, pictures: int) -> bool:
        return len(self.calls) == count and all(_pictures(tap) >= pictures for tap in self.calls)


def _pictures(tap: Any) -> int:
    """How many pictures of an environment have been published, by whichever process."""
    return int(tap._segment.words[slots.entry(tap._writer.slot) + layout.NEWEST])


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
    return _summary(list(clock.calls.values()))


def _summary(taps: list[list[Call]]) -> dict[str, float]:
    """Over whole periods, from the begin of one call to the begin of another; the first pictures apart.

    A picture is paid for by the time until the next: while this process draws, a period ends with a picture.
    """
    share, rates, times, first = 0.0, [], [], 0.0
    for calls in taps:
        later = [call for call in calls if call.pictures >= 1]
        drew = [place for place, call in enumerate(later) if call.drew]
        pauses = np.diff([later[place].began for place in drew])
        if len(pauses) and later[-1].began - later[drew[-1]].began < 2 * pauses[-1]:
            later = later[: drew[-1] + 1]
        first += sum(call.ended - call.began for call in calls if call.pictures < 1)
        period = later[-1].began - later[0].began
        spent = [call.ended - call.began for call in later[:-1]]
        share += sum(spent) / period
        rates.append((later[-1].pictures - later[0].pictures) / period)
        times += spent
    return {
        "share": share,
        "rate": float(np.mean(rates)),
        "show_ms": float(np.median(times)) * 1000,
        "first_ms": first * 1000,
    }


if __name__ == "__main__":
    print(json.dumps(play(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
