"""Loopback, tokens and secrets."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path

import grpc
import pytest

from mosaic.client import Client
from mosaic.contract.connection import WORKER_KEY, DaemonAddress
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.proto import trainer_pb2_grpc as pb_grpc
from support.runs import end, long_config, script_config, wait_for_status

SECRET = "wandb-secret-0123456789abcdef"


def _code(
    method: str, request: object, address: DaemonAddress, *metadata: tuple[str, str]
) -> grpc.StatusCode:
    with grpc.insecure_channel(address.address) as channel:
        call = getattr(pb_grpc.TrainerServiceStub(channel), method)
        try:
            answer = call(request, timeout=10, metadata=metadata)
            if method.startswith(("Watch", "Stream")):
                next(iter(answer), None)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
    return grpc.StatusCode.OK


def _address(client: Client) -> DaemonAddress:
    address = DaemonAddress.read(client.paths.daemon_file)
    assert address is not None
    return address


@pytest.mark.parametrize(
    ("method", "request_message"),
    [
        ("ListRuns", pb.ListRunsRequest()),
        ("SubmitRun", pb.SubmitRunRequest()),
        ("WatchRuns", pb.WatchRunsRequest()),
        ("Shutdown", pb.ShutdownRequest()),
        ("Heartbeat", pb.HeartbeatRequest()),
    ],
)
def test_a_call_without_the_token_is_refused(client: Client, method: str, request_message: object) -> None:
    address = _address(client)
    wrong = ("authorization", "Bearer 00")
    assert _code(method, request_message, address) == grpc.StatusCode.UNAUTHENTICATED
    assert _code(method, request_message, address, wrong) == grpc.StatusCode.UNAUTHENTICATED


def test_the_address_file_is_its_owners_only_and_on_loopback(client: Client) -> None:
    assert stat.S_IMODE(client.paths.daemon_file.stat().st_mode) == 0o600
    assert _address(client).address.startswith("127.0.0.1:")


def test_a_worker_needs_its_runs_secret_and_later_its_session_token(client: Client) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    address = _address(client)
    token = address.metadata()[0]
    for given in ("", "guess"):
        credential = (WORKER_KEY, given)
        register, beat = pb.RegisterWorkerRequest(run_id=run.run_id), pb.HeartbeatRequest(run_id=run.run_id)
        assert (
            _code("RegisterWorker", register, address, token, credential) == grpc.StatusCode.PERMISSION_DENIED
        )
        assert _code("Heartbeat", beat, address, token, credential) == grpc.StatusCode.PERMISSION_DENIED
    end(client, run)


def test_the_training_process_never_sees_the_runs_secret(client: Client) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    held = json.loads(client.paths.run_secrets(run.run_id).read_text())["run_secret"]
    environment = Path(f"/proc/{run.training_pid}/environ").read_bytes()
    assert held.encode() not in environment
    assert f"CLEANRL_RUN_ID={run.run_id}".encode() in environment
    end(client, run)


def test_secrets_reach_the_worker_and_stay_out_of_every_other_file(client: Client) -> None:
    config = long_config(extras={"wandb_api_key": SECRET, "notes": "kept"})
    run = wait_for_status(client, client.submit(config).run_id, "EXEC")
    assert f"WANDB_API_KEY={SECRET}".encode() in Path(f"/proc/{run.training_pid}/environ").read_bytes()
    waiting = client.paths.run_secrets(run.run_id)
    assert stat.S_IMODE(waiting.stat().st_mode) == 0o600
    holders = _holders(client.paths.root)
    assert holders == [waiting]
    end(client, run)
    assert not waiting.exists()
    assert not _holders(client.paths.root)
    assert "kept" in json.dumps(client.get(run.run_id).config)


def environment_of(pid: int | None) -> dict[str, str]:
    entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return dict(entry.decode().split("=", 1) for entry in entries if entry)


def test_a_run_has_its_callers_variables_and_not_those_of_the_daemon(
    var: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOSAIC_CPUS", "1")
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("HF_HOME", "where-the-daemon-was-started")
    monkeypatch.setenv("OWN_FLAG", "of the daemon")
    with Client.connect(var) as client:
        # Whoever starts the daemon, and whoever asks for a run.
        first = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
        assert environment_of(first.training_pid)["WANDB_MODE"] == "online"
        monkeypatch.delenv("HF_HOME")
        monkeypatch.setenv("WANDB_MODE", "offline")
        monkeypatch.setenv("HF_TOKEN", SECRET)
        monkeypatch.setenv("https_proxy", f"http://me:{SECRET}@proxy:8080")
        config = long_config()
        config["environment"] = {"OWN_FLAG": "mine", "own_token": SECRET}
        config["secrets"] = ["own_token"]
        config["schedule"] = {"max_restarts": 1}
        waiting = client.submit(config)
        # They wait with the run, also over a daemon that is killed and one that is started elsewhere.
        os.kill(client.health().pid, 9)
        for name in ("WANDB_MODE", "HF_TOKEN", "https_proxy"):
            monkeypatch.delenv(name)
        end(client, first)
        run = wait_for_status(client, waiting.run_id, "EXEC")
        wanted = {"WANDB_MODE": "offline", "HF_TOKEN": SECRET, "OWN_FLAG": "mine", "own_token": SECRET}
        wanted["https_proxy"] = f"http://me:{SECRET}@proxy:8080"
        told = environment_of(run.training_pid)
        assert {name: told.get(name) for name in wanted} == wanted
        assert "HF_HOME" not in told
        assert run.config["environment"] == {"OWN_FLAG": "mine", "own_token": "@env:own_token"}
        file = client.paths.run_secrets(run.run_id)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert _holders(var) == [file]
        # A restart after a fault is the same run.
        assert run.training_pid is not None
        os.kill(run.training_pid, 9)
        for _ in client.watch(run.run_id, run.history[-1].seq, timeout=60):
            if client.get(run.run_id).status == "EXEC":
                break
        again = client.get(run.run_id)
        assert again.training_pid != run.training_pid
        assert environment_of(again.training_pid)["HF_TOKEN"] == SECRET
        end(client, again)
        assert not _holders(var)


@pytest.mark.parametrize(("wish", "seen"), [(None, "3"), ("0", "3"), ("", ""), ("-1", "-1")])
def test_reserved_gpus_are_seen_unless_the_caller_wants_none(
    wish: str | None, seen: str, var: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOSAIC_GPUS", "3")
    config = long_config()
    config["resources"]["gpus"] = {"requested": 1, "mandatory": True}
    with Client.connect(var) as client:
        wished = {} if wish is None else {"CUDA_VISIBLE_DEVICES": wish}
        run = wait_for_status(client, client.submit(config, wished).run_id, "EXEC")
        assert (run.gpus, environment_of(run.training_pid)["CUDA_VISIBLE_DEVICES"]) == ([3], seen)
        end(client, run)


def _holders(folder: Path) -> list[Path]:
    """The files with the secret in them."""
    found = []
    for path in folder.rglob("*"):
        # A file may go while it is looked at: a run writes beside this test.
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and os.access(path, os.R_OK) and SECRET.encode() in path.read_bytes():
                found.append(path)
    return found


def test_a_run_config_cannot_leave_its_folder_by_its_name(client: Client) -> None:
    config = script_config("steps.py", run_name="../../etc/passwd")
    run = client.wait(client.submit(config).run_id, timeout=60)
    assert Path(run.run_dir).parent == client.paths.runs
