"""A copy of a var folder is a folder of its own, whatever its files say of the original's daemon and runs."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from mosaic.client import Client, RunRecord
from mosaic.client.daemon import find_daemon, stop_daemon
from mosaic.contract.connection import DaemonAddress, identity_of
from mosaic.contract.events import tail_events
from mosaic.contract.paths import VarPaths
from mosaic.contract.process import ProcessIdentity
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.proto import trainer_pb2_grpc as pb_grpc
from mosaic.fastlane.layout import segment_path
from mosaic.fastlane.segment import create_segment, remove_segment
from mosaic.trainer.storage import remove_database
from support.runs import end, long_config, script_config, wait_for_status

Copy = Callable[[], Client]


@pytest.fixture
def copied(client: Client, tmp_path: Path) -> Iterator[Copy]:
    """Copies the var folder as it is, and gives a client of the copy."""
    clients: list[Client] = []

    def copy() -> Client:
        folder = tmp_path / "copy"
        shutil.copytree(client.paths.root, folder, symlinks=True)
        clients.append(Client.connect(folder))
        return clients[-1]

    yield copy
    for one in clients:
        one.close()
        stop_daemon(one.paths)


def _alive(run: RunRecord) -> bool:
    pids = (run.supervisor_pid, run.training_pid)
    return all(pid is not None and ProcessIdentity.of(pid) is not None for pid in pids)


def test_a_copy_has_a_daemon_of_its_own_and_removes_nothing_of_the_original(
    client: Client, copied: Copy
) -> None:
    run = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    copy = copied()
    assert copy.health().pid != client.health().pid
    assert copy.remove(run.run_id) > 0
    assert copy.runs() == []
    assert client.get(run.run_id).outcome == "completed"
    assert Path(run.run_dir, "analytics.json").exists()
    assert client.paths.run_config(run.run_id).exists()


def test_runs_that_live_and_wait_in_the_original_are_left_to_it(
    client: Client, copied: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = long_config(cpus=client.health().cpus)
    config["schedule"] = {"max_restarts": 3}
    run = wait_for_status(client, client.submit(config).run_id, "EXEC")
    waiting = client.submit(config)
    create_segment(run.run_id, "single")
    copy = copied()
    told = [copy.wait(one.run_id, timeout=60) for one in (run, waiting)]
    assert [(one.status, one.outcome) for one in told] == [("TERM", "cancelled")] * 2
    assert all(f"a copy of {client.paths.root}" in str(one.reason) for one in told)
    assert _alive(client.get(run.run_id))
    assert (client.get(run.run_id).status, client.get(waiting.run_id).status) == ("EXEC", "INIT")
    assert segment_path(run.run_id).exists(), "the live frames are the original's"
    # Asked once more, after a restart, it is still so.
    stop_daemon(copy.paths)
    assert copy.get(run.run_id).outcome == "cancelled"
    assert _alive(client.get(run.run_id))
    remove_segment(run.run_id)
    end(client, waiting, run)


def test_a_copy_without_its_database_leaves_the_runs_to_the_original_too(
    client: Client, tmp_path: Path
) -> None:
    config = long_config(cpus=client.health().cpus)
    config["schedule"] = {"max_restarts": 3}
    run = wait_for_status(client, client.submit(config).run_id, "EXEC")
    waiting = client.submit(config)
    copy = VarPaths(tmp_path / "copy")
    shutil.copytree(client.paths.root, copy.root, symlinks=True)
    # Copied in the midst of a change, it may be anything.
    remove_database(copy.database)
    with Client.connect(copy.root) as other:
        assert [other.wait(one.run_id, timeout=60).outcome for one in (run, waiting)] == ["cancelled"] * 2
    stop_daemon(copy)
    assert _alive(client.get(run.run_id))
    end(client, waiting, run)


def test_a_run_that_ended_before_its_files_were_copied_ended_so_in_the_copy(
    client: Client, tmp_path: Path
) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    shutil.copytree(client.paths.root, tmp_path / "copy")
    end(client, run)
    events = VarPaths(tmp_path / "copy").run(run.run_id).events
    shutil.copyfile(client.paths.run(run.run_id).events, events)
    assert tail_events(events)[-1].event == "run_cancelled"
    with Client.connect(tmp_path / "copy") as copy:
        assert copy.wait(run.run_id, timeout=60).outcome == "cancelled"
    stop_daemon(VarPaths(tmp_path / "copy"))


def test_a_copy_whose_original_is_gone_keeps_its_queue(client: Client, tmp_path: Path) -> None:
    run = wait_for_status(client, client.submit(long_config(cpus=client.health().cpus)).run_id, "EXEC")
    waiting = client.submit(script_config("steps.py"))
    stop_daemon(client.paths)
    moved = VarPaths(tmp_path / "moved")
    shutil.copytree(client.paths.root, moved.root, symlinks=True)
    client.paths.trainer.rename(tmp_path / "aside")
    try:
        with Client.connect(moved.root) as other:
            assert other.wait(waiting.run_id, timeout=60).outcome == "completed"
            assert other.wait(run.run_id, timeout=60).outcome == "cancelled", "it lives where the folder is"
        assert _alive(run)
    finally:
        stop_daemon(moved)
        (tmp_path / "aside").rename(client.paths.trainer)
    end(client, waiting, run)


def test_the_daemon_refuses_who_has_its_token_from_another_folder(client: Client, tmp_path: Path) -> None:
    address = DaemonAddress.read(client.paths.daemon_file)
    assert address is not None
    with grpc.insecure_channel(address.address) as channel:
        stub = pb_grpc.TrainerServiceStub(channel)
        for folder in ("", identity_of(tmp_path)):
            stranger = replace(address, folder=folder).metadata()
            with pytest.raises(grpc.RpcError) as refused:
                stub.ListRuns(pb.ListRunsRequest(), timeout=10, metadata=stranger)
            assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
        stub.ListRuns(pb.ListRunsRequest(), timeout=10, metadata=address.metadata())


def test_the_daemon_of_a_folder_that_was_moved_ends_and_its_runs_are_taken_up_there(
    client: Client, tmp_path: Path
) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    first = client.health().pid
    moved = VarPaths(tmp_path / "moved")
    client.paths.root.rename(moved.root)
    try:
        with Client.connect(moved.root) as other:
            assert other.health().pid != first
            again = other.get(run.run_id)
            assert (again.status, again.supervisor_pid) == ("EXEC", run.supervisor_pid)
            end(other, again)
    finally:
        stop_daemon(moved)
    assert not client.paths.root.exists(), "nothing is made where the folder was"
    client.paths.root.mkdir()


def test_a_copy_in_the_place_of_the_original_does_not_end_the_runs_of_the_original(
    client: Client, tmp_path: Path
) -> None:
    config = long_config()
    config["schedule"] = {"max_restarts": 3}
    run = wait_for_status(client, client.submit(config).run_id, "EXEC")
    original = VarPaths(tmp_path / "original")
    client.paths.root.rename(original.root)
    shutil.copytree(original.root, client.paths.root, symlinks=True)
    # The supervisor knows its folder by the name that the copy has now.
    told = client.wait(run.run_id, timeout=60)
    assert (told.outcome, "continues in another folder" in str(told.reason)) == ("cancelled", True)
    assert _alive(run)
    assert find_daemon(original) is None
    with Client.connect(original.root) as other:
        assert other.get(run.run_id).status == "EXEC"
        end(other, run)
    stop_daemon(original)


@pytest.mark.parametrize("daemon", ["alive", "killed"])
def test_a_copy_by_hard_links_has_files_of_its_own_and_ends_no_run(
    daemon: str, client: Client, tmp_path: Path
) -> None:
    ended = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    if daemon == "killed":
        os.kill(client.health().pid, signal.SIGKILL)
    copy = VarPaths(tmp_path / "links")
    shutil.copytree(client.paths.root, copy.root, copy_function=lambda a, b: Path(b).hardlink_to(a))
    with Client.connect(copy.root) as other:
        assert other.wait(run.run_id, timeout=60).outcome == "cancelled"
        other.remove(ended.run_id)
        assert len(other.runs()) == 1
        assert other.health().pid != client.health().pid
    assert _alive(run)
    for _ in range(2):
        again = client.get(run.run_id)
        assert (again.status, again.supervisor_pid) == ("EXEC", run.supervisor_pid)
        assert client.get(ended.run_id).outcome == "completed"
        # What each has written is its own.
        stop_daemon(client.paths)
        stop_daemon(copy)
    assert client.health().notices == []
    end(client, run)
