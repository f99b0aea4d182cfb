"""Which metrics there are, in the order people look for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_SECTIONS = ("charts", "rollout", "eval", "losses", "train", "time")
_FIRST = (
    "charts/episodic_return",
    "rollout/ep_rew_mean",
    "eval/episodic_return",
    "charts/episodic_length",
    "charts/SPS",
)
_MAIN = ("charts/episodic_return", "rollout/ep_rew_mean", "eval/mean", "eval/episodic_return")
_BESIDE = (
    *("losses/value_loss", "losses/policy_loss", "losses/entropy", "losses/td_loss", "losses/loss"),
    *("losses/qf_loss", "losses/qf1_loss", "losses/actor_loss", "losses/q_values", "losses/qf1_values"),
    *("charts/SPS", "eval/min", "eval/max", "eval/std", "eval/mean_length", "charts/episodic_length"),
)
BESIDE_COUNT = 4


@dataclass(frozen=True)
class Section:
    """Metrics with the same beginning."""

    name: str
    tags: tuple[str, ...]


def sections(tags: Iterable[str], sought: str = "") -> list[Section]:
    """The metrics whose names hold `sought`, by section: returns and losses before the rest."""
    words = sought.lower().split()
    found: dict[str, list[str]] = {}
    for tag in sorted(tags, key=_rank):
        if all(word in tag.lower() for word in words):
            found.setdefault(tag.rpartition("/")[0] or "other", []).append(tag)
    order = {name: place for place, name in enumerate(_SECTIONS)}
    names = sorted(found, key=lambda name: (order.get(name, len(order)), name))
    return [Section(name, tuple(found[name])) for name in names]


def _rank(tag: str) -> tuple[int, str]:
    return (_FIRST.index(tag) if tag in _FIRST else len(_FIRST)), tag


def main_tag(tags: Iterable[str]) -> str | None:
    """The metric that says best how a run is doing."""
    there = set(tags)
    named = next((tag for tag in _MAIN if tag in there), None)
    return named or next((tag for section in sections(there) for tag in section.tags), None)


def beside_main(tags: Iterable[str], count: int = BESIDE_COUNT) -> list[str]:
    """The few metrics that are worth a look beside the main one."""
    there = set(tags)
    main = main_tag(there)
    ordered = [tag for section in sections(there) for tag in section.tags]
    chosen: dict[str, None] = dict.fromkeys(tag for tag in _BESIDE if tag in there)
    # Where time goes has a card of its own.
    chosen.update(dict.fromkeys(tag for tag in ordered if not tag.startswith("time/")))
    return [tag for tag in chosen if tag != main][:count]


def reward_per_step(returns: Sequence[float], lengths: Sequence[float]) -> float | None:
    """The reward of a step, over the episodes given; None without any."""
    steps = sum(lengths)
    return sum(returns) / steps if steps > 0 and returns else None
