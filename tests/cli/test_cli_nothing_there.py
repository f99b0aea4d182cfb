"""Commands that read make nothing: where there is no run, they say so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import RunMosaic
from mosaic.cli import main
from mosaic.client import Client
from mosaic.contract.errors import NotFoundError, UserError
from mosaic.contract.paths import VarPaths

LISTING = ["runs", "queue", "gc --yes", "cancel --all"]
NAMING = [
    *("show last", "logs last", "watch last", "rm last --yes", "tag last", "cancel last", "pause last"),
    *("resume last", "rerun last", "queue last --first", "snapshot last x.png", "tensorboard last"),
]


@pytest.mark.parametrize("command", [*LISTING, *NAMING])
def test_a_folder_that_is_not_there_is_named_and_not_made(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typo = tmp_path / "typo"
    for words, named in ((["--var", str(typo)], "--var"), ([], "MOSAIC_VAR")):
        monkeypatch.setenv("MOSAIC_VAR", str(typo))
        assert main([*command.split(), *words]) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err == f"mosaic: There is no folder {typo}, and therefore no run: correct {named}.\n"
    assert not typo.exists()


@pytest.mark.parametrize("command", LISTING)
def test_lists_of_an_unused_folder_are_empty(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), "--var", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith(("There is no ", "Nothing to remove"))
    if command != "cancel --all":
        assert main([*command.split(), "--json", "--var", str(tmp_path)]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found == [] or not (found.get("runs") or found.get("live") or found.get("waiting"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", NAMING)
def test_no_run_is_found_in_an_unused_folder(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), "--var", str(tmp_path)]) == 2
    assert f"There is no run yet in {tmp_path}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_client_that_makes_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="There is no run yet in"):
        Client.connect(tmp_path / "typo", make=False)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is a file, but the folder of the runs is wanted"):
        Client.connect(tmp_path / "file", make=False)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("port", ["70000", "-1", "1e9", "x", "65536"])
def test_a_port_that_is_none_is_named(port: str, var: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["daemon", "start", f"--port={port}"]) == 2
    assert (
        f"--port: '{port}' is not a port: give 1 to 65535, or 0 for any that is free"
        in capsys.readouterr().err
    )
    assert list(var.iterdir()) == []


def test_the_command_that_starts_the_daemon_tells_what_was_rebuilt(var: Path, run_mosaic: RunMosaic) -> None:
    script = Path(__file__).parent.parent / "scripts" / "steps.py"
    run_mosaic("train", str(script), "None-v0", "--total-timesteps", "3")
    run_mosaic("daemon", "stop")
    VarPaths(var).database.unlink()
    done = run_mosaic("runs")
    assert "steps" in done.stdout
    assert done.stderr.startswith("mosaic: The run database was lost on ")
    assert done.stderr.endswith(": 1 run rebuilt from files.\n")
    assert run_mosaic("runs").stderr == ""
