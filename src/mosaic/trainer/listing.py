"""Lists of runs in pages, found, sorted and counted by the database beside the daemon's own work."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePath
from typing import Any

from mosaic.contract.capabilities import EVALUATES, NO_ENVIRONMENT, parameter_defaults
from mosaic.contract.errors import UserError
from mosaic.contract.fsm import RunStatus
from mosaic.contract.run_filter import (
    NUMBERS,
    TEXTS,
    RunQuery,
    Term,
    canonical,
    is_neutral,
    parse_terms,
)
from mosaic.trainer.registry import Registry
from mosaic.trainer.rows import marks

MOST_RUNS = 1000
_USUAL_RUNS = 100
_PAGE_BYTES = 8 * 2**20
"""A page ends when it has become so large, however few runs it has."""
_READERS = 2
_SORTED_LETTERS = 100

_ASKED = "$.metadata.worker.config"
_NAME = re.compile(r"[A-Za-z_][\w.]{0,99}")


def _whole(column: str, expression: str) -> str:
    """NULL where the column is no JSON, which files of others may bring about."""
    return f"CASE WHEN json_valid({column}) THEN {expression} END"


def _of_config(path: str) -> str:
    return f"json_extract(config, '{path}')"


# Each is used within `_whole` only.
_ALGO, _ENV, _SEED = (_of_config(f"{_ASKED}.{name}") for name in ("algo", "env_id", "seed"))
_MODE, _PYTHON = _of_config(f"{_ASKED}.extras.mode"), _of_config("$.metadata.worker.python")
_LATER, _FIRST = _of_config("$.metadata.ui.notes"), _of_config(f"{_ASKED}.extras.notes")
_SWEEP = _of_config("$.metadata.ui.sweep")
_NOTES = f"coalesce({_LATER}, {_FIRST}, '')"
_LEAF = f"CASE WHEN instr({_ALGO}, '/') THEN leaf({_ALGO}) ELSE {_ALGO} END"
_KIND = f"""CASE WHEN coalesce({_ALGO}, '') = '' THEN run_name ELSE
    CASE {_MODE} WHEN '{EVALUATES}' THEN 'Evaluation of ' ELSE '' END || ({_LEAF})
    || CASE WHEN coalesce({_ENV}, '') IN ('', '{NO_ENVIRONMENT}') THEN '' ELSE ' · ' || {_ENV} END END"""
_TAGS = "coalesce((SELECT group_concat('#' || value, ' ') FROM json_each(tags)), '')"
_WORDS = _whole(
    "config",
    f"""({_KIND}) || ' seed ' || coalesce({_SEED}, 'None') || ' ' || {_TAGS} || ' ' || run_name
    || ' ' || {_NOTES} || ' ' || run_id""",
)
"""All that words may find of a run, as in the window."""
_STATE = """CASE status
    WHEN 'TERM' THEN replace(coalesce(outcome, 'unknown'), '_', ' ')
    WHEN 'INIT' THEN CASE WHEN reason LIKE 'restart %' THEN 'restarting' ELSE 'waiting' END
    WHEN 'EXEC' THEN 'running' WHEN 'PAUSE' THEN 'paused' WHEN 'FAULT' THEN 'failed' ELSE 'starting' END"""
_TEXTS = {
    "name": "run_name",
    "algo": _whole("config", _LEAF),
    "env": _whole("config", _ENV),
    "tag": "tags",
    "state": _STATE,
    "notes": _whole("config", _NOTES),
    "id": "run_id",
    "sweep": _whole("config", _SWEEP),
}
_HEADLINE = {
    "return": "mean_return",
    "steps": "step",
    "speed": "sps",
    "episodes": "episodes",
    "progress": "progress",
}
_NUMBERS = {
    **{name: _whole("headline", f"json_extract(headline, '$.{key}')") for name, key in _HEADLINE.items()},
    "seed": _whole("config", _SEED),
    "priority": "priority",
    "duration": "max(0, coalesce(ended_at, now()) - started_at)",
    "age": "now() - submitted_at",
}
_PLAIN_SETTINGS = {"worker": "worker_type", "python": _PYTHON}
_BRIEF = f"""CASE WHEN json_valid(config) THEN json_object('metadata', json_object(
    'worker', json_object('python', {_PYTHON}, 'config', json_object(
        'algo', {_ALGO}, 'env_id', {_ENV}, 'seed', {_SEED},
        'total_timesteps', {_of_config(f"{_ASKED}.total_timesteps")},
        'extras', json_object('mode', {_MODE}, 'notes', {_FIRST}))),
    'ui', json_object('notes', {_LATER}, 'sweep', {_SWEEP}))) ELSE '{{}}' END"""

COLUMNS: Mapping[str, str] = {
    **{name: name for name in ("run_id", "run_name", "worker_type", "status", "outcome", "reason")},
    "run_dir": "run_id",
    **{name: name for name in ("tags", "submitted_at", "started_at", "ended_at", "exit_code")},
    **{name: name for name in ("supervisor_pid", "training_pid", "priority", "place")},
    "gpus": "gpu_ids",
    "headline_json": "headline",
    "brief_json": _BRIEF,
    "config_json": "config",
    "worker_json": "worker",
}
"""What gives each field of a listed run."""

Counts = Mapping[tuple[str, str | None], int]
"""How many runs there are of each status and outcome."""


@dataclass(frozen=True)
class RunPage:
    """Some runs by field, where the next page begins, and how many there are in all."""

    runs: list[dict[str, Any]]
    next_cursor: str = ""
    counts: Counts = field(default_factory=dict)
    ahead: Mapping[str, int] = field(default_factory=dict)
    """For each waiting run of the page how many wait before it."""


class Listing:
    """Reads in threads, with connections of its own: who looks through all runs delays none of them."""

    def __init__(self, registry: Registry) -> None:
        self._turns = asyncio.Semaphore(_READERS)
        self._registry = registry

    async def page(self, query: RunQuery) -> RunPage:
        """One page of a list; a UserError says what is wrong with the query."""
        search = _Search(query)
        async with self._turns:
            try:
                return await asyncio.to_thread(search.read_from, self._registry.path)
            except (sqlite3.Error, ValueError):
                # On a full disk nobody else can open it, and of a damaged one the registry knows what to do.
                return self._registry.ask(search.read)


class _Search:
    """A query as SQL. What people can write is matched by the same code here and in the window."""

    def __init__(self, query: RunQuery) -> None:
        self._query = query
        self._functions: dict[str, Callable[..., Any]] = {
            "now": time.time,
            "fold": str.lower,
            "leaf": lambda path: PurePath(str(path or "")).name,
            "sorted": _sorted,
        }
        self._where, self._values = ["1"], list[Any]()
        self._limit = query.limit or _USUAL_RUNS
        self._columns = {name: COLUMNS[name] for name in query.fields}
        self._narrow()
        for number, term in enumerate(parse_terms(query.filter)):
            if term.problem:
                raise UserError(term.problem)
            self._add_term(term, f"fits_{number}")
        self._sorted_by = ""
        self._keys = self._order()
        self._after = _read_cursor(query.cursor, len(self._keys)) if query.cursor else None

    def read_from(self, path: Path) -> RunPage:
        """One page, by a connection of its own."""
        with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as connection:
            connection.execute("PRAGMA query_only = ON")
            return self.read(connection)

    def read(self, connection: sqlite3.Connection) -> RunPage:
        for name, function in self._functions.items():
            connection.create_function(name, -1, function)
        # All that is read in here is of one moment.
        connection.execute("BEGIN")
        try:
            found, counts = self._find(connection)
            runs, size = [], 0
            for position, *_ in found[: self._limit]:
                row = self._row(connection, position)
                runs.append(row)
                size += sum(len(value) for value in row.values() if isinstance(value, str))
                if size > _PAGE_BYTES:
                    break
            more = len(runs) < len(found)
            cursor = json.dumps(found[len(runs) - 1][1:]) if more and runs else ""
            return RunPage(runs, cursor, counts, self._ahead(connection, runs))
        finally:
            connection.execute("COMMIT")

    def _narrow(self) -> None:
        query = self._query
        # Of ended runs there are so many that it is quicker to go through all in the order that is wanted.
        status = "+status" if RunStatus.TERM in query.statuses else "status"
        # Each list of tags is one value: SQLite takes no expression of a thousand parts.
        unlike = "NOT EXISTS (SELECT 1 FROM json_each(?) WHERE value {} (SELECT value FROM json_each(tags)))"
        conditions: tuple[tuple[str, Sequence[Any]], ...] = (
            (f"{status} IN ({marks(query.statuses)})", query.statuses),
            (f"run_id IN ({marks(query.run_ids)})", query.run_ids),
            (f"(outcome IS NULL OR outcome IN ({marks(query.outcomes)}))", query.outcomes),
            (unlike.format("NOT IN"), query.tags and [json.dumps([*query.tags])]),
            (unlike.format("IN"), query.without_tags and [json.dumps([*query.without_tags])]),
            (f"{_whole('config', _ALGO)} = ?", query.algo and [query.algo]),
            (f"{_whole('config', _ENV)} = ?", query.env_id and [query.env_id]),
            ("ended_at < ?", [] if query.ended_before is None else [query.ended_before]),
        )
        for condition, values in conditions:
            if values:
                self._where.append(condition)
                self._values += values

    def _add_term(self, term: Term, function: str) -> None:
        if not term.name:
            # SQLite's own knows the letters of English only, but is much faster.
            lower = "lower" if term.value.isascii() else "fold"
            self._where.append(f"instr({lower}({_WORDS}), ?)")
            self._values.append(term.value)
        elif term.value:
            self._functions[function] = _matcher(term)
            self._where.append(f"{function}({self._value_of(term.name)})")

    def _value_of(self, name: str) -> str:
        if name in TEXTS:
            return _TEXTS[name]
        if name in NUMBERS:
            return _NUMBERS[name]
        function = f"setting_{len(self._functions)}"
        self._functions[function] = _setting(name)
        plain = _PLAIN_SETTINGS.get(name, "NULL")
        return _whole("config", f"{function}({_setting_paths(name)}, {plain}, {_ALGO}, worker_type, run_id)")

    def _order(self) -> list[tuple[str, bool]]:
        """The expressions that decide the order, and which of them descend; the last tells all runs apart."""
        up, name = self._query.ascending, self._query.order_by or "submitted"
        name = canonical(name) if canonical(name) in TEXTS | NUMBERS else name
        if name == "submitted":
            return [("position", not up)]
        if name == "queue":
            return [("priority", up), ("place", not up), ("position", not up)]
        if name == "ended":
            self._where.append("ended_at IS NOT NULL")
            return [("ended_at", not up), ("position", not up)]
        if not _NAME.fullmatch(name):
            raise UserError(f"Runs cannot be sorted by '{name}': it is not the name of anything.")
        value = "(SELECT group_concat(value, ', ') FROM json_each(tags))" if name == "tag" else None
        self._sorted_by = f"sorted({value or self._value_of(name)})"
        # What is not known comes last either way; where nothing else decides, the newest first.
        return [("(value IS NULL)", False), ("value", not up), ("position", True)]

    def _find(self, connection: sqlite3.Connection) -> tuple[list[tuple[Any, ...]], Counts]:
        """Positions and sort keys of one run more than the page may have; and all counted, if asked."""
        where = " AND ".join(self._where)
        source, values = f"runs WHERE {where}", list(self._values)
        keys = ", ".join(key for key, _ in self._keys)
        if self._sorted_by:
            # The limit that is none has each value made once, and not at every place that names it.
            found = f"SELECT position, status, outcome, {self._sorted_by} AS value FROM {source}"
            source = f"({found} LIMIT -1 OFFSET 0) WHERE 1"
        order = ", ".join(f"{key} {'DESC' if down else 'ASC'}" for key, down in self._keys)
        counts: Counter[tuple[str, str | None]] = Counter()
        if self._query.count and self._query.filter and self._after is None:
            # What people write is looked for once, and not for the counts again.
            query = f"SELECT status, outcome, position, {keys} FROM {source} ORDER BY {order}"
            first: list[tuple[Any, ...]] = []
            for status, outcome, *row in connection.execute(query, values):
                counts[status, outcome] += 1
                if len(first) <= self._limit:
                    first.append(tuple(row))
            return first, counts
        if self._query.count:
            query = f"SELECT status, outcome, count(*) FROM runs WHERE {where} GROUP BY 1, 2"
            counts.update({(row[0], row[1]): row[2] for row in connection.execute(query, values)})
        if self._after is not None:
            beyond, more = _beyond(self._keys, self._after)
            source, values = f"{source} AND {beyond}", [*values, *more]
        query = f"SELECT position, {keys} FROM {source} ORDER BY {order} LIMIT ?"
        return connection.execute(query, [*values, self._limit + 1]).fetchall(), counts

    def _row(self, connection: sqlite3.Connection, position: int) -> dict[str, Any]:
        chosen = ", ".join(self._columns.values())
        row = connection.execute(f"SELECT run_id, status, {chosen} FROM runs WHERE position = ?", [position])
        run_id, status, *values = row.fetchone()
        return {"run_id": run_id, "status": status, **dict(zip(self._columns, values, strict=True))}

    def _ahead(self, connection: sqlite3.Connection, runs: list[dict[str, Any]]) -> dict[str, int]:
        waiting = {run["run_id"] for run in runs if run["status"] == RunStatus.INIT}
        if not waiting or "reason" not in self._columns:
            return {}
        query = "SELECT run_id FROM runs WHERE status = ? ORDER BY priority DESC, place, position"
        queue = connection.execute(query, [RunStatus.INIT])
        return {run_id: place for place, (run_id,) in enumerate(queue) if run_id in waiting}


def _read_cursor(text: str, keys: int) -> list[Any]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    plain = isinstance(values, list) and all(isinstance(one, int | float | str | None) for one in values)
    if not plain or len(values) != keys:
        raise UserError(
            "The cursor is not from a page of this list: leave it out to start from the beginning."
        )
    return list(values)


def _beyond(keys: Sequence[tuple[str, bool]], after: Sequence[Any]) -> tuple[str, list[Any]]:
    """The condition that a row comes after one with these values."""
    first, down = keys[0]
    # Said twice: by itself it lets an index begin where the last page ended.
    bound, ways, values = f"{first} {'<=' if down else '>='} ?", list[str](), [after[0]]
    for number, (name, down) in enumerate(keys):
        same = [f"{earlier} IS ?" for earlier, _ in keys[:number]]
        ways.append(" AND ".join([*same, f"{name} {'<' if down else '>'} ?"]))
        values += after[: number + 1]
    return f"{bound} AND ({' OR '.join(ways)})", values


def _matcher(term: Term) -> Callable[[Any], bool]:
    if term.name == "tag":
        return lambda tags: term.fits_texts(tag.lower() for tag in json.loads(tags))
    if term.name in TEXTS:
        return lambda value: term.fits_texts([str(value or "").lower()])
    return term.fits


def _setting_paths(name: str) -> str:
    """All places of a setting in one JSON list, the first that has it counts."""
    places = [f'{_ASKED}.extras.algo_params."{name}"']
    if name in ("algo", "env_id", "total_timesteps"):
        places.append(f"{_ASKED}.{name}")
    elif name == "mode":
        places.append(f"{_ASKED}.extras.mode")
    elif not is_neutral(name):
        places.append(f'{_ASKED}.extras."{name}"')
    # Of one path alone the value itself would come, without its type.
    listed = ", ".join(f"'{place}'" for place in [*places, "$.none"])
    return f"json_extract(config, {listed})"


def _setting(name: str) -> Callable[..., Any]:
    def value(found: str, plain: Any, algo: Any, worker_type: str, run_id: str) -> Any:
        given = next((value for value in json.loads(found) if value is not None), plain)
        if given is None and name == "mode":
            return "train"
        if given is None:
            given = _defaults(worker_type, str(algo)).get(name)
        if isinstance(given, bool):
            # SQLite has no truth values; only sorting sees this as text.
            return "true" if given else "false"
        if isinstance(given, list | dict):
            return str(given).replace(run_id, "${RUN_ID}")
        return given.replace(run_id, "${RUN_ID}") if isinstance(given, str) else given

    return value


_defaults = cache(parameter_defaults)


def _sorted(value: Any) -> Any:
    """Words are sorted by their first letters, whatever their size; an empty one is none."""
    return (value[:_SORTED_LETTERS].lower() or None) if isinstance(value, str) else value
