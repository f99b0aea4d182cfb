"""`mosaic tensorboard`: the curves of several runs at one address, gone after SIGTERM."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import RunMosaic

CURVES = (str(Path(__file__).parent / "scripts" / "curves.py"), "None-v0", "--steps", "3")
PATIENCE = 90.0


def test_two_runs_are_served_side_by_side(run_mosaic: RunMosaic) -> None:
    trained = run_mosaic("train", *CURVES, "--seeds", "1,2", "--json")
    ids = [run["run_id"] for run in json.loads(trained.stdout)["runs"]]
    command = [sys.executable, "-m", "mosaic", "tensorboard", *ids]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
        assert address is not None
        served: list[str] = []
        deadline = time.monotonic() + PATIENCE
        while len(served) < 2 and time.monotonic() < deadline:
            with urllib.request.urlopen(address[0] + "data/runs") as answer:
                served = json.load(answer)
            time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    assert sorted(name.split("_")[1] for name in served) == ["s1", "s2"]


def test_a_port_in_use_is_refused(run_mosaic: RunMosaic) -> None:
    run_mosaic("train", *CURVES)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run_mosaic("tensorboard", "last", "--port", port, check=False)
        start = run_mosaic("daemon", "stop")
        assert start.returncode == 0
        daemon = run_mosaic("daemon", "start", "--port", port, check=False)
    for refused in (done, daemon):
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        assert port in refused.stderr
