"""Workers are found by their entry points; a broken one harms nobody."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mosaic.contract.capabilities import WorkerCapabilities, discover_workers, find_worker
from mosaic.contract.errors import NotFoundError


def install_worker(folder: Path, name: str, source: str) -> None:
    """What pip would leave of a package with a `mosaic.workers` entry point."""
    (folder / f"{name}.py").write_text(source)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[mosaic.workers]\n{name} = {name}:describe\n")


def discovered_with(folder: Path) -> list[str]:
    code = (
        f"import json, sys; sys.path.insert(0, {str(folder)!r})\n"
        "from mosaic.contract.capabilities import discover_workers as workers; "
        "print(json.dumps(sorted(workers())))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout)
    return found


def test_the_installed_worker_is_found() -> None:
    found = discover_workers()["cleanrl"]
    assert isinstance(found, WorkerCapabilities)
    assert found.cli_module == "cleanrl_worker.cli"


def test_an_unknown_type_gets_the_nearest_one() -> None:
    with pytest.raises(NotFoundError, match=r"'cleanrll'.*did you mean 'cleanrl'\?"):
        find_worker("cleanrll")


def test_a_new_worker_needs_only_its_entry_point(tmp_path: Path) -> None:
    source = """
from mosaic.contract.capabilities import WorkerCapabilities

def describe():
    return WorkerCapabilities("other", "Other", "other.cli")
"""
    install_worker(tmp_path, "other", source)
    assert discovered_with(tmp_path) == ["cleanrl", "other", "sweep"]


@pytest.mark.parametrize(
    "source",
    [
        "raise ImportError('half installed')",
        "def describe(): raise ValueError",
        "def describe(): return {}",
        "",
    ],
    ids=["import fails", "call fails", "wrong answer", "no function"],
)
def test_a_broken_worker_is_left_out(source: str, tmp_path: Path) -> None:
    install_worker(tmp_path, "broken", source)
    assert discovered_with(tmp_path) == ["cleanrl", "sweep"]
