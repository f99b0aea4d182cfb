"""Tracking with Weights & Biases, without its server: what it would send lies in the run's folder."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("wandb") is None, reason="wandb is not installed")

SECRET = "0123456789abcdef0123456789abcdef01234567"


def run_ppo(folder: Path, *flags: str) -> None:
    variables = {"WANDB_MODE": "offline", "WANDB_RUN_ID": "run7", "WANDB_API_KEY": SECRET}
    variables["WANDB_NAME"] = "mine"
    places = {name: str(folder / "wandb-own") for name in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR")}
    command = [sys.executable, "-m", "cleanrl_worker.algorithms.ppo", "--track", "--eval-episodes=2", *flags]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **variables, **places}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr


def history(folder: Path) -> list[dict[str, Any]]:
    """What was logged, of all files of the run in order."""
    protocol: Any = importlib.import_module("wandb.proto.wandb_internal_pb2")
    rows = []
    for path in sorted(folder.glob("wandb/offline-run-*-run7/run-run7.wandb")):
        for data in log_records(path.read_bytes()):
            record = protocol.Record()
            record.ParseFromString(data)
            if record.WhichOneof("record_type") == "history":
                items = record.history.item
                rows.append({item.nested_key[0]: json.loads(item.value_json) for item in items})
    return rows


def log_records(data: bytes) -> Iterator[bytes]:
    """The records of a log in blocks of 32 KiB; parts of one that is spread over blocks are joined."""
    record, at = b"", 7
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        record += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            yield record
            record = b""


def test_scalars_arrive_a_resumed_run_continues_and_secrets_stay_out(tmp_path: Path) -> None:
    run_ppo(tmp_path, "--total-timesteps=1024")
    rows = history(tmp_path)
    steps = [row["global_step"] for row in rows if "charts/learning_rate" in row]
    assert steps == [512, 1024]
    assert sum("charts/episodic_return" in row for row in rows) > 10
    assert [row["episode"] for row in rows if "eval/episodic_return" in row] == [0, 1]

    (last,) = tmp_path.glob("checkpoints/step-*1024.npz")
    run_ppo(tmp_path, "--total-timesteps=2048", f"--resume-from={last}")
    steps = [row["global_step"] for row in history(tmp_path) if "charts/learning_rate" in row]
    assert steps == [512, 1024, 1536, 2048]
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
