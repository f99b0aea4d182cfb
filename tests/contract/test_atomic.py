"""Files that others read are whole or not there, whatever happens to the writer."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mosaic.contract.atomic import write_atomic, write_json

# Ends itself with KILL when the named call of the writer is reached, before or after it happens.
KILLED = """
import os, signal, sys
from pathlib import Path
from mosaic.contract import atomic

path, call, when = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
real = getattr(os, call)

def deadly(*args, **kwargs):
    if when == "after":
        real(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(os, call, deadly)
atomic.write_atomic(path, b"new" * 100_000)
"""

FULL = """
import resource, signal, sys
from pathlib import Path
from mosaic.contract.atomic import write_atomic

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_atomic(Path(sys.argv[1]), b"new" * 1000)
except OSError as error:
    print(type(error).__name__)
"""


def test_a_file_is_written_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"one")
    assert path.read_bytes() == b"one"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    write_atomic(path, b"two", mode=0o600)
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["file"]


def test_a_secret_file_is_never_readable_by_others(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        write_atomic(tmp_path / "file", b"x", mode=0o600)
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_json_round_trips_and_is_readable(tmp_path: Path) -> None:
    value = {"name": "Übung", "list": [1, 2.5, None], "deep": {"on": True}}
    write_json(tmp_path / "file.json", value)
    text = (tmp_path / "file.json").read_text()
    assert json.loads(text) == value
    assert "Übung" in text
    assert text.endswith("}\n")


@pytest.mark.parametrize("value", [{"x": float("nan")}, {"x": object()}])
def test_what_cannot_be_written_leaves_the_old_file(value: object, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    write_json(path, {"old": 1})
    with pytest.raises((ValueError, TypeError)):
        write_json(path, value)
    assert json.loads(path.read_text()) == {"old": 1}
    assert os.listdir(tmp_path) == ["file.json"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", ["fdopen", "fchmod", "fsync", "replace"])
def test_a_writer_killed_anywhere_leaves_the_old_or_the_new_file(
    call: str, when: str, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), call, when])
    assert done.returncode == -signal.SIGKILL
    expected = b"new" * 100_000 if (call, when) == ("replace", "after") else b"old"
    assert path.read_bytes() == expected
    write_atomic(path, b"later")
    assert path.read_bytes() == b"later"


def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "OSError"
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_reader_beside_a_writer_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    write_json(path, {"n": 0, "filler": "x" * 100_000})
    code = (
        "import sys; from pathlib import Path; from mosaic.contract.atomic import write_json\n"
        "for n in range(200): write_json(Path(sys.argv[1]), {'n': n, 'filler': 'x' * 100_000})"
    )
    seen = []
    with subprocess.Popen([sys.executable, "-c", code, str(path)]) as process:
        while process.poll() is None:
            seen.append(json.loads(path.read_bytes())["n"])
    assert process.returncode == 0
    assert seen == sorted(seen)
    assert json.loads(path.read_bytes())["n"] == 199


def test_a_folder_that_is_not_there_is_an_error_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomic(tmp_path / "none" / "file", b"x")
    assert os.listdir(tmp_path) == []
