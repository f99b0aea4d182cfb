"""Which metrics there are, in the order people look for them, and the number in the head of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gym_gui.models import words
from gym_gui.models.charting import Line
from gym_gui.models.facts import is_evaluation
from gym_gui.models.scales import value_text
from mosaic.client import RunRecord

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
_RETURNS = ("charts/episodic_return", "rollout/ep_rew_mean")
_SPEEDS = ("charts/SPS", "time/fps")


@dataclass(frozen=True)
class Section:
    """Metrics with the same beginning."""

    name: str
    tags: tuple[str, ...]


def sections(tags: Iterable[str], sought: str = "") -> list[Section]:
    """The metrics whose names hold `sought`, by section: returns and losses before the rest."""
    sought_words = sought.lower().split()
    found: dict[str, list[str]] = {}
    for tag in sorted(tags, key=_rank):
        if all(word in tag.lower() for word in sought_words):
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


def head_note(run: RunRecord | None, tag: str, line: Line) -> str:
    """The number beside a chart's title: of return and speed the headline's, as everywhere, else its last."""
    head = {} if run is None else run.headline
    mean, speed = head.get("mean_return"), head.get("sps")
    returns = ("eval/episodic_return", "eval/mean") if run is not None and is_evaluation(run) else _RETURNS
    if tag in returns and mean is not None:
        return f"mean return {words.number(mean)}"
    if tag in _SPEEDS and speed is not None:
        return f"{words.steps(speed)} steps/s"
    if not len(line.values):
        return ""
    lost = f"{line.lost:,} not a number · " if line.lost else ""
    return f"{lost}{value_text(float(line.values[-1]))}"


def reward_per_step(returns: Sequence[float], lengths: Sequence[float]) -> float | None:
    """The reward of a step, over the episodes given; None without any."""
    steps = sum(lengths)
    return sum(returns) / steps if steps > 0 and returns else None
