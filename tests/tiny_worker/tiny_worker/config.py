"""What a run of the tiny worker does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from mosaic.contract.errors import UserError, closest


@dataclass(frozen=True)
class TinyConfig:
    """All that can be asked for."""

    run_id: str = ""
    steps: int = 3
    pause: float = 0.0
    """Seconds between two steps."""
    exit_code: int = 0
    complain: str = ""
    """Said on stderr at the end."""
    children: int = 0
    """Processes that the training process cuts loose and that ignore SIGTERM."""
    publish: bool = False
    """Publish each step, and an episode for every `episode_steps` of them."""
    episode_steps: int = 10
    padding: int = 0
    """Characters by which a published step is made larger."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def load_config(path: Path) -> TinyConfig:
    try:
        return parse_config(json.loads(path.read_text()))
    except (OSError, ValueError) as error:
        raise UserError(f"The config {path} cannot be read: {error}.") from error


def parse_config(payload: Mapping[str, Any]) -> TinyConfig:
    """Check a config; a UserError names what is wrong."""
    known = {field.name: field.type for field in fields(TinyConfig)}
    for name, value in payload.items():
        if name not in known:
            raise UserError(f"The tiny worker knows no '{name}'{closest(name, known) or '.'}")
        allowed = ("int", "float") if known[name] == "float" else (known[name],)
        if type(value).__name__ not in allowed:
            raise UserError(f"'{name}' is {value!r:.80}, but it must be of type {known[name]}.")
    config = TinyConfig(**payload)
    if config.steps < 1 or config.episode_steps < 1:
        raise UserError("'steps' and 'episode_steps' must be at least 1.")
    return config
