"""The daemon as a process: one per var folder, its port, its version, its end."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from mosaic.client import Client
from mosaic.client.daemon import ensure_daemon, find_daemon, start_daemon, stop_daemon
from mosaic.contract.connection import DaemonAddress
from mosaic.contract.errors import StorageError, UserError
from mosaic.contract.paths import VarPaths
from support.runs import end, long_config, wait_for_status


def _run_daemon(var: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mosaic.trainer", "--var", str(var), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_clients_that_start_at_once_share_one_daemon(var: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        addresses = set(pool.map(lambda _: ensure_daemon(VarPaths(var)), range(4)))
    assert len(addresses) == 1


def test_a_second_daemon_of_the_folder_leaves_quietly(client: Client) -> None:
    done = _run_daemon(client.paths.root)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


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


def test_a_database_that_is_none_is_named(var: Path) -> None:
    paths = VarPaths(var)
    paths.make()
    paths.database.write_text("this is not SQLite, whatever its name says " * 30)
    with pytest.raises(Exception, match=r"The run database .*trainer.sqlite cannot be opened"):
        start_daemon(paths)
