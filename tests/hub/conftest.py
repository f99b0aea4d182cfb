"""The stand-in of the hub, and a trained run to upload."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import RunMosaic
from mosaic.contract.paths import VarPaths
from support.hub import StandInHub, stand_in_hub

TRAIN = ("train", "ppo", "CartPole-v1", "--steps", "512", "--set", "eval_episodes=3")
LEAVE = ("train", str(Path(__file__).parent / "scripts" / "ppo.py"), "CartPole-v1", "--steps", "512")
PATIENCE = 60.0


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    """All that the test starts asks this hub, as a user who is logged in."""
    with stand_in_hub() as made:
        for name, value in made.environment().items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
def train(run_mosaic: RunMosaic, var: Path) -> Callable[..., Path]:
    """Trains for a moment; gives the run's folder."""
    return _runner(run_mosaic, var, TRAIN)


@pytest.fixture
def leave(run_mosaic: RunMosaic, var: Path) -> Callable[..., Path]:
    """Has a script leave a model, which takes a moment less; gives the run's folder."""
    return _runner(run_mosaic, var, LEAVE)


def _runner(run_mosaic: RunMosaic, var: Path, command: tuple[str, ...]) -> Callable[..., Path]:
    def run(*more: str) -> Path:
        told = json.loads(run_mosaic(*command, *more, "--json").stdout)
        return VarPaths(var).runs / str(told["run_id"])

    return run


def upload_of(run_dir: Path) -> dict[str, Any]:
    """What `hub.json` says once the upload has ended."""
    deadline = time.monotonic() + PATIENCE
    while True:
        told: dict[str, Any] = json.loads((run_dir / "hub.json").read_text())
        if told["state"] != "uploading":
            return told
        assert time.monotonic() < deadline, told
        time.sleep(0.05)
