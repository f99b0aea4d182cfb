"""A process is known by pid and start time: a reused pid is never taken for ours."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from mosaic.contract.process import ProcessIdentity, boot_id, process_state, tree_below


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def identity_of(process: subprocess.Popen[bytes]) -> ProcessIdentity:
    identity = ProcessIdentity.of(process.pid)
    assert identity is not None
    return identity


def test_a_living_process_is_known_and_can_be_ended(sleeper: subprocess.Popen[bytes]) -> None:
    identity = identity_of(sleeper)
    assert identity.alive()
    assert identity.send(signal.SIGTERM)
    assert sleeper.wait() == -signal.SIGTERM
    assert not identity.alive()
    assert not identity.send(signal.SIGKILL)
    assert identity.open() is None


@pytest.mark.parametrize("shift", [-1, 1])
def test_a_reused_pid_is_never_signalled(shift: int, sleeper: subprocess.Popen[bytes]) -> None:
    earlier = replace(identity_of(sleeper), start=identity_of(sleeper).start + shift)
    assert not earlier.alive()
    assert earlier.open() is None
    assert not earlier.send(signal.SIGKILL)
    assert sleeper.poll() is None


def test_a_zombie_is_gone(sleeper: subprocess.Popen[bytes]) -> None:
    identity = identity_of(sleeper)
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert process_state(sleeper.pid) == "Z"
    assert ProcessIdentity.of(sleeper.pid) is None
    assert not identity.alive()
    assert not identity.send(signal.SIGTERM)


def test_a_pid_that_nobody_has_is_nobody(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.kill()
    sleeper.wait()
    assert ProcessIdentity.of(sleeper.pid) is None
    assert process_state(sleeper.pid) is None


def test_a_pidfd_tells_when_the_process_ends(sleeper: subprocess.Popen[bytes]) -> None:
    handle = identity_of(sleeper).open()
    assert handle is not None
    try:
        sleeper.kill()
        assert os.waitid(os.P_PIDFD, handle, os.WEXITED) is not None
    finally:
        os.close(handle)
    sleeper.returncode = -signal.SIGKILL


def test_a_stopped_process_shows_it(sleeper: subprocess.Popen[bytes]) -> None:
    identity_of(sleeper).send(signal.SIGSTOP)
    os.waitid(os.P_PID, sleeper.pid, os.WSTOPPED | os.WNOWAIT)
    assert process_state(sleeper.pid) == "T"


def test_a_name_with_brackets_and_spaces_changes_nothing() -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "Path('/proc/self/comm').write_text(') Z 1 (x'); print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert identity_of(process).alive()
        assert process.pid in below(os.getpid())
        process.communicate()


def below(pid: int) -> list[int]:
    return [one.pid for one in tree_below(pid)]


def test_a_tree_is_all_below_with_parents_first() -> None:
    code = "sh -c 'sleep 600 & echo $!; wait' & echo $!; wait"
    with subprocess.Popen(["sh", "-c", code], stdout=subprocess.PIPE, start_new_session=True) as top:
        assert top.stdout is not None
        middle, bottom = sorted(int(top.stdout.readline()) for _ in range(2))
        found = below(top.pid)
        assert set(found) == {middle, bottom}
        parents = {pid: set(below(pid)) for pid in found}
        assert all(found.index(child) > found.index(pid) for pid in found for child in parents[pid])
        assert below(bottom if not parents[bottom] else middle) == []
        os.killpg(top.pid, signal.SIGKILL)


def test_the_boot_has_a_name() -> None:
    assert boot_id()
    assert boot_id() == boot_id()
