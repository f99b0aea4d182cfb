"""The actions of an environment that is played: from keys and words to actions, and back to words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mosaic.contract.errors import UserError

ARROWS = {"left": "←", "right": "→", "up": "↑", "down": "↓"}
_ARROW_WORDS = {
    "left": ("left", "west"),
    "right": ("right", "east"),
    "up": ("up", "north", "forward", "main"),
    "down": ("down", "south"),
}
_DIGIT_KEYS = tuple("0123456789")
_FEW = 3
"""Of so many actions without words, the first is left and the last is right."""


class Choices:
    """The actions of one environment, as `init` describes them."""

    def __init__(self, space: Mapping[str, Any]) -> None:
        self.discrete = bool(space["kind"] == "discrete")
        """Whether an action is one number out of a few, for which there are keys."""
        self.first = int(space.get("start", 0))
        self._count = int(space.get("n", 0))
        self._words: list[str] = space.get("meanings") or []
        self.arrows = self._find_arrows()
        """The action of each arrow key that has one."""

    def by_key(self, key: str) -> int | None:
        """The action that a key stands for; None when it stands for none."""
        if not self.discrete:
            return None
        if key in ARROWS:
            return self.arrows.get(key)
        number = int(key) if key in _DIGIT_KEYS else self._count
        return self.first + number if number < self._count else None

    def typed(self, text: str) -> Any:
        """The action in a line that was typed: a number, several with spaces or commas between, or JSON."""
        try:
            value = json.loads(text) if text.lstrip().startswith("[") else _numbers(text)
        except ValueError as error:
            raise UserError(f"'{text}' is no action: type numbers with spaces between.") from error
        return value[0] if self.discrete and isinstance(value, list) and len(value) == 1 else value

    def name(self, action: Any) -> str:
        """An action as a person reads it."""
        if isinstance(action, list):
            return f"[{' '.join(_short(number) for number in action)}]"
        word = self._words[action - self.first] if self._words else ""
        return f"{action} {word}".rstrip()

    def help(self) -> str:
        """The keys that choose an action."""
        if not self.discrete:
            return "a type an action"
        keys = f"0-{min(self._count, len(_DIGIT_KEYS)) - 1}"
        more = " (a types others)" if self._count > len(_DIGIT_KEYS) else ""
        arrows = "".join(sign for arrow, sign in ARROWS.items() if arrow in self.arrows)
        return f"{keys} {arrows} your action{more}".replace("  ", " ")

    def _find_arrows(self) -> dict[str, int]:
        if not self._words:
            few = self.discrete and 1 < self._count <= _FEW
            return {"left": self.first, "right": self.first + self._count - 1} if few else {}
        found: dict[str, int] = {}
        for number, word in enumerate(self._words):
            for arrow, names in _ARROW_WORDS.items():
                if any(part in names for part in word.split()):
                    found.setdefault(arrow, self.first + number)
        return found


def _numbers(text: str) -> list[int | float]:
    parts = text.replace(",", " ").split()
    if not parts:
        raise ValueError
    return [int(part) if part.lstrip("+-").isdigit() else float(part) for part in parts]


def _short(number: Any) -> str:
    return f"{number:.3g}" if isinstance(number, float) else str(number)
