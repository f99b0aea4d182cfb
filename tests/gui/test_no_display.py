"""`mosaic gui` where there is no window to open: one line that says what is missing and what to do."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import PySide6
import pytest

from conftest import RunMosaic
from gym_gui.launch import check_display
from mosaic.contract.errors import UserError
from mosaic.contract.extras import absent_libraries, advice_for

ROOT = Path(__file__).parents[2]
NONE = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "QT_QPA_PLATFORM": ""}


def test_without_a_display_there_is_one_line_with_the_alternatives(run_mosaic: RunMosaic) -> None:
    done = run_mosaic("gui", check=False, env=NONE)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "no display" in done.stderr
    assert "mosaic watch" in done.stderr
    assert "ssh -X" in done.stderr


@pytest.mark.parametrize("display", [{"DISPLAY": ":98765"}, {"WAYLAND_DISPLAY": "wayland-98765"}])
def test_a_display_that_does_not_answer_is_told_not_crashed_on(
    run_mosaic: RunMosaic, display: dict[str, str]
) -> None:
    done = run_mosaic("gui", check=False, env={**NONE, **display})
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "does not answer" in done.stderr


def test_a_display_that_answers_chooses_its_plug_in(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "wayland-0"))
        server.listen()
        environ = {"WAYLAND_DISPLAY": "wayland-0", "XDG_RUNTIME_DIR": str(tmp_path)}
        assert check_display(environ) == "wayland"
        with pytest.raises(UserError, match="does not answer"):
            check_display({**environ, "QT_QPA_PLATFORM": "xcb"})
    assert check_display({"QT_QPA_PLATFORM": "offscreen"}) == "offscreen"


def test_all_missing_libraries_of_the_system_are_named_with_one_command(tmp_path: Path) -> None:
    # Qt as it is, but for one part that asks for two libraries which no system has.
    real = Path(PySide6.__file__).parent / "Qt"
    (tmp_path / "Qt" / "lib").mkdir(parents=True)
    for library in (real / "lib").iterdir():
        (tmp_path / "Qt" / "lib" / library.name).symlink_to(library)
    part = tmp_path / "Qt" / "lib" / "libQt6XcbQpa.so.6"
    content = part.read_bytes()
    part.unlink()
    for name in (b"libxcb-cursor.so.", b"libxcb-icccm.so."):
        content = re.sub(re.escape(name) + b"\\d", name + b"x", content)
    part.write_bytes(content)
    plugins = tmp_path / "Qt" / "plugins" / "platforms"
    plugins.mkdir(parents=True)
    shutil.copy(real / "plugins" / "platforms" / "libqxcb.so", plugins)
    absent = absent_libraries("xcb", tmp_path)
    assert absent == ["libxcb-cursor.so.x", "libxcb-icccm.so.x"]
    assert "`apt-get install libxcb-cursor0 libxcb-icccm4`" in advice_for(absent)
    assert advice_for(["libodd.so.1"]) == "install what has libodd.so.1"
    assert advice_for([*absent, "libodd.so.1"]).endswith("and install what has libodd.so.1")


def test_here_nothing_is_missing() -> None:
    assert absent_libraries() == []


def test_missing_packages_are_told_with_the_command_that_gets_them(tmp_path: Path) -> None:
    code = (
        "import importlib.util as u, sys; find = u.find_spec; "
        "u.find_spec = lambda name, *rest: None if name == 'PySide6' else find(name, *rest); "
        "from mosaic.cli import main; sys.exit(main(['gui']))"
    )
    environ = {**os.environ, **NONE, "QT_QPA_PLATFORM": "offscreen", "MOSAIC_VAR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    assert done.returncode == 2
    assert "needs PySide6" in done.stderr
    assert "./mosaic gui" in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["gui", "--help"], ["runs", "--help"]])
def test_help_imports_no_qt(words: list[str]) -> None:
    code = (
        f"import sys; from mosaic.cli import main; main({words!r}); "
        "sys.exit(any(name.split('.')[0] in ('PySide6', 'gym_gui') for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_launcher_gets_the_packages_of_the_window_only_where_there_is_a_screen(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / ".venv" / "bin").mkdir(parents=True)
    for name in ("mosaic", "pyproject.toml"):
        shutil.copy(ROOT / name, checkout / name)
    # A plain environment that is whole; its interpreter says what it is asked to do.
    python = checkout / ".venv" / "bin" / "python"
    python.write_text(
        '#!/bin/sh\ncase "$*" in *pip\\ install*) echo "pip: $*" >&2; exit 7;; esac\necho "run: $*"\n'
    )
    python.chmod(0o755)
    checksum = subprocess.run(
        ["cksum"], stdin=(checkout / "pyproject.toml").open(), capture_output=True, text=True, check=True
    )
    (checkout / ".venv" / "stamp").write_text(f"{checksum.stdout}{checkout}\n")

    def start(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, **NONE, **env}
        return subprocess.run([checkout / "mosaic", *words], env=environ, capture_output=True, text=True)

    assert start("gui").stdout == "run: -P -m mosaic gui\n"
    assert start("gui", "--help", DISPLAY=":0").stdout == "run: -P -m mosaic gui --help\n"
    assert start("runs", DISPLAY=":0").stdout == "run: -P -m mosaic runs\n"
    opened = start("--var", "elsewhere", "gui", DISPLAY=":0")
    assert opened.returncode == 1
    assert "Getting what the window needs" in opened.stderr
