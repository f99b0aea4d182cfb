"""The process that serves TensorBoard: it follows what it is told to show, and never stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from mosaic.analytics.event_files import EventWriter
from mosaic.client.board import LinkFolder, Status, Wish, command, remove_abandoned, sources_of

PATIENCE = 90.0
PARENT = """
import subprocess, sys
from mosaic.client.board import Wish, command
child = subprocess.Popen(command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdin.write(Wish({"one": sys.argv[1]}).line())
child.stdin.flush()
for line in child.stdout:
    print(child.pid, line.decode().strip(), flush=True)
"""


@pytest.fixture(autouse=True)
def own_temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of links lie here, for this process and for all that it starts."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def written(folder: Path, tag: str = "charts/episodic_return") -> Path:
    writer = EventWriter(folder)
    for step in range(5):
        writer.add_scalar(tag, float(step), step)
    writer.close()
    return folder


class Server:
    """The process, told and heard."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.status = Status()

    def ask(self, runs: dict[str, Path], held: bool = True) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(Wish({name: str(path) for name, path in runs.items()}, held).line())
        self.process.stdin.flush()

    def until(self, *listed: str) -> Status:
        assert self.process.stdout is not None
        deadline = time.monotonic() + PATIENCE
        while not (self.status.ready and self.status.listed == listed):
            line = self.process.stdout.readline()
            assert line and time.monotonic() < deadline, self.status
            self.status = Status.read(line)
            assert not self.status.error, self.status.error
        return self.status


@contextmanager
def server(idle_seconds: float = 0) -> Iterator[Server]:
    pipe = subprocess.PIPE
    with subprocess.Popen(command(idle_seconds=idle_seconds), stdin=pipe, stdout=pipe) as process:
        yield Server(process)


def page(address: str) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(address, timeout=PATIENCE) as answer:
        return answer.read()


def test_one_server_follows_what_is_selected_and_leaves_nothing(tmp_path: Path, own_temp: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    written(one / "runs" / "a")
    with server() as board:
        board.ask({"one": one})
        first = board.until("one")
        written(two / "runs" / "b")
        written(two / "tensorboard_eval", "eval/episodic_return")
        board.ask({"two": two})
        second = board.until("two", "two-eval")
        assert second.address == first.address
        assert b"eval/episodic_return" in page(f"{second.address}data/plugin/scalars/tags")
        # A run that comes back is as complete as before, and what it gets meanwhile appears by itself.
        board.ask({"one": one})
        board.until("one")
        written(one / "runs" / "later")
        board.until("one", "one-later")
        assert len(list(own_temp.iterdir())) == 1
    assert board.process.returncode == 0
    assert not list(own_temp.iterdir())
    assert (two / "tensorboard_eval").is_dir()


def test_it_goes_with_a_parent_that_was_killed(tmp_path: Path, own_temp: Path) -> None:
    written(tmp_path / "1" / "runs" / "a")
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path / "1")], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline().split()[0])
    # The server may have a process of its own, which reads the event files.
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    _, alive = psutil.wait_procs(family, timeout=PATIENCE)
    assert not alive
    assert not list(own_temp.iterdir())


def test_it_ends_when_nobody_looks_any_more(tmp_path: Path) -> None:
    written(tmp_path / "1" / "runs" / "a")
    with server(idle_seconds=1.0) as board:
        board.ask({"one": tmp_path / "1"})
        board.until("one")
        time.sleep(1.5)
        assert board.process.poll() is None, "the window still holds it"
        board.ask({"one": tmp_path / "1"}, held=False)
        for _ in range(8):
            time.sleep(0.3)
            page(board.status.address)
        assert board.process.poll() is None, "somebody looks at it in the browser"
        assert board.process.wait(PATIENCE) == 0
        with pytest.raises(urllib.error.URLError):
            page(board.status.address)


def test_links_of_a_process_that_was_killed_are_removed_by_the_next(tmp_path: Path, own_temp: Path) -> None:
    folder = written(tmp_path / "run")
    links = LinkFolder()
    links.show({"mine": folder})
    abandoned = own_temp / "mosaic-tensorboard-999999999-1-x"
    abandoned.mkdir()
    (abandoned / "link").symlink_to(folder)
    remove_abandoned()
    assert not abandoned.exists() and list(links.path.iterdir())
    assert list(folder.iterdir()), "what a link leads to stays"
    links.show({"other": folder})
    assert [link.name for link in links.path.iterdir()] == ["other"]
    links.remove()
    assert not links.path.exists() and list(folder.iterdir())


def test_sources_have_names_that_stay(tmp_path: Path) -> None:
    assert sources_of("x", tmp_path / "gone") == {}
    for name in ("runs/a", "runs/b/a", "tensorboard_eval", "wandb/files"):
        written(tmp_path / name)
    found = {name: path.relative_to(tmp_path).as_posix() for name, path in sources_of("x", tmp_path).items()}
    assert found == {"x": "runs/a", "x-a": "runs/b/a", "x-eval": "tensorboard_eval"}


def test_a_missing_package_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "tensorboard.py").write_text("raise ModuleNotFoundError('no', name='tensorboard')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command(), stdin=subprocess.DEVNULL, capture_output=True, env=environment)
    error = Status.read(done.stdout).error
    assert done.returncode == 1
    assert error.startswith("TensorBoard needs tensorboard, which is not installed: run")
    assert "something else" in Status.read(b"Traceback\n").error
