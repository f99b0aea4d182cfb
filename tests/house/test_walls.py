"""No room imports what it must not know, directly or through others, at the top or in a function."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.imports import SourceTree, is_under

SRC = Path(__file__).parents[2] / "src"
TREE = SourceTree(SRC)

QT = ("PySide6", "PyQt5", "PyQt6", "qtpy", "pyqtgraph")
DAEMON = "mosaic.trainer"


@dataclass(frozen=True)
class Room:
    """Modules with one purpose, and what none of them may reach."""

    name: str
    modules: tuple[str, ...]
    forbidden: tuple[str, ...]
    without: tuple[str, ...] = ()


def worker(*names: str) -> tuple[str, ...]:
    return tuple(f"cleanrl_worker.{name}" for name in names)


TRAINING = worker(
    "kit",
    "algorithms",
    "agents",
    "wrappers",
    "accelerated",
    "evaluation",
    "curriculum.stages",
    "curriculum.wrapper",
)
TOOLS = worker("tools")
PORTABLE = worker("portable")

ROOMS = (
    Room(
        "contract",
        ("mosaic.contract",),
        (
            *QT,
            "torch",
            "gymnasium",
            "mosaic.fastlane",
            "mosaic.analytics",
            DAEMON,
            "mosaic.client",
            "mosaic.cli",
            "mosaic.worker",
            "mosaic.testing",
            "cleanrl_worker",
            "gym_gui",
        ),
    ),
    Room("analytics", ("mosaic.analytics",), (*QT, "torch", DAEMON)),
    Room(
        "tracking",
        ("mosaic.tracking",),
        (*QT, "torch", "gymnasium", DAEMON, "mosaic.client", "cleanrl_worker"),
    ),
    Room("hub", ("mosaic.hub",), (*QT, "torch", "gymnasium", DAEMON, "mosaic.client", "cleanrl_worker")),
    Room("trainer", (DAEMON,), (*QT, "torch", "gymnasium", "cleanrl_worker", "mosaic.sweeps", "optuna")),
    Room("client", ("mosaic.client",), (*QT, "torch", DAEMON, "cleanrl_worker", "mosaic.sweeps", "optuna")),
    Room("sweeps", ("mosaic.sweeps",), (*QT, "torch", "gymnasium", DAEMON, "mosaic.cli", "cleanrl_worker")),
    # What reads a sweep, or checks one, imports no Optuna; the daemon checks the configs of sweeps.
    Room(
        "sweeps, what is light",
        tuple(f"mosaic.sweeps.{name}" for name in ("catalog", "configs", "study", "sweep_file", "example")),
        ("optuna",),
    ),
    # What opens the window is the only command that may reach Qt.
    Room(
        "cli",
        ("mosaic.cli", "mosaic.__main__"),
        (*QT, "torch", DAEMON, "gym_gui"),
        without=("mosaic.cli.commands.gui",),
    ),
    Room("cli, window", ("mosaic.cli.commands.gui",), ("torch", "gymnasium", DAEMON)),
    Room("window", ("gym_gui",), ("torch", "gymnasium", DAEMON, "cleanrl_worker", "mosaic.cli")),
    Room("window, what it knows", ("gym_gui.models", "gym_gui.ui.presenters"), QT),
    Room("window, services", ("gym_gui.services",), ("PySide6.QtWidgets", "pyqtgraph")),
    Room("worker kit", ("mosaic.worker",), (*QT, "torch", "gymnasium", DAEMON, "mosaic.client")),
    Room("testing", ("mosaic.testing",), (*QT, "torch", "gymnasium", DAEMON, "mosaic.cli", "cleanrl_worker")),
    # What is in no other half is light: a new module has to earn the right to be heavy here.
    Room(
        "worker, light half",
        ("cleanrl_worker",),
        (*QT, "torch", "gymnasium", DAEMON),
        without=(*TRAINING, *PORTABLE, *TOOLS),
    ),
    Room("worker, training half", TRAINING, (*QT, "grpc", "cleanrl_worker.supervisor", DAEMON)),
    Room(
        "worker, what a run is asked", worker("config", "schemas"), worker("supervisor", "kit", "evaluation")
    ),
    Room("worker, the kit", worker("kit"), worker("algorithms", "accelerated")),
    Room("worker, any interpreter", PORTABLE, (*QT, "grpc", "cleanrl_worker.supervisor", DAEMON)),
    Room("worker, tools", TOOLS, (*QT, DAEMON)),
)

# What a room may bring in besides the standard library and its own modules.
ONLY = {
    "mosaic.fastlane": ("numpy",),
    "mosaic.worker": ("mosaic.contract", "grpc", "google.protobuf"),
    **dict.fromkeys(PORTABLE, ("numpy", "gymnasium", "mosaic.fastlane", "cleanrl_worker.portable.fastlane")),
}

# These run in the user's own interpreter, which may be an old one.
OLD_SYNTAX = (*PORTABLE, "mosaic.fastlane")


def modules_of(prefixes: tuple[str, ...], without: tuple[str, ...] = ()) -> list[str]:
    return [name for name in TREE.modules if is_under(name, prefixes) and not is_under(name, without)]


def test_every_module_belongs_to_a_room() -> None:
    rooms = ("mosaic.fastlane", *(prefix for room in ROOMS for prefix in room.modules))
    homeless = [name for name in TREE.modules if name != "mosaic" and not is_under(name, rooms)]
    assert not homeless, f"Give these a room in {Path(__file__).name}: {', '.join(homeless)}"


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_no_wall_is_broken(room: Room) -> None:
    ways = [
        way for name in modules_of(room.modules, room.without) if (way := TREE.way_to(name, room.forbidden))
    ]
    assert not ways, "\n".join(" imports ".join(way) for way in ways)


@pytest.mark.parametrize("prefix", ONLY)
def test_a_bare_room_brings_in_nothing_else(prefix: str) -> None:
    allowed = (prefix, *ONLY[prefix], *sys.stdlib_module_names)
    for name in modules_of((prefix,)):
        others = {found for found in TREE.reached(name) - {"mosaic"} if not is_under(found, allowed)}
        assert not others, f"{name} brings in {', '.join(sorted(others))}"


def test_only_the_testing_room_imports_pytest() -> None:
    users = [name for name in TREE.modules if TREE.way_to(name, ("pytest",))]
    assert users
    assert not [name for name in users if not is_under(name, ("mosaic.testing",))]


@pytest.mark.parametrize("name", modules_of(OLD_SYNTAX))
def test_what_runs_in_any_interpreter_has_old_syntax(name: str) -> None:
    source = TREE.modules[name].read_text()
    tree = ast.parse(source, feature_version=(3, 8))
    if any(isinstance(node, ast.AnnAssign | ast.arg | ast.FunctionDef) for node in ast.walk(tree)):
        # New forms in annotations parse everywhere but only run where they are never evaluated.
        assert "from __future__ import annotations" in source


def imported_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter has after `statement`, without those it had before."""
    code = (
        f"import sys, json; before = set(sys.modules); {statement}; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


LIGHT_ROOMS = [room for room in ROOMS if "torch" in room.forbidden]


@pytest.mark.parametrize("room", LIGHT_ROOMS, ids=lambda room: room.name)
def test_a_light_room_stays_light_when_it_is_really_imported(room: Room) -> None:
    names = [name for name in modules_of(room.modules, room.without) if not name.endswith("__main__")]
    heavy = {name for name in imported_by(f"import {', '.join(names)}") if is_under(name, room.forbidden)}
    assert not heavy


def test_importing_mosaic_brings_in_nothing_but_the_standard_library() -> None:
    others = {name.split(".")[0] for name in imported_by("import mosaic")} - sys.stdlib_module_names
    assert others == {"mosaic"}


def test_the_worker_describes_itself_without_the_training_side() -> None:
    found = imported_by("from cleanrl_worker import get_worker_metadata; get_worker_metadata()")
    assert not {name for name in found if is_under(name, ("torch", "gymnasium", "grpc"))}
