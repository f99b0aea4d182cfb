"""Models and checkpoints that were found under the var folder, as a list to choose from."""

from __future__ import annotations

import os
from collections.abc import Iterable

from gym_gui.models import words
from gym_gui.models.list_row import ListRow
from mosaic.contract.capabilities import PolicyFacts


class PolicyList:
    """What was found, newest first."""

    def __init__(self, found: Iterable[PolicyFacts]) -> None:
        self.rows = [policy_row(facts) for facts in found]


def policy_row(facts: PolicyFacts) -> ListRow:
    """A policy in a list: what it is of and what it earned, then kind, step, seed and age."""
    known = [one for one in (facts.algo, facts.env_id) if one]
    kind = "model" if facts.is_model else "checkpoint"
    parts = [f"best {kind}" if facts.best else kind]
    if facts.step is not None:
        parts.append(f"{words.short_steps(facts.step)} steps")
    if facts.seed is not None:
        parts.append(f"seed {facts.seed}")
    parts.append(words.ago(facts.modified))
    return ListRow(
        key=facts.path,
        title=" · ".join(known) or os.path.basename(facts.path),
        about=" · ".join(parts),
        aside="" if facts.mean_return is None else words.number(facts.mean_return),
        faint=facts.algo is None,
    )
