"""What the returns of episodes say of a policy, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.evaluation.episodes import PlayedEpisode
from mosaic.analytics.eval_summary import EvalScores

_DRAWS = 4_000_000
"""Numbers drawn for one interval at most; of more episodes fewer samples are drawn."""
_MOST_SAMPLES = 2000
_MOST_EPISODES = 20_000
"""Beyond, the bootstrap gives what the normal distribution gives at once."""
_AT_ONCE = 1_000_000
_SEED = 20_201


def score(episodes: Sequence[PlayedEpisode], batch: int, duration: float) -> EvalScores:
    """The numbers of a summary; there must be an episode."""
    returns = np.array([episode.total_reward for episode in episodes], dtype=np.float64)
    lengths = [episode.length for episode in episodes]
    return EvalScores(
        batch=batch,
        episodes=len(episodes),
        mean=float(returns.mean()),
        median=float(np.median(returns)),
        min=float(returns.min()),
        max=float(returns.max()),
        std=float(returns.std()),
        interval=bootstrap_interval(returns),
        iqm=interquartile_mean(returns),
        discounted_mean=float(np.mean([episode.discounted for episode in episodes])),
        mean_length=float(np.mean(lengths)),
        steps=sum(lengths),
        cut_off=sum(episode.cut_off for episode in episodes),
        duration_seconds=round(duration, 3),
    )


def interquartile_mean(values: NDArray[np.float64]) -> float:
    """The mean without the lowest and the highest quarter, which a few odd episodes do not move."""
    quarter = len(values) // 4
    return float(np.sort(values)[quarter : len(values) - quarter].mean())


def bootstrap_interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """Where the mean lies with a probability of 95 %: among the means of samples drawn from the values.

    The same values always give the same interval.
    """
    size = len(values)
    if size > _MOST_EPISODES:
        mean, error = float(values.mean()), 1.96 * float(values.std()) / math.sqrt(size)
        return mean - error, mean + error
    samples = min(_MOST_SAMPLES, _DRAWS // size)
    generator = np.random.default_rng(_SEED)
    rows = max(1, _AT_ONCE // size)
    means = [
        values[generator.integers(size, size=(min(rows, samples - start), size))].mean(axis=1)
        for start in range(0, samples, rows)
    ]
    low, high = np.quantile(np.concatenate(means), [0.025, 0.975])
    return float(low), float(high)
