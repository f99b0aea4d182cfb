"""Where the var folder is, and what lies in it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mosaic.contract import paths as module
from mosaic.contract.errors import StorageError
from mosaic.contract.paths import VarPaths, make_folder, resolve_var

CHECKOUT = Path(__file__).parents[2]


def test_the_variable_wins(tmp_path: Path) -> None:
    assert resolve_var({"MOSAIC_VAR": str(tmp_path / "v"), "XDG_DATA_HOME": "/data"}) == tmp_path / "v"


def test_a_relative_variable_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert resolve_var({"MOSAIC_VAR": "v"}) == tmp_path / "v"
    assert resolve_var({"MOSAIC_VAR": "~/v"}) == tmp_path / "home" / "v"


@pytest.mark.parametrize("environ", [{}, {"MOSAIC_VAR": ""}])
def test_a_checkout_has_its_own(environ: dict[str, str]) -> None:
    assert resolve_var(environ) == CHECKOUT / "var"


def installed_var(folder: Path, environ: dict[str, str]) -> Path:
    """What an installed copy, outside of any checkout, resolves."""
    package = folder / "lib" / "site" / "mosaic"
    for name in ("contract/__init__.py", "contract/errors.py", "contract/paths.py", "__init__.py"):
        target = package / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(module.__file__).parents[1] / name, target)
    code = "from mosaic.contract.paths import resolve_var; print(resolve_var())"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={"PYTHONPATH": str(package.parent), "HOME": str(folder / "home"), **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(done.stdout.strip())


def test_an_installed_copy_uses_the_users_data_folder(tmp_path: Path) -> None:
    assert installed_var(tmp_path, {}) == tmp_path / "home/.local/share/mosaic"
    assert installed_var(tmp_path, {"XDG_DATA_HOME": str(tmp_path / "d")}) == tmp_path / "d/mosaic"


def test_files_lie_where_the_contract_says(tmp_path: Path) -> None:
    paths = VarPaths(tmp_path)
    run = paths.run("01RUN")
    expected = {
        paths.database: "trainer/trainer.sqlite",
        paths.daemon_file: "trainer/daemon.json",
        paths.run_config("01RUN"): "trainer/configs/config-01RUN.json",
        paths.worker_config("01RUN"): "trainer/configs/worker-01RUN.json",
        run.manifest: "trainer/runs/01RUN/analytics.json",
        run.provenance: "trainer/runs/01RUN/provenance.json",
        run.lock: "trainer/runs/01RUN/supervisor.lock",
        run.events: "trainer/runs/01RUN/logs/events.jsonl",
        run.stdout: "trainer/runs/01RUN/logs/cleanrl.stdout.log",
        run.stderr: "trainer/runs/01RUN/logs/cleanrl.stderr.log",
        run.event_files: "trainer/runs/01RUN/runs",
        run.checkpoints: "trainer/runs/01RUN/checkpoints",
        paths.kept_logs("01RUN"): "logs/trainer/01RUN",
        paths.daemon_log: "logs/trainer.log",
    }
    assert {str(path.relative_to(tmp_path)) for path in expected} == set(expected.values())
    assert all(str(path.relative_to(tmp_path)) == name for path, name in expected.items())


def test_the_folder_of_secrets_is_closed_to_others(tmp_path: Path) -> None:
    paths = VarPaths(tmp_path / "var")
    paths.make()
    paths.make()
    assert paths.configs.is_dir()
    assert paths.runs.is_dir()
    assert stat.S_IMODE(paths.secrets.stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_made_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"file/var/.* cannot be made .*MOSAIC_VAR") as caught:
        VarPaths(tmp_path / "file" / "var").make()
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match=r"cannot be written: change its permissions"):
        make_folder(tmp_path)
