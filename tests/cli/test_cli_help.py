"""Help pages, and how little is loaded to show them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mosaic.cli import main
from mosaic.cli.app import COMMANDS


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"], ["help"]])
def test_the_overview_names_every_command(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    out = capsys.readouterr().out
    for command in COMMANDS:
        assert f"  {command.name} " in out
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_command_explains_itself(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Usage: ")
    assert "--var" in out
    assert "--debug" in out
    assert main(["help", command]) == 0
    assert capsys.readouterr().out == out


def test_an_algorithm_lists_its_own_parameters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["train", "ppo", "--help"]) == 0
    out = capsys.readouterr().out
    assert "Parameters of ppo" in out
    assert "--learning-rate FLOAT" in out
    assert "(default 0.00025)" in out
    assert "--[no-]anneal-lr" in out
    # Filled in by the run itself, so nothing for a user to set.
    assert "--exp-name" not in out


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("mosaic ")


@pytest.mark.parametrize("argv", [["--help"], ["runs", "--help"], ["trian"]])
def test_help_loads_nothing_heavy(argv: list[str]) -> None:
    heavy = ["grpc", "pydantic", "rich", "torch", "gymnasium", "numpy"]
    code = (
        "import sys; from mosaic.cli import main; main(sys.argv[1:]); "
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"
