"""Sweep files as text: the TOML that the form and `sweep init` write."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_WORD = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(table: Mapping[str, Any]) -> str:
    """A sweep file: plain values first, then a section for each table."""
    plain = {name: value for name, value in table.items() if not _is_section(value)}
    lines = [f"{_key(name)} = {value_text(value)}" for name, value in plain.items()]
    for name, value in table.items():
        if _is_section(value):
            lines += _section(_key(name), value)
    return "\n".join(lines) + "\n"


def _is_section(value: Any) -> bool:
    tables = isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)
    return isinstance(value, Mapping) or tables


def _section(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from ("", f"[[{name}]]")
            yield from (f"{_key(key)} = {value_text(item)}" for key, item in one.items())
        return
    # A table for each algorithm stands by itself.
    nested = {key: item for key, item in value.items() if name in ("set", "space") and _is_plain_table(item)}
    plain = [f"{_key(key)} = {value_text(item)}" for key, item in value.items() if key not in nested]
    if plain or not nested:
        yield from ("", f"[{name}]", *plain)
    for key, item in nested.items():
        yield from _section(f"{name}.{_key(key)}", item)


def _is_plain_table(item: Any) -> bool:
    """Whether it is the table of an algorithm, and not the range of a parameter."""
    return isinstance(item, Mapping) and not {"low", "high", "choices"} & item.keys()


def _key(name: str) -> str:
    return name if _WORD.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def value_text(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:_}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(name)} = {value_text(one)}' for name, one in value.items())} }}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(value_text, value))}]"
    return _quoted(str(value))
