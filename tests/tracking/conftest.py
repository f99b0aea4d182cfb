"""Runs that trackers follow, without anybody's login or settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.tracked import TrackedRun
from support.wandb_service import KEY, WandbService


@pytest.fixture
def tracked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leak_marks: list[str]) -> TrackedRun:
    var = tmp_path / "var"
    var.mkdir()
    leak_marks.append(str(var))
    # Nobody's login or settings of this machine.
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in list(os.environ):
        if name.startswith(("WANDB_", "MLFLOW_", "TRACKIO_")):
            monkeypatch.delenv(name)
    return TrackedRun(var)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[WandbService]:
    with WandbService() as service:
        monkeypatch.setenv("WANDB_BASE_URL", service.url)
        monkeypatch.setenv("WANDB_API_KEY", KEY)
        yield service


@pytest.fixture
def everything() -> Callable[[Path], Iterator[tuple[Path, bytes]]]:
    """All files below a folder, with what is in them."""

    def read(folder: Path) -> Iterator[tuple[Path, bytes]]:
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                yield path, path.read_bytes()

    return read
