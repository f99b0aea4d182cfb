"""Seeds as people write them: `1`, `1, 2, 3`, `1-5`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mosaic.contract.errors import UserError

MOST_SEEDS = 1000
_PART = re.compile(r"(\d+)(?:\s*[-–]\s*(\d+))?")


def parse_seeds(text: str) -> tuple[int, ...]:
    """The seeds in a text; a UserError says how to write them, or which one stands there twice."""
    found: dict[int, None] = {}
    for part in re.split(r"[,;]", text.strip().strip(",;")):
        match = _PART.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise UserError(f"Seeds are '{text.strip()}', but must be written as 1, as 1, 2, 3 or as 1-5.")
        if last - first >= MOST_SEEDS or len(found) >= MOST_SEEDS:
            raise UserError(f"'{text.strip()}' is more than {MOST_SEEDS:,} seeds: start fewer runs at once.")
        for seed in range(first, last + 1):
            if seed in found:
                raise UserError(f"'{text.strip()}' names seed {seed} more than once: name each once.")
            found[seed] = None
    return tuple(found)


def show_seeds(seeds: Sequence[int]) -> str:
    """Seeds in the shortest way to write them."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]}-{seeds[-1]}"
    return ", ".join(map(str, seeds))


def seeds_problem(text: str) -> str:
    """What is wrong with a text of seeds; empty when nothing is."""
    try:
        parse_seeds(text)
    except UserError as error:
        return str(error)
    return ""


def about_seeds(text: str) -> str:
    """How many runs a text of seeds means; empty when it cannot be read."""
    if seeds_problem(text):
        return ""
    count = len(parse_seeds(text))
    return "1 run" if count == 1 else f"{count} runs"
