"""TOML files that say what to train: read, and taken apart so that every problem is told at once."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mosaic.client.configs import train_config
from mosaic.contract.errors import UserError, closest
from mosaic.contract.numbers import parse_seeds, parse_whole
from mosaic.contract.run_config import checked_tags, validate_train_run_config
from mosaic.sweeps.space import Value, is_number

MOST_PROBLEMS = 20
USUAL_RESTARTS = 2
_BEYOND = 2**63
RUN_KEYS = (
    "cpus",
    "memory_mb",
    "gpus",
    "max_minutes",
    "max_restarts",
    "priority",
    "python",
    "env_kwargs",
    "extras",
)


class SpecError(UserError):
    """A sweep file with something wrong in it."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        """A sentence for each."""
        super().__init__(" ".join(self.sentences))

    @property
    def sentences(self) -> list[str]:
        more = len(self.problems) - MOST_PROBLEMS
        rest = [f"There are {more} more problems: correct these first."] if more > 0 else []
        return self.problems[:MOST_PROBLEMS] + rest


def read_table(path: Path, changes: Sequence[tuple[str, Any]] = (), what: str = "sweep") -> dict[str, Any]:
    """The file of a sweep as it stands there, with settings changed by their dotted names."""
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UserError(f"The {what} file {path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"The {what} file {path} is not valid TOML: {error}.") from error
    for name, value in changes:
        *above, last = name.split(".")
        inner = table
        for part in above:
            inner = inner.setdefault(part, {})
            if not isinstance(inner, dict):
                raise UserError(f"--set {name}: '{part}' is not a table of the {what} file.")
        inner[last] = value
    return table


def _unfit(value: Any, place: str) -> Iterator[str]:
    """A sentence for each value that a run config, which is JSON, cannot hold."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _unfit(inner, f"{place}.{name}" if place else str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _unfit(inner, place)
    elif isinstance(value, int | float) and not -_BEYOND < value < _BEYOND:
        yield f"'{place}' is {value!r:.40}, but must be a finite number."
    elif value is not None and not isinstance(value, Value):
        yield f"'{place}' is {value!s:.40}, which is neither a number nor a text: write it in quotes."


class TableParser:
    """Takes a table apart; what is wrong with it is told at the end, all at once."""

    def __init__(
        self, table: Mapping[str, Any], folder: Path | None, problems: list[str] | None = None
    ) -> None:
        """With `problems`, those of another parser of the same file, they come together."""
        self._table = table
        self._folder = folder
        self._problems: list[str] = [] if problems is None else problems
        unfit = list(_unfit(table, ""))
        if unfit:
            raise SpecError(unfit)

    def _complain(self, sentence: str) -> None:
        self._problems.append(sentence)

    def _check_keys(
        self, table: Mapping[str, Any], known: Sequence[str] | Mapping[str, Any], what: str
    ) -> None:
        for name in table:
            if name not in known:
                hint = closest(name, known) or f"; it takes {', '.join(known)}."
                self._complain(f"{what[:1].upper()}{what[1:]} has no setting '{name}'{hint}")

    def _table_of(self, name: str) -> dict[str, Any]:
        found = self._table.get(name, {})
        if not isinstance(found, Mapping):
            self._complain(
                f"'{name}' is {found!r:.60}, but must be a table: write [{name}] above its settings."
            )
            return {}
        return dict(found)

    def _texts(self, name: str, example: str) -> list[str]:
        return self._names(name, self._table.get(name), example)

    def _names(self, name: str, found: Any, example: str) -> list[str]:
        listed = [found] if isinstance(found, str) else found
        if not isinstance(listed, list) or not listed or not all(isinstance(one, str) for one in listed):
            told = (
                "is missing" if found is None else f"is {found!r:.60}, but must be a name or a list of names"
            )
            self._complain(f"'{name}' {told}: write {name} = \"{example}\".")
            return []
        return list(dict.fromkeys(listed))

    def _whole(self, name: str, usual: int, least: int, most: int) -> int:
        found = self._whole_of(name, self._table.get(name, usual), least, most)
        return usual if found is None else found

    def _whole_of(self, name: str, value: Any, least: int, most: int) -> int | None:
        """The number that stands in the file; None when it is not one of these."""
        try:
            number = parse_whole(str(value)) if not isinstance(value, bool) else least - 1
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            self._complain(f"'{name}' is {value!r:.40}, but must be a whole number from {least} to {most:,}.")
            return None
        return number

    def _text(self, name: str) -> str:
        value = self._table.get(name, "")
        if isinstance(value, str):
            return value
        self._complain(f"'{name}' is {value!r:.60}, but must be text.")
        return ""

    def _run(self) -> dict[str, Any]:
        """What is said of each run; its numbers are checked with the config that they become part of."""
        run = self._table_of("run")
        self._check_keys(run, RUN_KEYS, "[run]")
        kinds: dict[str, tuple[type, str]] = {
            **dict.fromkeys(("extras", "env_kwargs"), (Mapping, "a table")),
            "python": (str, "the path of an interpreter"),
        }
        for name in list(run):
            kind, words = kinds.get(name, (object, "a number"))
            if not isinstance(run[name], kind) or isinstance(run[name], bool):
                self._complain(f"'run.{name}' is {run.pop(name)!r:.60}, but must be {words}.")
        return run

    def _number_of(self, name: str, value: Any, low: float, high: float) -> float | None:
        """The same for a number with a point."""
        if is_number(value) and low <= value <= high:
            return float(value)
        self._complain(f"'{name}' is {value!r:.40}, but must be a number from {low} to {high}.")
        return None

    def _minutes(self) -> float | None:
        value = self._table.get("max_minutes")
        if value is None:
            return None
        if not is_number(value) or value <= 0:
            self._complain(f"'max_minutes' is {value!r:.40}, but must be a number above 0.")
            return None
        return float(value)

    def _seeds(self) -> tuple[int, ...]:
        value = self._table.get("seeds", 1)
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        try:
            return parse_seeds(
                text, f"'seeds' is {value!r:.60}, but must be a list of seeds or text such as \"1-3\"."
            )
        except UserError as error:
            self._complain(str(error))
            return (1,)

    def _tags(self) -> tuple[str, ...]:
        given = self._table.get("tags", [])
        if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
            self._complain(f"'tags' is {given!r:.60}, but must be a list of words.")
            return ()
        try:
            return tuple(checked_tags(given))
        except UserError as error:
            self._complain(str(error))
            return ()

    def _template(
        self,
        algo: str,
        env_id: str,
        steps: int | None,
        seed: int,
        params: Mapping[str, Any],
        run: Mapping[str, Any],
    ) -> dict[str, Any]:
        extras = dict(run.get("extras") or {})
        if run.get("env_kwargs") is not None:
            extras["env_kwargs"] = run["env_kwargs"]
        config = train_config(
            algo,
            env_id,
            total_timesteps=steps,
            seed=seed,
            params=params,
            extras=extras,
            python=run.get("python"),
            tags=list(self._tags()),
            folder=self._folder,
        )
        limits = {
            "max_wallclock_minutes": run.get("max_minutes"),
            "max_restarts": run.get("max_restarts", USUAL_RESTARTS),
            "priority": run.get("priority"),
        }
        config["schedule"] = {name: value for name, value in limits.items() if value is not None}
        for name in ("cpus", "memory_mb", "gpus"):
            if name in run:
                config["resources"][name] = run[name]
        validate_train_run_config(config)
        return config
