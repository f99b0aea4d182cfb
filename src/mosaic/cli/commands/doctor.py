"""`doctor` and `extras`: what is installed, what is missing, and how to get it.

Nothing heavy is imported: versions come from the packages' metadata.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Column, Table
from rich.text import Text

from mosaic import __version__
from mosaic.cli.commands.daemon import read_health, reserved_text
from mosaic.cli.output import console, place_text, print_json, program, say, table
from mosaic.cli.parsers import EXTRAS_ACTIONS
from mosaic.contract.capabilities import discover_workers
from mosaic.contract.errors import MosaicError, UserError, closest
from mosaic.contract.extras import (
    DISTRIBUTION,
    absent_for_procgen,
    absent_libraries,
    advice_for,
    base_packages,
    extra_sets,
    install_extras,
    is_installed,
)
from mosaic.contract.outside import bytes_text
from mosaic.contract.paths import VarPaths, resolve_var

_LEAST_FREE = 1_000_000_000
_SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Check:
    """One finding: `fix` is the command or action that helps when it is not well."""

    name: str
    ok: bool
    detail: str
    required: bool = True
    fix: str = ""

    @property
    def broken(self) -> bool:
        return self.required and not self.ok


def _installed() -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    fits = sys.version_info >= (3, 11)
    yield Check("python", fits, f"{version}  {sys.executable}", fix="install Python 3.11")
    for package in base_packages():
        detail = package.version or "not installed"
        if package.version and not package.fits:
            detail = f"{package.version}, but {package.requirement} is needed"
        elif package.version and package.name == "torch":
            detail = f"{package.version}  {_device(package.version)}"
        fix = f"{sys.executable} -m pip install '{package.requirement}'"
        yield Check(package.name, package.fits, detail, fix=fix)
    names = sorted(discover_workers())
    fix = f"{sys.executable} -m pip install --force-reinstall --no-deps {DISTRIBUTION}"
    yield Check("workers", bool(names), ", ".join(names) or "none can be loaded", fix=fix)


def _device(torch_version: str) -> str:
    """Whether torch can use a GPU, told without importing it."""
    has_driver = Path("/proc/driver/nvidia/version").exists()
    if "+cpu" in torch_version:
        return "CPU build; there is a GPU it cannot use" if has_driver else "CPU build"
    return "GPU" if has_driver else "CPU, no GPU driver found"


def _machine(paths: VarPaths) -> Iterator[Check]:
    yield _var_folder(paths)
    free = shutil.disk_usage(_existing(paths.root)).free
    room = f"{bytes_text(free)} free"
    yield Check("disk", free > _LEAST_FREE, room, fix="make room, or choose another folder with --var")
    yield _shared_memory()
    yield Check("CPUs", True, str(len(os.sched_getaffinity(0))))
    yield from _database(paths)
    yield from _daemon(paths)
    if is_installed("gui"):
        # What the window needs of the system, once its own packages are there.
        yield _libraries("the window's libraries", absent_libraries())
    if is_installed("procgen"):
        yield _libraries("Procgen's libraries", absent_for_procgen())


def _libraries(name: str, absent: Sequence[str]) -> Check:
    detail = f"not there: {', '.join(absent)}" if absent else "all there"
    return Check(name, not absent, detail, required=False, fix=advice_for(absent) if absent else "")


def _var_folder(paths: VarPaths) -> Check:
    place = place_text(paths.root)
    fix = f"change the permissions of {place}, or choose another folder with --var"
    if not paths.root.exists():
        able = os.access(_existing(paths.root), os.W_OK | os.X_OK)
        return Check("var folder", able, f"{place}  is made on first use", fix=fix)
    able = paths.root.is_dir() and os.access(paths.root, os.R_OK | os.W_OK | os.X_OK)
    return Check("var folder", able, f"{place}  {'writable' if able else 'cannot be written'}", fix=fix)


def _existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _shared_memory() -> Check:
    try:
        with tempfile.NamedTemporaryFile(dir=_SHARED_MEMORY):
            detail = f"{_SHARED_MEMORY}  {bytes_text(shutil.disk_usage(_SHARED_MEMORY).free)} free"
        return Check("shared memory", True, detail, required=False)
    except OSError as error:
        detail = f"{_SHARED_MEMORY} cannot be used ({error.strerror})"
        return Check("shared memory", False, detail, required=False, fix=f"mount {_SHARED_MEMORY}")


def _database(paths: VarPaths) -> Iterator[Check]:
    """Whether the run database is sound; reads it beside a daemon that may use it, and makes nothing."""
    path = paths.database
    known = sum(1 for _ in paths.configs.glob("config-*.json"))
    if not path.exists() or path.stat().st_size == 0:
        if known:
            # The next daemon rebuilds it, and nothing is asked of anybody.
            yield Check("run database", False, f"lost, but {known} runs have files", fix=_mended())
        return
    # Without a log of changes beside it nobody has it open; asked so, SQLite does not make one.
    how = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?{how}", uri=True)) as database:
            (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
            (runs,) = database.execute("SELECT count(*) FROM runs").fetchone()
    except sqlite3.Error as error:
        found, runs = str(error), 0
    if found == "ok":
        yield Check("run database", True, f"sound; {runs:,} runs, {bytes_text(path.stat().st_size)}")
    else:
        yield Check("run database", False, f"damaged ({' '.join(found.split())})", fix=_mended())


def _mended() -> str:
    return f"{program()} daemon stop, then {program()} runs: it is rebuilt from the files of the runs"


def _daemon(paths: VarPaths) -> Iterator[Check]:
    log = place_text(paths.daemon_log)
    try:
        health = read_health(paths)
    except (MosaicError, OSError) as error:
        fix = f"{program()} daemon stop, then try again; its log is {log}"
        yield Check("daemon", False, str(error), fix=fix)
        return
    if health is None:
        yield Check("daemon", True, "not running; starts when it is needed")
        return
    detail = f"{health.version} at {health.address}, pid {health.pid}"
    yield Check("daemon", True, detail)
    runs = f"{health.live_runs} live, {health.waiting_runs} waiting; {reserved_text(health)}"
    yield Check("runs", True, runs)
    for notice in health.notices:
        yield Check("note", True, notice)
    for problem in health.problems:
        fix = f"{program()} gc --dry-run says what can be removed; the daemon's log is {log}"
        yield Check("problem", False, problem, fix=fix)


def _extras() -> Iterator[Check]:
    for one in extra_sets():
        missing = [package for package in one.packages if not package.fits]
        if missing:
            detail = f"not installed; for {one.purpose}"
        else:
            detail = ", ".join(f"{package.name} {package.version}" for package in one.packages)
        fix = f"{program()} extras install {one.name}"
        yield Check(one.name, not missing, detail, required=False, fix=fix)


def run_doctor(args: argparse.Namespace) -> int:
    paths = VarPaths((args.var or resolve_var()).resolve())
    # What every run needs, then what some runs need.
    groups = {"Installed": [*_installed()], "Machine": [*_machine(paths)], "Optional": [*_extras()]}
    broken = [check for checks in groups.values() for check in checks if check.broken]
    if args.json:
        told = [{"group": group, **asdict(check)} for group, checks in groups.items() for check in checks]
        print_json({"ok": not broken, "version": __version__, "checks": told})
        return 1 if broken else 0
    columns = (Column(no_wrap=True), Column(no_wrap=True), Column(overflow="fold"))
    listed = Table.grid(*columns, padding=(0, 2, 0, 0))
    for group, checks in groups.items():
        listed.add_row("", "", "")
        listed.add_row("", Text(group, style="bold"), "")
        for check in checks:
            mark = ("✓", "green") if check.ok else ("✗", "red") if check.required else ("–", "dim")
            listed.add_row(Text(*mark), check.name, Text(check.detail))
            if not check.ok:
                listed.add_row("", "", Text(check.fix, style="cyan"))
    say(f"MOSAIC {__version__}")
    console().print(listed)
    amount = "1 thing is" if len(broken) == 1 else f"{len(broken)} things are"
    say(f"\n{amount} broken: see ✗ above." if broken else "\nEverything that a run needs is installed.")
    return 1 if broken else 0


def run_extras(args: argparse.Namespace) -> int:
    if args.action not in EXTRAS_ACTIONS:
        hint = closest(args.action, EXTRAS_ACTIONS) or f"; it takes {' and '.join(EXTRAS_ACTIONS)}."
        raise UserError(f"extras cannot '{args.action}'{hint}")
    names = [name for word in args.names for name in word.split(",") if name]
    if args.action == "list" and names:
        raise UserError(f"extras list takes no names: `{program()} extras install {','.join(names)}`?")
    if args.action == "install":
        install_extras(names, quiet=args.json)
    if args.json:
        print_json([one.as_json() for one in extra_sets()])
    elif args.action == "list":
        listed = table("name", "installed", "for", fold=("for",), gap=2)
        for one in extra_sets():
            there = Text("yes", style="green") if one.installed else Text("no", style="dim")
            listed.add_row(one.name, there, Text(one.purpose))
        console().print(listed)
        say(f"Install with `{program()} extras install NAME,NAME`.")
    return 0
