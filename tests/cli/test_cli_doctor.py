"""`mosaic doctor` and `mosaic extras`: what is there, what is missing, how to get it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest

from mosaic.cli import main
from mosaic.contract.errors import UserError
from mosaic.contract.extras import PURPOSES, base_packages, check_names, extra_sets


def test_doctor_names_what_is_missing_and_the_command_for_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["doctor", "--json", "--var", str(tmp_path)]) == 0
    report = json.loads(capsys.readouterr().out)
    found = {check["name"]: check for check in report["checks"]}
    assert report["ok"] is True
    assert {"python", "torch", "gymnasium", "var folder", "disk", "CPUs", "daemon", "workers"} <= set(found)
    for one in extra_sets():
        assert found[one.name]["ok"] == one.installed
        assert found[one.name]["fix"].endswith(f"extras install {one.name}")
    assert not any(tmp_path.iterdir())


def test_doctor_imports_neither_torch_nor_gymnasium(tmp_path: Path) -> None:
    code = (
        "import sys; from mosaic.cli import main; "
        "code = main(['doctor', '--var', sys.argv[1]]); "
        "sys.exit(code or int('torch' in sys.modules or 'gymnasium' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Everything that a run needs is installed." in done.stdout


def test_extras_are_those_of_the_distribution() -> None:
    declared = {name.replace("-", "_") for name in metadata("mosaic-rl").get_all("Provides-Extra") or []}
    assert {one.name for one in extra_sets()} == declared - {"test"}
    assert set(PURPOSES) == declared - {"test"}


def test_an_extra_of_a_dependency_is_looked_into() -> None:
    box2d = next(one for one in extra_sets() if one.name == "box2d")
    assert len(box2d.packages) > 1


def test_the_base_packages_hold_no_extra() -> None:
    names = {package.name for package in base_packages()}
    assert "torch" in names
    assert "ale-py" not in names


def test_names_of_extras_are_checked() -> None:
    assert check_names(["atari", "dm-control", "atari"]) == ["atari", "dm_control"]
    with pytest.raises(UserError, match="did you mean 'mujoco'"):
        check_names(["mujco"])


def test_extras_are_listed_for_people_and_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["extras"]) == 0
    assert "Atari games" in capsys.readouterr().out
    assert main(["extras", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {"name", "purpose", "installed", "packages"} <= set(listed[0])


def test_the_worker_tool_refuses_the_same_names() -> None:
    command = [sys.executable, "-m", "cleanrl_worker.tools.install_extras", "--set", "atari,mujco"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "did you mean 'mujoco'?" in done.stderr
    assert done.stderr.count("\n") == 1
