"""The stages of a curriculum as rows of a table, from presets or typed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mosaic.contract.errors import UserError

NONE, OWN = "None", "Stages of your own"


@dataclass(frozen=True)
class Stage:
    """One row: an environment, and when the next one begins."""

    env_id: str = ""
    ends: str = ""
    """A condition such as `steps>=1000|episode_return>=0.9`, or a number of steps."""

    def as_json(self) -> dict[str, Any]:
        ends = re.sub(r"(?<=\d)[,_](?=\d)", "", self.ends.strip())
        if not ends:
            return {"env_id": self.env_id.strip()}
        if ends.isdigit():
            return {"env_id": self.env_id.strip(), "steps": int(ends)}
        return {"env_id": self.env_id.strip(), "condition": ends}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Stage:
        condition = str(data.get("condition") or "")
        plain = re.fullmatch(r"steps>=(\d+)", condition)
        steps = data.get("steps") or (plain[1] if plain else None)
        return cls(str(data.get("env_id", "")), f"{int(steps):,}" if steps else condition)


class StageTable:
    """The curriculum of a form: none, a preset, or rows that somebody has changed."""

    def __init__(self, presets: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        self._presets = {name: [Stage.of(stage) for stage in stages] for name, stages in presets.items()}
        self.rows: list[Stage] = []

    @property
    def choices(self) -> list[str]:
        return [NONE, *self._presets, OWN]

    @property
    def name(self) -> str:
        """Which of `choices` the rows are."""
        if not self.rows:
            return NONE
        return next((name for name, rows in self._presets.items() if rows == self.rows), OWN)

    def choose(self, name: str, env_id: str = "") -> None:
        """Take a preset, none, or begin with rows of one's own: those that are there, or two new ones."""
        if name == NONE:
            self.rows = []
        elif name in self._presets:
            self.rows = list(self._presets[name])
        elif not self.rows:
            self.rows = [Stage(env_id, "100,000"), Stage(env_id)]

    def load(self, stages: Sequence[Mapping[str, Any]] | str | None) -> None:
        """Take the stages of a config."""
        if isinstance(stages, str):
            self.choose(stages)
        else:
            self.rows = [Stage.of(stage) for stage in stages or ()]

    def change(self, index: int, env_id: str | None = None, ends: str | None = None) -> None:
        old = self.rows[index]
        self.rows[index] = replace(
            old, env_id=old.env_id if env_id is None else env_id, ends=old.ends if ends is None else ends
        )

    def add(self) -> None:
        """One more stage at the end; the one before it gets an end if it has none."""
        if self.rows and not self.rows[-1].ends.strip():
            self.change(len(self.rows) - 1, ends="100,000")
        self.rows.append(Stage(self.rows[-1].env_id if self.rows else ""))

    def remove(self, index: int) -> None:
        del self.rows[index]

    def move(self, index: int, by: int) -> None:
        """Move a row up (-1) or down (1); at the edge it stays."""
        other = index + by
        if 0 <= other < len(self.rows):
            self.rows[index], self.rows[other] = self.rows[other], self.rows[index]

    @property
    def target(self) -> str:
        """The environment that the curriculum leads to; empty without one."""
        return self.rows[-1].env_id.strip() if self.rows else ""

    def problem(self) -> str:
        """The first stage without an environment, in a sentence."""
        for number, row in enumerate(self.rows, 1):
            if not row.env_id.strip():
                return f"Stage {number} of the curriculum has no environment: name one, or remove the stage."
        return ""

    def schedule(self) -> list[dict[str, Any]] | None:
        """The stages as a config holds them; None without a curriculum."""
        problem = self.problem()
        if problem:
            raise UserError(problem)
        return [row.as_json() for row in self.rows] or None
