"""What train, rerun and eval share: submitting runs and staying with them, through Ctrl-C and SIGTERM; and
what `--dry-run` prints, a run in full before it is started."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from rich.table import Column, Table
from rich.text import Text

from mosaic.cli.app import INTERRUPTED
from mosaic.cli.commands.daemon import read_health
from mosaic.cli.live.board import Board, Row
from mosaic.cli.live.summary import print_summary
from mosaic.cli.live.views import View, follow, view_for
from mosaic.cli.output import as_typed, console, facts, note, place_text, print_json, program, say
from mosaic.cli.runs import connect, run_json
from mosaic.client import Client, RunRecord
from mosaic.contract import words
from mosaic.contract.capabilities import DescribingCatalog, find_worker
from mosaic.contract.errors import ConflictError, MosaicError
from mosaic.contract.machine import Machine, check_possible
from mosaic.contract.paths import VarPaths, choose_var
from mosaic.contract.run_config import validate_train_run_config
from mosaic.contract.secrets import lift_secrets

TERMINATED = 143


class Terminated(BaseException):
    """SIGTERM came."""


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


@contextmanager
def termination_raises() -> Iterator[None]:
    """SIGTERM becomes an exception, as Ctrl-C already is."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def signals_postponed() -> Iterator[None]:
    """A signal that comes inside takes effect at the end: what was submitted is then known in full."""
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda got, _: came.append(got)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])


def wants_cancel() -> bool:
    """Ask whether to cancel. Without a terminal nobody can answer, so that means yes."""
    if not sys.stdin.isatty():
        return True
    answer = "?"
    try:
        while answer not in ("", "d", "detach", "c", "cancel"):
            print("\n[d]etach or [c]ancel (Enter: detach)? ", end="", file=sys.stderr, flush=True)
            answer = sys.stdin.readline().strip().lower()
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return False
    return answer in ("c", "cancel")


Report = Callable[[Client, list[RunRecord]], None]
Shape = Callable[[RunRecord], dict[str, Any]]


def launch(
    configs: Sequence[Mapping[str, Any]],
    args: argparse.Namespace,
    report: Report = print_summary,
    shape: Shape = run_json,
) -> int:
    """Submit each config, follow the runs to their end, tell how it went; gives the exit code.

    `report` tells it to people, `shape` is what --json prints of a run.
    """
    if args.dry_run:
        return dry_run(configs, args)
    if warning := _warning(configs[0]):
        note(warning)
    with connect(args, make=True) as client, termination_raises():
        return _Launch(client, args.json, report, shape).go(configs, args.detach)


def _warning(config: Mapping[str, Any]) -> str:
    """What the worker has to say of a run before it starts."""
    catalog, request = _describing(config), config["metadata"]["worker"]
    return catalog.warning(request["config"]) if catalog else ""


def _describing(config: Mapping[str, Any]) -> DescribingCatalog | None:
    """The catalog of the config's worker, if it can tell of a run."""
    worker = find_worker(config["metadata"]["worker"]["type"])
    catalog = worker.load_catalog() if worker.catalog else None
    return catalog if isinstance(catalog, DescribingCatalog) else None


class _Launch:
    def __init__(self, client: Client, as_json: bool, report: Report, shape: Shape) -> None:
        self._client = client
        self._json = as_json
        self._tell = report
        self._shape = shape
        self._board = Board()

    def go(self, configs: Sequence[Mapping[str, Any]], detach: bool) -> int:
        try:
            with signals_postponed():
                self._submit(configs)
            if not detach:
                follow(self._client, self._board, self._view())
        except KeyboardInterrupt:
            if not wants_cancel():
                return self._leave()
            return self._cancel(INTERRUPTED, "requested with Ctrl-C where it was started")
        except Terminated:
            return self._cancel(TERMINATED, "the command that started it was terminated")
        return self._leave() if detach else self._report()

    def _view(self) -> View:
        return View() if self._json else view_for(self._board)

    def _submit(self, configs: Sequence[Mapping[str, Any]]) -> None:
        try:
            for config in configs:
                run = self._client.get(self._client.submit(config).run_id)
                self._board.rows[run.run_id] = Row(run)
        except MosaicError:
            # All or none: a refused run leaves no half of its family behind.
            self._ask_to_end("another run of the same command was refused")
            raise

    def _leave(self) -> int:
        runs = self._records()
        if self._json:
            self._print_json(runs)
            return 0
        ids = " ".join(run.run_id for run in runs)
        sentence = "The runs continue" if len(runs) > 1 else "The run continues"
        say(f"{sentence} in the background. To watch again, or to cancel:")
        say(f"  {program()} watch {ids}\n  {program()} cancel {ids}")
        return 0

    def _cancel(self, code: int, reason: str) -> int:
        self._ask_to_end(reason)
        try:
            follow(self._client, self._board, self._view())
        except (KeyboardInterrupt, Terminated):
            note("No longer waiting; the runs are still being ended.")
            return code
        self._report()
        return code

    def _ask_to_end(self, reason: str) -> None:
        for row in self._board.live:
            try:
                self._client.cancel(row.run_id, reason)
            except ConflictError:
                continue
            row.ending = True

    def _report(self) -> int:
        runs = self._records()
        if self._json:
            self._print_json(runs)
        else:
            self._tell(self._client, runs)
        return exit_code(runs)

    def _records(self) -> list[RunRecord]:
        return [self._client.get(run_id) for run_id in self._board.rows]

    def _print_json(self, runs: list[RunRecord]) -> None:
        shapes = [self._shape(run) for run in runs]
        print_json(shapes[0] if len(shapes) == 1 else {"runs": shapes})


def exit_code(runs: Sequence[RunRecord]) -> int:
    """0 when every run completed."""
    return 0 if all(run.outcome == "completed" for run in runs) else 1


_ALIASES = {"use_cuda": "cuda", "trackers": "track", "env": "env_id"}


def dry_run(configs: Sequence[Mapping[str, Any]], args: argparse.Namespace) -> int:
    """Tell what would run: a table, with --json the run config, with --emit-summary all about it as JSON."""
    # As they would be stored: what is shown has no secrets in it.
    configs = [lift_secrets(config, os.environ).config for config in configs]
    first = configs[0]
    check_possible(validate_train_run_config(first).resources, _machine(args))
    summary = None if args.json and not args.emit_summary else describe(first, args)
    if args.emit_summary:
        print_json(summary)
    elif summary is None:
        print_json(first if len(configs) == 1 else configs)
    else:
        for part in render(summary):
            console().print(part)
        if len(configs) > 1:
            seeds = ", ".join(str(one["metadata"]["worker"]["config"].get("seed")) for one in configs)
            console().print(f"\n{len(configs)} runs, with the seeds {seeds}")
    note("All checks passed; nothing was started.")
    return 0


def _machine(args: argparse.Namespace) -> Machine:
    """What the daemon may hand out; while none runs, what one that is started here could."""
    health = read_health(VarPaths(choose_var(args.var)))
    return Machine(health.cpus, health.memory_mb, tuple(range(health.gpus))) if health else Machine.detect()


def describe(config: Mapping[str, Any], args: argparse.Namespace) -> dict[str, Any] | None:
    """What the worker tells of a run; None when it can tell nothing."""
    catalog, request = _describing(config), config["metadata"]["worker"]
    if catalog is None:
        return None
    folder = Path(str(config["metadata"]["ui"]["python_path"]).partition(os.pathsep)[0])
    summary = catalog.describe(request["config"], request["python"], folder, _typed(args))
    if getattr(args, "config", None) is None and getattr(args, "run", None) is None:
        # Nobody wrote a config: what was not typed is what this command fills in.
        for one in summary["parameters"]:
            one["source"] = "default" if one["source"] == "config" else one["source"]
    return summary


def _typed(args: argparse.Namespace) -> set[str]:
    """The names of the parameters that were said on the command line."""
    single = ("env", "total_timesteps", "seed", "env_kwargs", "curriculum", "cuda", "trackers")
    named = {name for name in single if getattr(args, name, None) not in (None, False, [])}
    named |= {"seed"} if args.seeds is not None else set()
    named |= {name for name, _ in (*args.set, *args.extra)}
    return {_ALIASES.get(name, name) for name in named}


def render(summary: Mapping[str, Any]) -> list[Table]:
    """A summary as tables: the run, then its parameters."""
    return [_facts(summary), *([_parameters(summary["parameters"])] if summary["parameters"] else [])]


def _facts(summary: Mapping[str, Any]) -> Table:
    script = summary["script"] or {}
    device, resumed, policy = summary["device"], summary["resumed_from"], summary["policy"]
    stages = words.curriculum_facts(summary["curriculum"] or ())
    rows = [
        ("mode", summary["mode"]),
        ("module", summary["module"]),
        ("resumed from", resumed and resumed["explanation"]),
        ("plays", policy and place_text(policy["path"])),
        *_environment(summary["environment"]),
        *((f"  {name}" if name != "curriculum" else name, told) for name, told in stages),
        ("does", script.get("description")),
        ("phases", script.get("phases")),
        ("device", device and f"{device['name']} ({device['reason']})"),
        ("memory", _memory(summary["estimated_memory_mb"])),
        ("pictures", as_typed(words.pictures_text(summary["pictures"], quote="`"))),
        ("note", summary["warning"]),
        ("missing", ", ".join(one["install"] for one in summary["missing_extras"])),
        ("command", shlex.join(summary["command"])),
    ]
    return facts((label, str(value) if value else None) for label, value in rows)


def _environment(environment: Mapping[str, Any]) -> list[tuple[str, Any]]:
    facts: list[tuple[str, Any]] = [("environment", environment["env_id"])]
    if environment["known"]:
        facts += [
            (f"  {role}s", words.space_text(environment[role], dtype=True))
            for role in ("observation", "action")
        ]
        facts.append(("  episodes", f"up to {words.whole(environment['max_episode_steps'])} steps"))
    return facts if not environment["known"] or environment["max_episode_steps"] else facts[:-1]


def _memory(parts: Mapping[str, int] | None) -> str:
    if parts is None:
        return ""
    shown = [
        f"{name.replace('_', ' ')} {value:,}" for name, value in parts.items() if name != "total" and value
    ]
    return f"about {parts['total']:,} MB ({', '.join(shown)})"


def _parameters(parameters: Sequence[Mapping[str, Any]]) -> Table:
    whole, source = Column("\nParameter", no_wrap=True), Column("\nfrom", no_wrap=True, style="dim")
    columns = (whole, Column(overflow="fold"), source)
    table = Table(*columns, box=None, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    for one in parameters:
        value = one["value"]
        style = "" if one["source"] == "default" else "bold"
        shown = value if isinstance(value, str) else json.dumps(value)
        table.add_row(Text(one["name"], style=style), Text(shown, style=style), one["source"])
    return table
