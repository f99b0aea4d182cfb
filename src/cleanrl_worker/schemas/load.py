"""Reading schemas.json."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from cleanrl_worker.schemas.model import AlgoSchema

SCHEMAS_FILE = Path(__file__).with_name("schemas.json")


@functools.cache
def _schemas() -> dict[str, AlgoSchema]:
    data = json.loads(SCHEMAS_FILE.read_text("utf-8"))
    return {name: AlgoSchema.from_json(name, entry) for name, entry in data.items()}


def algorithms() -> list[str]:
    """The names of all algorithms that have a schema."""
    return list(_schemas())


def load_schema(algo: str) -> AlgoSchema | None:
    """What `algo` takes, or None for a script that is not ours."""
    return _schemas().get(algo)
