"""A run by hand that trackers follow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from mosaic.contract.paths import RunPaths
from support.runs import SCRIPTS

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
            # A machine with other tests on it is slow.
            env={**os.environ, "MOSAIC_VAR": str(self.var), "MOSAIC_TRACKING_SECONDS": "150", **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, extras: dict[str, Any], code: int = 0, **variables: str) -> dict[str, Any]:
        """Run to the end; gives the payload of the last event."""
        started = self.start(extras, **variables)
        out, err = started.communicate(timeout=240)
        assert started.returncode == code, out + err + self.log()
        return dict(json.loads(out.splitlines()[-1])["payload"])

    def log(self) -> str:
        """What trackers have printed."""
        return "".join(path.read_text() for path in self.paths.logs.glob("tracking-*.log"))
