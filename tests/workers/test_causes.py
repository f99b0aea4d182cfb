"""Why a training process failed, in one line."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mosaic.worker.causes import cause_of, last_lines
from support.runs import SCRIPTS

TENSOR = "        [nan, nan, nan, nan],\n"


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("raise ValueError('no reward')", "ValueError: no reward (exit code 1)"),
        ("raise ValueError('  no reward:\\n   nan\\n')", "ValueError: no reward: nan (exit code 1)"),
        ("raise ValueError", "ValueError (exit code 1)"),
        ("import json; json.loads('{')", "json.decoder.JSONDecodeError: Expecting"),
        ("import sys; print('a word\\n  and another  ', file=sys.stderr); sys.exit(3)", "and another (exit"),
        ("raise SystemExit(4)", "the script ended with exit code 4"),
        ("raise ValueError('long ' * 100)", "ValueError: " + "long " * 57),
        (
            f"raise ValueError('not a number:\\n' + {TENSOR!r} * 400)",
            "ValueError: not a number: (exit code 1)",
        ),
        (
            "try: 1 / 0\nexcept ZeroDivisionError: raise KeyError('lr') from None",
            "KeyError: 'lr' (exit code 1)",
        ),
        ("1 /", "SyntaxError: invalid syntax (exit code 1)"),
    ],
)
def test_it_is_the_error_under_a_traceback_or_the_last_line(script: str, cause: str, tmp_path: Path) -> None:
    stderr = tmp_path / "stderr.log"
    with stderr.open("wb") as file:
        code = subprocess.run([sys.executable, "-c", script], stderr=file, check=False).returncode
    assert cause_of(code, last_lines(stderr)).startswith(cause)


def test_it_is_the_sentence_in_the_box_that_tyro_draws(tmp_path: Path) -> None:
    stderr = tmp_path / "stderr.log"
    with stderr.open("wb") as file:
        words = [sys.executable, str(SCRIPTS / "tyro_script.py"), "--learning-rat=2"]
        code = subprocess.run(words, stderr=file, check=False).returncode
    assert cause_of(code, last_lines(stderr)) == "Unrecognized options: --learning-rat=2 (exit code 2)"


def test_a_signal_is_named() -> None:
    assert cause_of(128 + signal.SIGKILL, []) == "the script was killed by SIGKILL"
    assert cause_of(128 + signal.SIGKILL, ["  out of memory"]) == "out of memory (killed by SIGKILL)"
