"""What strange input has found, each as the smallest example: it broke something once."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from cleanrl_worker.config.checkpoint_files import find_origin
from cleanrl_worker.config.worker_config import load_worker_config, parse_worker_config
from cleanrl_worker.evaluation.models import open_model
from cleanrl_worker.kit.state import decode, encode
from cleanrl_worker.supervisor.offers import CATALOG
from mosaic.analytics.eval_summary import read_eval_summary
from mosaic.client import Client
from mosaic.client.daemon import find_daemon
from mosaic.contract.channel import open_channel
from mosaic.contract.connection import DaemonAddress, LockHolder
from mosaic.contract.errors import MosaicError, StorageError, UserError
from mosaic.contract.events import LifecycleEvent, LifecycleReader
from mosaic.contract.outside import MOST_DEPTH, parse_json, read_json
from mosaic.contract.phases import read_phase
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.proto import trainer_pb2_grpc as pb_grpc
from mosaic.contract.run_config import validate_train_run_config
from mosaic.contract.secrets import set_secrets_apart
from support.policies import save_pendulum
from support.runs import end, long_config, wait_for_status

DEEP = "[" * 900 + "]" * 900
CONFIG = {"run_id": "x", "algo": "ppo", "env_id": "CartPole-v1", "total_timesteps": 1000}
RUN_CONFIG = {"run_name": "x", "metadata": {"worker": {"type": "cleanrl"}}}


def event(**changes: Any) -> bytes:
    fields = {"event": "heartbeat", "run_id": "x", "seq": 1, "ts": 1.0, "payload": {}}
    return json.dumps({**fields, **changes}).encode()


@pytest.mark.parametrize(
    "text", [DEEP, "[" * 100_000, '"\\ud800"', '{"a\\udfff": 1}', '"\udc9b"', "{", b"\xff"]
)
def test_json_that_nobody_could_store_again_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        parse_json(text)


def test_json_of_any_usual_kind_is_read() -> None:
    for value in (
        {"a": [1, 2.5, None, "é 👍"]},
        "\U0001f44d",
        json.loads("[" * MOST_DEPTH + "]" * MOST_DEPTH),
    ):
        assert parse_json(json.dumps(value)) == value
        assert parse_json(json.dumps(value, ensure_ascii=False).encode()) == value


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    for place in (tmp_path / "pipe.json", Path("/dev/zero")):
        with pytest.raises(ValueError, match="it is not a file"):
            read_json(place)
        with pytest.raises(UserError, match="is not JSON: it is not a file"):
            load_worker_config(place)


@pytest.mark.parametrize("named", ["é" * 300, "/" + "a" * 300, "/a" * 3000, "~no-such-user/x"])
def test_a_path_that_nothing_can_have_is_refused_wherever_it_is_named(tmp_path: Path, named: str) -> None:
    extras = [
        *({"mode": "resume_training", name: named} for name in ("checkpoint_path", "policy_path")),
        *({"mode": mode, "policy_path": named} for mode in ("policy_eval", "interactive")),
    ]
    asked = [{**CONFIG, "extras": one} for one in extras]
    asked += [{"run_id": "x", "extras": one} for one in extras]
    asked += [{**CONFIG, "algo": f"{named}{suffix}"} for suffix in (".py", ".sh")]
    for config in asked:
        with pytest.raises(UserError, match=r"There can be no file '.{5,90}' \(.*\): correct the path\.$"):
            CATALOG.check(parse_worker_config(config, tmp_path).as_json(), None, tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        DEEP.encode(),
        event(seq=float("inf")),
        event(ts=10**400),
        event(payload=json.loads(DEEP)),
        event(run_id="\ud800"),
    ],
)
def test_a_line_that_is_no_event_is_passed_over(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "events.jsonl").write_bytes(line + b"\n" + event(seq=2) + b"\n")
    assert [one.seq for one in LifecycleReader(tmp_path / "events.jsonl").poll()] == [2]


@pytest.mark.parametrize(
    "payload",
    [
        {
            "step": "many",
            "progress": [],
            "phase": 5,
            "time_shares": {"env": "x"},
            "script_phase": {"text": "x"},
        },
        {"training_pid": {}, "exit_code": 2**40, "cause": [], "headline": 5},
        {"mean_return": float("nan"), "curriculum": {"stage": "x"}, "evaluation": [], "sps": True},
    ],
)
def test_what_is_told_of_a_run_has_its_kind_or_is_left_out(payload: dict[str, Any]) -> None:
    read = LifecycleEvent.from_line(event(payload={**payload, "own": "stays"}))
    assert read is not None
    kept = {"headline": {}} if "headline" in payload else {}
    assert read.payload == {**kept, "own": "stays"}


@pytest.mark.parametrize("text", [DEEP, "[" * 100_000])
def test_a_daemon_file_and_a_lock_without_end_name_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / "daemon.json").write_text(text)
    assert DaemonAddress.read(tmp_path / "daemon.json") is None
    assert LockHolder.read(tmp_path / "daemon.json") is None


def test_a_config_without_end_is_refused_before_its_secrets_are_looked_for() -> None:
    worker = {"type": "cleanrl", "config": {"extras": {"x": json.loads(DEEP)}}}
    with pytest.raises(UserError, match="nested too deep"):
        set_secrets_apart({**RUN_CONFIG, "metadata": {"worker": worker}})


def test_a_phase_without_end_is_none(tmp_path: Path) -> None:
    (tmp_path / "phases.jsonl").write_text(f'{DEEP}\n{{"phase": Infinity, "text": "x"}}\n')
    assert read_phase(tmp_path) is None


def test_a_summary_whose_numbers_are_texts_is_refused(tmp_path: Path) -> None:
    scores = {"interval": [0, 1], **dict.fromkeys(("batch", "episodes", "mean", "median", "min", "max"), 1)}
    scores |= dict.fromkeys(("std", "iqm", "discounted_mean", "mean_length", "steps", "cut_off"), 1)
    summary = {
        "format": 1,
        "policy": {},
        "target_episodes": 3,
        "overall": {**scores, "duration_seconds": "x"},
    }
    (tmp_path / "eval_summary.json").write_text(json.dumps({**summary, "batches": []}))
    with pytest.raises(StorageError, match="is not the summary of an evaluation"):
        read_eval_summary(tmp_path)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"run_name": "\ud800"}, "not valid Unicode"),
        ({"metadata": {"worker": {"type": "cleanrl", "config": {"notes": "a\udc9b"}}}}, "not valid Unicode"),
        ({"metadata": {"worker": {"type": "cleanrl"}, "ui": {"x": json.loads(DEEP)}}}, "nested too deep"),
        ({"environment": {"A": "x\0y"}}, "NUL character"),
    ],
)
def test_a_run_config_that_cannot_be_stored_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        validate_train_run_config({**RUN_CONFIG, **changes})


@pytest.mark.parametrize(
    "extras",
    [{"algo_params": [1]}, {"env_kwargs": "{}"}, {"requirements": "x"}, {"notes": {}}, {"algo_params": 5}],
)
def test_an_extra_of_another_kind_is_named(extras: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"'extras.{next(iter(extras))}' is .*, but it must be"):
        parse_worker_config({**CONFIG, "extras": extras})


def test_a_pipe_in_place_of_a_script_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    for config in (
        {**CONFIG, "algo": str(tmp_path / "pipe.py")},
        {"run_id": "x", "algo": str(tmp_path / "pipe.py")},
    ):
        with pytest.raises(MosaicError):
            CATALOG.check(parse_worker_config({**config, "env_id": "x"}, tmp_path).as_json(), None, None)


def test_a_checkpoint_without_parts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "step-000000000400.npz"
    for shape in (b"null", b"[]", DEEP.encode()):
        np.savez(path, __shape__=np.frombuffer(shape, dtype=np.uint8))
        with pytest.raises(StorageError, match="cannot be read"):
            decode(path)
    path.write_bytes(encode({"a": np.arange(3)}))
    assert list(decode(path)) == ["a"]


@pytest.mark.parametrize("place", [b"PK\x03\x04", b"PK\x01\x02"], ids=["head", "directory"])
def test_a_model_whose_archive_has_broken_names_is_refused(place: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.cleanrl_model"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("é", b"")
    data = path.read_bytes()
    at = data.index(place) + data[data.index(place) :].index("é".encode())
    path.write_bytes(data[:at] + b"\xff" + data[at + 1 :])
    with pytest.raises(UserError, match="is not a PyTorch file of plain weights"):
        find_origin(path)


def test_a_model_that_is_one_tensor_is_refused(tmp_path: Path) -> None:
    import torch

    for weights in (torch.zeros(3), None, "text"):
        torch.save(weights, tmp_path / "x.cleanrl_model")
        with pytest.raises(UserError, match="matches no known algorithm"):
            open_model(tmp_path / "x.cleanrl_model")


@pytest.mark.parametrize(
    "statistics", [5, {}, {"mean": "{", "var": [1.0] * 3, "clip": 1}, {"mean": 1, "var": 1, "clip": 1}]
)
def test_a_card_with_broken_statistics_is_refused(tmp_path: Path, statistics: Any) -> None:
    path = save_pendulum(tmp_path)
    card = path.with_name("pend.policy.json")
    card.write_text(json.dumps({**json.loads(card.read_text()), "normaliser": statistics}))
    model = open_model(path)
    with model.make_envs(1) as envs, pytest.raises(UserError, match="invalid observation statistics"):
        model.load_policy(envs)


def test_the_daemon_outlives_whatever_stands_in_an_event_file(client: Client) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    pid = client.health().pid
    with client.paths.run(run.run_id).events.open("ab") as events:
        for line in (
            DEEP.encode(),
            event(payload={"step": "x", "phase": {}}),
            event(seq=float("inf")),
            b"\xff\n\n",
        ):
            events.write(line + b"\n")
    # The daemon looks at each heartbeat of the run, and these come with its steps.
    wait_until_grown(client, run.run_id)
    assert client.get(run.run_id).status == "EXEC"
    assert client.health().pid == pid
    end(client, run)
    assert client.get(run.run_id).outcome == "cancelled"
    assert "Traceback" not in client.paths.daemon_log.read_text()


def wait_until_grown(client: Client, run_id: str) -> None:
    """Until the run has told a headline after what was written."""
    for update in client.watch(run_id, client.health().last_seq, headlines=True, timeout=60):
        if getattr(update, "headline", None):
            return


@pytest.mark.parametrize(
    ("method", "data"),
    [
        ("GetRun", b"\xff\xff\x07"),
        ("SubmitRun", b"\x0a\x02\xff\xfe"),
        ("StreamLogs", pb.StreamLogsRequest(run_id="RUN", stream="stdout", offset=-1)),
        ("StreamRunSteps", pb.StreamPublishedRequest(run_id="RUN", since_seq=-(2**63))),
        ("SubmitRun", pb.SubmitRunRequest(config_json=DEEP, request_id="x")),
        ("RegisterWorker", pb.RegisterWorkerRequest(run_id="RUN", details_json="[" * 5000)),
        ("PublishRunSteps", b"\xff\xff\x07"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(client: Client, method: str, data: Any) -> None:
    run = client.submit({**long_config(), "resources": {"cpus": 1}})
    if not isinstance(data, bytes):
        if hasattr(data, "run_id"):
            data.run_id = run.run_id
        data = data.SerializeToString()
    address = find_daemon(client.paths)
    assert address is not None
    described = pb.DESCRIPTOR.services_by_name["TrainerService"].methods_by_name[method]
    assert hasattr(pb_grpc.TrainerServiceServicer, method)
    path = f"/mosaic.trainer.v1.TrainerService/{method}"
    with open_channel(address.address) as channel, pytest.raises(grpc.RpcError) as refused:
        given: dict[str, Any] = {"timeout": 30, "metadata": address.metadata()}
        if described.client_streaming:
            channel.stream_unary(path)(iter([data]), **given)
        elif described.server_streaming:
            next(channel.unary_stream(path)(data, **given))
        else:
            channel.unary_unary(path)(data, **given)
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT, refused.value.details()
    end(client, run)
