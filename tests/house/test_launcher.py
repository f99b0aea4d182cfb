"""`./mosaic` never takes a half-made environment for whole, and says in one line what is wrong."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# No index and no wheels: pip starts as always and finds nothing.
NO_PACKAGES = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "a checkout"
    (folder / "src").mkdir(parents=True)
    for name in ("mosaic", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def start(command: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "MOSAIC_PYTHON": sys.executable, **NO_PACKAGES, **env}
    return subprocess.run([command, *args], env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("python", ["no-such-python", "/bin/false"])
def test_without_a_python_there_is_one_line_and_code_two(python: str, checkout: Path) -> None:
    done = start(checkout / "mosaic", "runs", MOSAIC_PYTHON=python)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no Python 3.11 or newer" in done.stderr
    assert python in done.stderr


def test_a_folder_that_cannot_be_written_is_told_with_code_two(checkout: Path) -> None:
    (checkout / ".venv").touch()
    done = start(checkout / "mosaic", "runs")
    assert done.returncode == 2
    assert f"{checkout}/.venv cannot be written" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_failed_set_up_shows_the_log_and_is_never_taken_for_whole(checkout: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere"
    link.symlink_to("a checkout/mosaic")
    for command in (checkout / "mosaic", link):
        done = start(command, "runs")
        assert done.returncode == 1
        assert "Setting up the environment" in done.stderr
        assert "No matching distribution found for torch" in done.stderr
        assert str(checkout / ".venv" / "setup.log") in done.stderr
        assert not (checkout / ".venv" / "stamp").exists()


def test_an_interrupted_set_up_ends_its_processes_and_is_never_taken_for_whole(checkout: Path) -> None:
    environment = {**os.environ, "MOSAIC_PYTHON": sys.executable, **NO_PACKAGES}
    with subprocess.Popen([checkout / "mosaic", "runs"], env=environment, stderr=subprocess.PIPE) as process:
        while not (checkout / ".venv" / "pyvenv.cfg").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate()
    assert process.returncode == 143
    assert b"interrupted" in told
    assert not (checkout / ".venv" / "stamp").exists()
    assert (checkout / ".venv" / "unfinished").exists()


# Says what pip says, as slowly as the test wants it.
FAKE_PYTHON = """#!/bin/sh
case "$*" in *pip\\ install*torch*) ;; *) exit 0;; esac
await() { while [ ! -e "$HERE/$1" ]; do sleep 0.05; done; }
echo "Collecting torch==2.13.0"
echo "  Downloading https://files.example/torch-2.13.0-cp311-linux_x86_64.whl (181.4 MB)"
mkdir "$TMPDIR/pip-unpack-x"
truncate -s 60000000 "$TMPDIR/pip-unpack-x/torch-2.13.0-cp311-linux_x86_64.whl"
await downloaded
echo "Installing collected packages: filelock, sympy, torch"
mkdir -p "$HERE/.venv/lib/python3.11/site-packages/filelock-1.dist-info"
echo "# changed" >>"$HERE/pyproject.toml"
await installed
"""


def test_a_set_up_tells_how_much_of_how_much_is_done(checkout: Path) -> None:
    python = checkout / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(FAKE_PYTHON)
    python.chmod(0o755)
    before = subprocess.run(["cksum"], stdin=(checkout / "pyproject.toml").open(), capture_output=True)
    screen, terminal = pty.openpty()
    environment = {**os.environ, "HERE": str(checkout)}
    said = ""

    def wait_for(text: str) -> None:
        nonlocal said
        deadline = time.monotonic() + 120
        while text not in said:
            assert time.monotonic() < deadline, said
            said += os.read(screen, 4096).decode(errors="replace")

    with subprocess.Popen([checkout / "mosaic", "runs"], env=environment, stderr=terminal) as process:
        os.close(terminal)
        try:
            wait_for("2 of 3, PyTorch: getting package 1, torch (60 of 181 MB), ")
            (checkout / "downloaded").touch()
            wait_for("2 of 3, PyTorch: installing 2 of 3, sympy, ")
            (checkout / "installed").touch()
            wait_for("Ready.")
        finally:
            # It waits for both, also when this test has given up.
            (checkout / "downloaded").touch()
            (checkout / "installed").touch()
            os.close(screen)
    assert process.returncode == 0
    stamp = (checkout / ".venv" / "stamp").read_text()
    assert stamp.startswith(before.stdout.decode()), "what was changed meanwhile was not installed"
    assert not (checkout / ".venv" / "tmp").exists()


def test_a_whole_environment_is_used_at_once_in_the_folder_of_the_caller(
    checkout: Path, tmp_path: Path
) -> None:
    # An environment that says who calls it stands for one that took minutes to make.
    scripts = checkout / ".venv" / "bin"
    scripts.mkdir(parents=True)
    (scripts / "python").write_text('#!/bin/sh\npwd\nprintf "%s\\n" "$@"\n')
    (scripts / "python").chmod(0o755)
    source = (checkout / "pyproject.toml").read_bytes()
    checksum = subprocess.run(["cksum"], input=source, capture_output=True, check=True).stdout.decode()
    (checkout / ".venv" / "stamp").write_text(f"{checksum}{checkout}\n")
    done = subprocess.run(
        [checkout / "mosaic", "train", "a b", "*"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [str(tmp_path), "-P", "-m", "mosaic", "train", "a b", "*"]
    assert done.stderr == ""
