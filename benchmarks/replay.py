"""What a replay buffer of Atari observations takes: memory when it is full, time to fill and to draw, and
which share of an update of `dqn_atari` that is.

nice python benchmarks/replay.py [--steps 1000000]

Frames are random bytes, so that none is like another and none of the memory can be shared by chance.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray
from tables import Row, Table, write_tables

from cleanrl_worker.kit.replay import FrameBuffer, ReplayBuffer, Sample

SHAPE = (84, 84, 4)
EPISODE = 800
"""Steps of an episode; one of Breakout or Pong has more, unless a lost life ends it."""
BATCH, DRAWS = 32, 300
LIMIT_GB = 8.0
MOST_SHARE = 0.1
"""Of an update, for drawing what it learns from."""
SMALL = 20_000
"""Steps that are compared with a buffer of whole stacks."""


def transitions(steps: int, seed: int = 1) -> Iterator[tuple[NDArray[Any], NDArray[Any], int, float, bool]]:
    """Steps of one game with a new frame each."""
    dice = np.random.default_rng(seed)
    frames = dice.integers(0, 256, (4096, *SHAPE[:-1]), dtype=np.uint8)

    def frame(number: int) -> NDArray[Any]:
        shown = frames[number % len(frames)]
        # A number in its corner makes every frame another one.
        shown[0, :8] = np.frombuffer(number.to_bytes(8, "little"), np.uint8)
        return shown

    stack = np.stack([frame(0)] * SHAPE[-1], axis=-1)
    for step in range(steps):
        after = np.concatenate([stack[..., 1:], frame(2 * step + 1)[..., None]], axis=-1)
        ends = (step + 1) % EPISODE == 0
        yield stack, after, step % 6, 1.0, ends
        stack = np.stack([frame(2 * step + 2)] * SHAPE[-1], axis=-1) if ends else after


def resident() -> float:
    return float(psutil.Process().memory_info().rss) / 1e9


def draw_ms(buffer: ReplayBuffer) -> float:
    """The middle of the times that a minibatch takes, in milliseconds."""
    return _middle_ms(lambda: buffer.sample(BATCH))


def update_ms(batch: Sample) -> float:
    """The same of an update of `dqn_atari` that learns from a minibatch, on one core."""
    # Only here, so that memory is measured without what torch takes.
    import torch

    from cleanrl_worker.agents.q_networks import NatureQNetwork
    from cleanrl_worker.algorithms.dqn_atari import Args, dqn_loss
    from cleanrl_worker.kit.accelerate import Gradient
    from cleanrl_worker.kit.torch_backend import Adam, Target, keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()
    network, args = NatureQNetwork(SHAPE, 6), Args()
    optimizer = Adam(network)
    loss = functools.partial(dqn_loss, network, Target(network, optimizer).net, args)
    gradient = Gradient(loss, network, optimizer)

    def update() -> None:
        gradient(batch)
        optimizer.step(args.learning_rate)

    return _middle_ms(update)


def _middle_ms(what: Callable[[], object]) -> float:
    times = []
    for _ in range(DRAWS):
        start = time.process_time()
        what()
        times.append((time.process_time() - start) * 1e3)
    return float(np.median(times))


def same_samples(frames: ReplayBuffer, whole: ReplayBuffer) -> bool:
    return all(
        np.array_equal(one, other)
        for _ in range(20)
        for one, other in zip(frames.sample(BATCH), whole.sample(BATCH), strict=True)
    )


def measure(steps: int) -> list[Row]:
    whole = ReplayBuffer(SMALL, SHAPE, (), 1, np.uint8, np.int64)
    small = FrameBuffer(SMALL, SHAPE, (), 1, np.uint8, np.int64)
    for step in transitions(SMALL + SMALL // 2):
        whole.add(*step)
        small.add(*step)
    same, whole_ms = same_samples(small, whole), draw_ms(whole)
    del whole, small
    before = resident()
    buffer = FrameBuffer(steps, SHAPE, (), 1, np.uint8, np.int64)
    start = time.process_time()
    # A tenth more than fit, so that places are used again.
    for step in transitions(steps + steps // 10):
        buffer.add(*step)
    filled = time.process_time() - start
    taken, drawn = resident() - before, draw_ms(buffer)
    update = update_ms(buffer.sample(BATCH))
    as_stacks = steps * 2 * np.prod(SHAPE) / 1e9
    return [
        Row(f"samples of {SMALL:,} steps against whole stacks", "equal" if same else "differ", "equal", same),
        Row(
            f"resident memory of {steps:,} steps (whole stacks: {as_stacks:.1f} GB)",
            f"{taken:.2f} GB",
            f"{LIMIT_GB:.0f} GB for a million",
            taken <= LIMIT_GB * steps / 1e6,
        ),
        Row("making and adding one step", f"{filled / (steps * 1.1) * 1e6:.0f} µs", "–", True),
        Row(f"drawing {BATCH} of {steps:,} steps", f"{drawn:.2f} ms", "–", True),
        Row(f"drawing {BATCH} of {SMALL:,} steps as whole stacks", f"{whole_ms:.2f} ms", "–", True),
        Row(f"an update of `dqn_atari` with {BATCH}", f"{update:.1f} ms", "–", True),
        Row(
            "drawing, as a share of the update",
            f"{drawn / update:.1%}",
            f"{MOST_SHARE:.0%}",
            drawn <= MOST_SHARE * update,
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=1_000_000, help="how many the buffer holds")
    rows = measure(parser.parse_args().steps)
    write_tables(
        "replay",
        "Replay of stacked frames",
        f"Observations are stacks of {SHAPE[-1]} frames of {SHAPE[0]} × {SHAPE[1]} bytes; every frame is "
        f"another one, and an episode has {EPISODE} steps. A buffer is filled with a tenth more steps than "
        "it holds. Memory is what the process has resident more than before. Times are processor time, those "
        "of drawing and of an update, all on one core, the middle of many.",
        [Table(["what", "measured", "limit", "held"], [row.cells() for row in rows])],
        packages=("numpy",),
    )
    return 0 if all(row.held for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
