"""Every error that a person can meet stands in docs/errors.md with its cause and its cure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "errors.md"

ERRORS = {
    "UserError",
    "MosaicError",
    "StorageError",
    "NotFoundError",
    "ConflictError",
    "UnavailableError",
    "SegmentError",
    "ProbeError",
    "ArgumentTypeError",
}
LEAST_LETTERS = 8
"""A message whose own words are fewer repeats those of another error."""

# Only a program that speaks the protocol itself can cause these.
FOR_PROGRAMS = (
    "is not one that a reader gave",
    "The submit has no request_id",
    "'details_json' is not JSON",
    "The message of this call cannot be read",
    "The call has a value that cannot be stored (",
    "at most can be taken.",
    "has a character of code 0, which no text can have.",
    ": it must be a finite number.",
    ": it must be 0 or more.",
    "The cursor is not one that a page of this list gave",
    ": it is not the name of anything.",
    ": ask for several pages.",
    "' is not a known ",
)


def fragments(node: ast.expr) -> list[str]:
    """The words of a message between the values that it is given."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return [part for value in node.values for part in fragments(value)]
    if isinstance(node, ast.BinOp):
        return [*fragments(node.left), *fragments(node.right)]
    return []


def messages() -> Iterator[tuple[str, str]]:
    """Where each error is raised, and the longest stretch of its own words."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                words = max(fragments(node.args[0]), key=len, default="")
                if name in ERRORS and sum(map(str.isalpha, words)) >= LEAST_LETTERS:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", words.strip()


def test_every_error_stands_on_the_page() -> None:
    page = PAGE.read_text("utf-8")
    missing = [
        f"{place}: {words}"
        for place, words in messages()
        if words not in page and not any(words in known or known in words for known in FOR_PROGRAMS)
    ]
    assert not missing, "Tell cause and cure of these in docs/errors.md:\n  " + "\n  ".join(missing)


def test_every_row_has_a_cause_and_a_cure() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    short = [row for row in rows if len(row.strip("|").split(" | ")) != 3]
    assert not short, "\n".join(short)
