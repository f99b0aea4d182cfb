"""The guard of conftest.py really fails a test that leaves something behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]

INNER = """
import socket, subprocess, threading, uuid
from pathlib import Path

import support.leaks

support.leaks.GRACE_SECONDS = 0.3
kept = []

def test_child():
    subprocess.Popen(["sleep", "1234"])

def test_orphan():
    subprocess.run("setsid sleep 1235 >/dev/null 2>&1 &", shell=True)

def test_orphan_of_the_var_folder(var):
    subprocess.run(["sh", "-c", "sleep 1236 >/dev/null 2>&1 &"], env={"MOSAIC_VAR": str(var)})

def test_thread():
    threading.Thread(target=threading.Event().wait, daemon=True, name="left").start()  # started here

def test_file(tmp_path):
    kept.append(open(tmp_path / "left.txt", "w"))

def test_socket():
    kept.append(socket.socket())

def test_shared_memory():
    segment = Path(f"/dev/shm/mosaic.SEGMENT")
    segment.write_bytes(b"x")

def test_clean(tmp_path, var):
    subprocess.run(["true"])
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    (tmp_path / "file").write_text("closed")
"""

TOLD = {
    "test_child": "sleep 1234",
    "test_orphan": "sleep 1235",
    "test_orphan_of_the_var_folder": "sleep 1236",
    "test_thread": "thread left, started at ",
    "test_file": "left.txt",
    "test_socket": "socket:",
    "test_shared_memory": "shared memory /dev/shm/mosaic.",
}


def test_each_kind_of_leak_fails_its_test_and_a_clean_test_passes(tmp_path: Path) -> None:
    segment = Path("/dev/shm", f"mosaic.{tmp_path.parent.parent.name}.{os.getpid()}")
    source = INNER.replace("/dev/shm/mosaic.SEGMENT", str(segment))
    (tmp_path / "test_inner.py").write_text(source)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-v", "-p", "conftest", f"--basetemp={tmp_path}/inner"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_ADDOPTS": "-p no:cacheprovider"},
            capture_output=True,
            text=True,
        )
    finally:
        segment.unlink(missing_ok=True)
    assert f"{len(TOLD) + 1} passed, {len(TOLD)} errors" in done.stdout, done.stdout
    for name, told in TOLD.items():
        section = done.stdout.split(f"ERROR at teardown of {name} ")[1].split("\n_")[0]
        assert "The test left behind:" in section
        assert told in section
    line = 1 + next(n for n, text in enumerate(source.splitlines()) if "# started here" in text)
    assert f"test_inner.py:{line}" in done.stdout
