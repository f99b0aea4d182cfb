"""The daemon as a process: one per var folder, its port, its version, its end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from mosaic.client import Client
from mosaic.client.daemon import ensure_daemon, find_daemon, start_daemon, stop_daemon
from mosaic.contract.connection import LOCKED_EXIT_CODE, DaemonAddress, LockHolder
from mosaic.contract.errors import StorageError, UnavailableError, UserError
from mosaic.contract.paths import VarPaths
from support.runs import end, long_config, wait_for_status


def _run_daemon(var: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mosaic.trainer", "--var", str(var), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_clients_that_start_at_once_share_one_daemon(var: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        addresses = set(pool.map(lambda _: ensure_daemon(VarPaths(var)), range(4)))
    assert len(addresses) == 1


def test_a_second_daemon_of_the_folder_says_who_has_it(client: Client) -> None:
    health = client.health()
    done = _run_daemon(client.paths.root)
    told = f"The daemon of {client.paths.root} is already running: pid {health.pid} at {health.address}."
    assert (done.returncode, done.stdout, done.stderr) == (LOCKED_EXIT_CODE, "", f"mosaic.trainer: {told}\n")


@pytest.mark.parametrize("what", ["removed", "emptied", "garbled", "of somebody else"])
def test_a_daemon_whose_file_is_lost_is_found_again(client: Client, what: str) -> None:
    health, file = client.health(), client.paths.daemon_file
    address = DaemonAddress.read(file)
    assert address is not None
    match what:
        case "removed":
            file.unlink()
        case "emptied":
            file.write_bytes(b"")
        case "garbled":
            file.write_bytes(file.read_bytes()[:40] + b"\xff\0")
        case _:
            replace(address, folder="1-2").write(file)
    assert find_daemon(client.paths) is None
    assert ensure_daemon(client.paths) == address
    with Client.connect(client.paths.root) as newer:
        assert newer.health().pid == health.pid


def test_a_lost_lock_file_lets_no_second_daemon_in(client: Client) -> None:
    address = DaemonAddress.read(client.paths.daemon_file)
    assert address is not None
    for file in (client.paths.daemon_lock, client.paths.daemon_file):
        file.unlink()
    assert ensure_daemon(client.paths) == address
    assert _run_daemon(client.paths.root).returncode == LOCKED_EXIT_CODE
    holder = LockHolder.living(client.paths.daemon_lock)
    assert holder is not None
    assert (holder.pid, holder.address) == (address.pid, address.address)


@pytest.mark.parametrize("lost", [False, True])
def test_a_stopped_daemon_is_named_with_what_to_do(client: Client, lost: bool) -> None:
    pid = client.health().pid
    os.kill(pid, signal.SIGSTOP)
    try:
        if lost:
            client.paths.daemon_file.unlink()
        for ask in (Client.connect, stop_daemon, find_daemon):
            given: Any = client.paths.root if ask == Client.connect else client.paths
            with pytest.raises(UnavailableError, match=rf"\(pid {pid}\) was stopped .*`kill -CONT {pid}`"):
                ask(given)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert stop_daemon(client.paths)


def test_a_daemon_that_does_not_answer_is_named_with_what_to_do(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mosaic.client.daemon.SILENT_SECONDS", 0.2)
    address = DaemonAddress.read(client.paths.daemon_file)
    assert address is not None
    with socket.create_server(("127.0.0.1", 0)) as silent:
        replace(address, address=f"127.0.0.1:{silent.getsockname()[1]}").write(client.paths.daemon_file)
        with pytest.raises(
            UnavailableError, match=rf"\(pid {address.pid}\) does not answer .*`kill {address.pid}`"
        ):
            ensure_daemon(client.paths)
    address.write(client.paths.daemon_file)


def test_an_address_of_another_daemon_is_not_taken_for_ours(client: Client, tmp_path: Path) -> None:
    other = VarPaths(tmp_path / "other")
    try:
        stranger = ensure_daemon(other)
        address = DaemonAddress.read(client.paths.daemon_file)
        assert address is not None
        replace(stranger, folder=address.folder).write(client.paths.daemon_file)
        assert find_daemon(client.paths) is None
        address.write(client.paths.daemon_file)
    finally:
        stop_daemon(other)


def test_the_standard_health_service_answers_without_a_token(client: Client) -> None:
    address = DaemonAddress.read(client.paths.daemon_file)
    assert address is not None
    with grpc.insecure_channel(address.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=10)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_a_port_in_use_is_named_and_nothing_is_started(var: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"Port {port} is in use"):
            start_daemon(VarPaths(var), port)
    assert find_daemon(VarPaths(var)) is None


@pytest.mark.parametrize("port", ["70000", "-1"])
def test_a_port_that_is_none_is_named_and_nothing_is_made(port: str, tmp_path: Path) -> None:
    done = _run_daemon(tmp_path / "new", "--port", port)
    assert done.returncode == 2
    assert (
        done.stderr
        == f"mosaic.trainer: --port: '{port}' is not a port: give 1 to 65535, or 0 for any that is free.\n"
    )
    assert not (tmp_path / "new").exists()


def test_port_0_is_any_that_is_free(var: Path) -> None:
    assert not start_daemon(VarPaths(var), 0).address.endswith((":0", ":50055"))


def test_a_taken_usual_port_is_avoided(var: Path, tmp_path: Path) -> None:
    first, second = VarPaths(var), VarPaths(tmp_path / "other")
    try:
        addresses = {ensure_daemon(paths).address for paths in (first, second)}
        assert len(addresses) == 2
    finally:
        stop_daemon(second)


def test_a_daemon_of_another_version_is_replaced_and_its_runs_go_on(client: Client) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    old = DaemonAddress.read(client.paths.daemon_file)
    assert old is not None
    replace(old, version="0.0.1").write(client.paths.daemon_file)
    with Client.connect(client.paths.root) as newer:
        assert newer.health().pid != old.pid
        again = newer.get(run.run_id)
        assert (again.status, again.training_pid) == ("EXEC", run.training_pid)
        end(newer, again)


def test_a_daemon_with_nothing_to_do_ends(var: Path) -> None:
    done = _run_daemon(var, "--idle-seconds", "0")
    assert done.returncode == 0
    assert not VarPaths(var).daemon_file.exists()


def test_sigterm_ends_the_daemon_and_no_run(client: Client) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    address = DaemonAddress.read(client.paths.daemon_file)
    assert address is not None
    stop = subprocess.run(["kill", f"-{signal.SIGTERM.value}", str(address.pid)], check=True)
    assert stop.returncode == 0
    assert client.get(run.run_id).training_pid == run.training_pid
    end(client, run)


def test_a_var_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match=r"Not a directory.*set MOSAIC_VAR to another folder"):
        start_daemon(VarPaths(tmp_path / "file" / "var"))


def test_a_database_that_cannot_be_opened_is_named(var: Path) -> None:
    paths = VarPaths(var)
    paths.make()
    paths.database.mkdir()
    with pytest.raises(UserError, match=r"The run database .*trainer.sqlite cannot be opened"):
        start_daemon(paths)


def test_who_waits_for_news_of_runs_sleeps_until_they_come(client: Client) -> None:
    def wait() -> None:
        for _ in client.watch(since_seq=client.health().last_seq):
            pass

    def wakings() -> int:
        lines = Path(f"/proc/self/task/{waiting.native_id}/status").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary"))

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    time.sleep(1)
    before = wakings()
    time.sleep(2)
    assert wakings() - before < 10
    client.close()
    waiting.join(10)
    assert not waiting.is_alive()
