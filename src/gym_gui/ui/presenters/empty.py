"""What an empty middle says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EmptyWords:
    title: str
    text: str
    can_train: bool


def empty_words(state: str, reason: str, listed: bool, any_runs: bool) -> EmptyWords:
    """For a daemon in `state`; `listed` says whether its runs are known, `any_runs` whether it has any."""
    if state == "unreachable":
        return EmptyWords(
            "The daemon cannot be reached",
            f"{reason} It is tried again every few seconds; runs that were started go on without it.",
            False,
        )
    if not listed:
        return EmptyWords(
            "Looking for the daemon", reason or "It is started when it does not run yet.", False
        )
    if any_runs:
        return EmptyWords("No run is chosen", "Choose one on the left to see how it does.", False)
    return EmptyWords(
        "Train your first agent",
        "One click trains PPO on CartPole, with its picture from the first seconds. "
        "Everything else is in the form: algorithms, environments, seeds, curricula.",
        True,
    )
