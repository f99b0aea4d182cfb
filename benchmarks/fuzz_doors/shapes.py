"""What is thrown: texts, numbers, JSON and bytes, made from nothing or from what would be right."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fuzz_doors.knocking import EVIL_MODULE

_BAD_TEXTS = (
    *("", " ", "\0", "\n", "a\0b", ".", "..", "/", "~", "~nobody", "-", "--help", "%s", "{}", "${RUN_ID}"),
    *(
        "~no-such-user/x",
        "/" + "é" * 300,
        "../../outside",
        "/etc/passwd",
        "/dev/zero",
        "/proc/self/mem",
        "file:///etc/passwd",
        "a" * 5000,
    ),
    *(
        "\x1b[31m",
        "\u202e",
        "\u2028",
        "\ufeff",
        "é" * 300,
        "日本",
        "👩‍👩‍👧",
        "NaN",
        "Infinity",
        "1e999",
        "null",
    ),
    *(
        f"{EVIL_MODULE}:Evil-v0",
        f"{EVIL_MODULE}.evil",
        f"{EVIL_MODULE}.py",
        "'; DROP TABLE runs; --",
        "<img src=x>",
    ),
)
_BAD_NUMBERS = (
    *(-1, 0, 1, 2, 255, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**40, 10**400),
    *(
        -(2**31),
        -(2**63),
        -(2**64),
        0.0,
        -0.0,
        0.5,
        1e308,
        -1e308,
        5e-324,
        float("nan"),
        float("inf"),
        -float("inf"),
    ),
)
SURROGATES = st.sampled_from(["\ud800", "a\udc9b", "\udfff\ud800"])
"""What JSON can say (`\\ud800`) and a command line can hold, but no UTF-8 file can."""

texts: SearchStrategy[str] = st.one_of(st.sampled_from(_BAD_TEXTS), st.text(max_size=30))
numbers: SearchStrategy[Any] = st.one_of(
    st.sampled_from(_BAD_NUMBERS), st.integers(), st.floats(allow_nan=True, allow_infinity=True)
)


def deep(levels: int) -> Any:
    """Lists in lists."""
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


scalars = st.one_of(st.none(), st.booleans(), numbers, texts, SURROGATES)
json_values: SearchStrategy[Any] = st.one_of(
    scalars,
    st.recursive(
        scalars,
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
        max_leaves=6,
    ),
    st.builds(deep, st.integers(1, 900)),
)


@st.composite
def mutated(draw: DrawFn, bases: Sequence[Any], values: SearchStrategy[Any] = json_values) -> Any:
    """One of `bases` with up to three of its values, at any depth, replaced, removed or joined by others."""
    tree = copy.deepcopy(draw(st.sampled_from(bases)))
    for _ in range(draw(st.integers(0, 3))):
        places = list(_containers(tree))
        if not places:
            return draw(values)
        place = draw(st.sampled_from(places))
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        action = draw(st.sampled_from(["replace", "replace", "replace", "remove", "add"]))
        if action == "add" or not keys:
            if isinstance(place, dict):
                place[draw(texts)] = draw(values)
            else:
                place.append(draw(values))
        elif action == "remove":
            del place[draw(st.sampled_from(keys))]
        else:
            place[draw(st.sampled_from(keys))] = draw(values)
    return tree


def _containers(tree: Any) -> list[Any]:
    found, waiting = [], [tree]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list):
            found.append(one)
            waiting += one.values() if isinstance(one, dict) else one
    return found


@st.composite
def damaged(draw: DrawFn, bases: Sequence[bytes]) -> bytes:
    """The bytes of a right file, cut, overwritten, doubled or with others in between."""
    data = bytearray(draw(st.sampled_from(bases)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        action = draw(st.sampled_from(["cut", "overwrite", "insert", "remove", "double"]))
        if action == "cut":
            del data[at:]
        elif action == "overwrite":
            new = draw(st.binary(min_size=1, max_size=8))
            data[at : at + len(new)] = new
        elif action == "insert":
            data[at:at] = draw(st.binary(max_size=20))
        elif action == "remove":
            del data[at : at + draw(st.integers(1, 40))]
        else:
            data[at:at] = data[at : at + draw(st.integers(1, 200))]
    return bytes(data)


def as_text(value: Any) -> str:
    """JSON as Python writes it: also what JSON does not have."""
    return json.dumps(value)


json_texts: SearchStrategy[str] = st.one_of(
    json_values.map(as_text),
    texts,
    st.sampled_from(["[" * 5000, '{"a":' * 5000, "[" * 100_000, "1" * 5000, '"\\ud800"', "\ufeff{}"]),
)
