"""The files of a run from elsewhere: paths and ids in them changed, and compared with those here."""

from __future__ import annotations

import contextlib
import filecmp
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mosaic.client.archive_reader import FOLDER, ArchivedRun
from mosaic.client.records import RunRecord
from mosaic.contract.outside import parse_json, read_json
from mosaic.contract.paths import StagedRun, VarPaths

_IN_VAR = ("trainer", "tensorboard", "logs", "models")


def translator(run: ArchivedRun, paths: VarPaths, ids: Mapping[str, str]) -> Callable[[str], str]:
    """What changes a text so that paths in the old var folder lead into this one, and old ids are new."""
    renamed = {old: new for old, new in ids.items() if old != new}
    moves = run.var.rstrip("/") and run.var != str(paths.root)
    inside = re.compile(rf"(?<![\w./-]){re.escape(run.var)}(?=/(?:{'|'.join(_IN_VAR)})(?:/|\W|$))")

    def change(text: str) -> str:
        if moves:
            text = inside.sub(lambda _: str(paths.root), text)
        for old, new in renamed.items():
            text = text.replace(old, new)
        return text

    return change


def translate(file: Path, change: Callable[[str], str]) -> None:
    """Change the texts in a file of JSON, or of JSON lines; any other file stays as it is."""
    if file.suffix == ".json":
        with contextlib.suppress(OSError, ValueError):
            value = read_json(file)
            changed = _changed_texts(value, change)
            if changed != value:
                file.write_bytes(json_bytes(changed))
    elif file.suffix == ".jsonl":
        other, differs = file.with_name(f".{file.name}.new"), False
        with file.open("rb") as old, other.open("wb") as new:
            for line in old:
                kept = line
                with contextlib.suppress(ValueError):
                    value = parse_json(line)
                    changed = _changed_texts(value, change)
                    if changed != value:
                        kept = json.dumps(changed, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
                        differs = True
                new.write(kept)
        other.replace(file) if differs else other.unlink()


def _changed_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _changed_texts(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_changed_texts(item, change) for item in value]
    return value


def same_run(staged: StagedRun, there: RunRecord) -> bool:
    """Whether a run that is known has every file of the archive, and was asked for the same."""
    config = read_json(staged.folder / "config.json")
    if config["metadata"]["worker"] != there.config["metadata"]["worker"]:
        return False
    folder, own = staged.folder / FOLDER, Path(there.run_dir)
    for place, _, names in os.walk(folder):
        for name in names:
            file = Path(place, name)
            other = own / file.relative_to(folder)
            if not file.is_symlink() and not _same_file(file, other):
                return False
    return True


def _same_file(file: Path, other: Path) -> bool:
    with contextlib.suppress(OSError):
        if filecmp.cmp(file, other, shallow=False):
            return True
        if file.suffix in (".json", ".jsonl"):
            # The same said with other blanks, as in what was translated on its way.
            with contextlib.suppress(ValueError):
                return bool(_values(file) == _values(other))
    return False


def _values(file: Path) -> list[Any]:
    if file.suffix == ".json":
        return [read_json(file)]
    with file.open("rb") as lines:
        return [parse_json(line) for line in lines]


def json_bytes(value: Any) -> bytes:
    """A value as a readable file."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
