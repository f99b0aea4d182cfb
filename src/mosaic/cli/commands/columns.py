"""`runs --columns`: what stands in columns of the user's own, such as a parameter or a curve's last value."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mosaic.cli.live.board import Row
from mosaic.client import RunRecord
from mosaic.client.configs import settings_of
from mosaic.contract import words
from mosaic.contract.capabilities import parameter_defaults
from mosaic.contract.errors import UserError
from mosaic.contract.run_filter import canonical

_NAME = re.compile(r"[A-Za-z_][\w.-]*(/[\w./ -]+)?")
_KNOWN: dict[str, Callable[[RunRecord], Any]] = {
    "id": lambda run: run.run_id,
    "name": lambda run: run.run_name,
    "algo": lambda run: Path(str(run.worker_config.get("algo") or "")).name,
    "env": lambda run: run.worker_config.get("env_id"),
    "seed": lambda run: run.worker_config.get("seed"),
    "state": lambda run: Row(run).state,
    "tag": lambda run: ", ".join(run.tags),
    "notes": lambda run: " ".join(run.notes.split()),
    "priority": lambda run: run.priority,
    "age": lambda run: time.time() - run.submitted_at,
    "duration": lambda run: Row(run).elapsed(),
    "return": lambda run: run.headline.get("mean_return"),
    "steps": lambda run: run.headline.get("step"),
    "speed": lambda run: run.headline.get("sps"),
    "episodes": lambda run: run.headline.get("episodes"),
    "progress": lambda run: run.headline.get("progress"),
}
_TEXTS: dict[str, Callable[[Any], str]] = {
    "return": words.short,
    "steps": words.whole,
    "speed": words.whole,
    "episodes": words.whole,
    "progress": words.percent,
    "age": words.duration,
    "duration": words.duration,
}


def chosen_columns(text: str) -> list[str]:
    """The names in `--columns`, each once; UserError when one cannot be a name."""
    names = [one.strip() for one in text.split(",") if one.strip()]
    for name in names:
        if not _NAME.fullmatch(name):
            raise UserError(f"--columns: '{name}' is not the name of a column, a parameter or a curve.")
    if not names:
        raise UserError("--columns needs names separated by commas, such as id,return,learning_rate.")
    return list(dict.fromkeys(name if "/" in name else canonical(name) for name in names))


def column_values(run: RunRecord, columns: Sequence[str]) -> dict[str, Any]:
    """What stands under each column; None where nobody knows."""
    return {name: _value(run, name) for name in columns}


def column_text(name: str, value: Any) -> str:
    """A value as people read it."""
    if value is None or value == "":
        return "–"
    if name in _TEXTS:
        return _TEXTS[name](value)
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value, default=str)


def numeric(rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """The columns with numbers in them, which stand at the right."""
    return {
        name
        for one in rows
        for name, value in one.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _value(run: RunRecord, name: str) -> Any:
    known = _KNOWN.get(name)
    if known is not None:
        return known(run)
    if "/" in name:
        return None
    settings = settings_of(run)
    if name in settings:
        return settings[name]
    return _defaults(run.worker_type, str(run.worker_config.get("algo"))).get(name)


_defaults = cache(parameter_defaults)
