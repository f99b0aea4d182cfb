"""ruff finds nothing to say, and nothing to reformat."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("arguments", [["check"], ["format", "--check", "--diff"]], ids=["lint", "format"])
def test_ruff_is_content(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *arguments, "."], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
