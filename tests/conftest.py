"""Fixtures for every test: a var folder of its own, the command line, a client, and the leak guard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import settings

from mosaic.client import Client
from mosaic.client.daemon import stop_daemon
from mosaic.contract.paths import VAR_VARIABLE, VarPaths
from mosaic.fastlane.layout import FOLDER_VARIABLE
from support.leaks import Footprint, end_and_describe_leaks, remember_starters

# How long an example takes says nothing about the code on a shared machine.
settings.register_profile("mosaic", deadline=None)
settings.load_profile("mosaic")

remember_starters()

_LONGEST_ID = 100

# The size that readline leaves for child processes is no terminal's: what is printed to a pipe is not cut.
for size in ("COLUMNS", "LINES"):
    os.environ.pop(size, None)

# A shell that starts the tests in the background has them ignore Ctrl-C, and so all that they start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """A short name for a test whose parameter would fill the screen: broken files, paths without end."""
    if isinstance(val, str | bytes) and len(ascii(val)) > _LONGEST_ID:
        return f"{argname}-of-{len(val)}"
    return None


class RunMosaic(Protocol):
    """Run `mosaic …` to its end in the test's var folder."""

    def __call__(
        self,
        *args: str,
        check: bool = True,
        env: Mapping[str, str] | None = None,
        input: str | None = None,
        timeout: float = 120,
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture(autouse=True)
def leak_marks(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[str]]:
    """Fails a test that leaves something behind; gives the marks by which its processes are known."""
    mark = f"test-{uuid.uuid4().hex}"
    # Inherited by all that the test starts, also by what is no longer a child of ours.
    monkeypatch.setenv("MOSAIC_TEST_MARK", mark)
    # Tests beside this one have segments of live frames too.
    segments = tmp_path_factory.mktemp("segments")
    monkeypatch.setenv(FOLDER_VARIABLE, str(segments))
    marks = [mark]
    before = Footprint.take()
    yield marks
    leaks = end_and_describe_leaks(before, marks)
    leaks += [f"live frames {path.name}" for path in segments.iterdir()]
    if leaks:
        pytest.fail("The test left behind:\n  " + "\n  ".join(leaks), pytrace=False)


@pytest.fixture
def var(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leak_marks: list[str]) -> Iterator[Path]:
    """A var folder of the test's own. Its daemon is stopped at the end; a run that still lives is a leak."""
    folder = tmp_path / "var"
    folder.mkdir()
    monkeypatch.setenv(VAR_VARIABLE, str(folder))
    leak_marks.append(str(folder))
    yield folder
    stop_daemon(VarPaths(folder))


@pytest.fixture
def client(var: Path) -> Iterator[Client]:
    """A client of the test's own daemon, which it starts."""
    with Client.connect(var) as connected:
        yield connected


@pytest.fixture
def run_mosaic(var: Path) -> RunMosaic:
    """The command line, run as a user would; with `check` a non-zero exit fails the test."""

    def run(
        *args: str,
        check: bool = True,
        env: Mapping[str, str] | None = None,
        input: str | None = None,
        timeout: float = 120,
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "mosaic", *args],
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL if input is None else None,
            input=input,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if check and done.returncode != 0:
            pytest.fail(f"mosaic {' '.join(args)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    return run
