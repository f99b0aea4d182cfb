"""A message explains itself: each is a whole sentence in the English of a manual; the guide stays short."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ERRORS = {
    "UserError",
    "MosaicError",
    "StorageError",
    "NotFoundError",
    "ConflictError",
    "UnavailableError",
    "SegmentError",
}
VALUE = "…"
"""Stands for what a message is given when it is made."""
MOST_LINES = 120
NOT_ENGLISH = re.compile(r"(?<![Tt]here )\bis no (?!longer\b)[a-z]|\bfrom \d+ on\b")


def text_of(node: ast.expr) -> str:
    """A message, with a mark for each value that it is given."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    return VALUE


def messages(folder: str = "src") -> Iterator[tuple[str, str]]:
    """Where each error is raised, and what it says."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                if name in ERRORS:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", text_of(node.args[0])


def test_every_message_is_a_whole_sentence() -> None:
    found = list(messages())
    assert len(found) > 100
    torn = [f"{place}: {words}" for place, words in found if not words.endswith((".", "?", VALUE))]
    assert not torn, "End these with a full stop:\n  " + "\n  ".join(torn)


def test_messages_are_in_the_english_of_a_manual() -> None:
    odd = [f"{place}: {words}" for place, words in messages("src/mosaic") if NOT_ENGLISH.search(words)]
    assert not odd, "Write 'is not a …' and 'from 0':\n  " + "\n  ".join(odd)


def test_the_guide_is_short() -> None:
    assert len((ROOT / "docs" / "errors.md").read_text("utf-8").splitlines()) <= MOST_LINES
