"""One measured line of the table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """What was done, what came out, what the limit is and whether it held."""

    what: str
    measured: str
    limit: str
    held: bool

    def cells(self) -> list[str]:
        return [self.what, self.measured, self.limit, "yes" if self.held else "**no**"]
