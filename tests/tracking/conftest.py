"""A run by hand, followed by trackers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mosaic.contract.paths import RunPaths
from support.runs import SCRIPTS
from support.wandb_service import KEY, WandbService

CURVES = SCRIPTS / "curves.py"


class TrackedRun:
    """A run of `curves.py` by hand, in its own var folder."""

    def __init__(self, var: Path) -> None:
        self.var = var
        self.config = {
            "run_id": "01TRACKED00000000000000000",
            "algo": str(CURVES),
            "env_id": "None-v0",
            "total_timesteps": 25,
        }
        self.paths = RunPaths(var / "trainer" / "runs" / str(self.config["run_id"]))

    def start(self, extras: dict[str, Any], **variables: str) -> subprocess.Popen[str]:
        file = self.var / "config.json"
        file.write_text(json.dumps({**self.config, "extras": extras}))
        return subprocess.Popen(
            [sys.executable, "-m", "cleanrl_worker.cli", "--config", str(file)],
            env={**os.environ, "MOSAIC_VAR": str(self.var), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, extras: dict[str, Any], code: int = 0, **variables: str) -> dict[str, Any]:
        """Run to the end; gives the payload of the last event."""
        started = self.start(extras, **variables)
        out, err = started.communicate(timeout=120)
        assert started.returncode == code, out + err + self.log()
        return dict(json.loads(out.splitlines()[-1])["payload"])

    def log(self) -> str:
        """What trackers have printed."""
        return "".join(path.read_text() for path in self.paths.logs.glob("tracking-*.log"))


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
