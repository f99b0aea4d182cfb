"""Calls to the daemon that no client of ours makes: each is refused with the right code, never INTERNAL."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from hostile_cases.ground import Bad, Check, Ground, expect, wire
from mosaic.client import Client, train_config
from mosaic.contract.connection import WORKER_KEY
from mosaic.contract.proto import trainer_pb2 as pb

Codes = tuple[grpc.StatusCode, ...]
INVALID, MISSING, NO = (
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.PERMISSION_DENIED,
)
STRANGER, LARGE, STATE = (
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.FAILED_PRECONDITION,
)
SERVICE = pb.DESCRIPTOR.services_by_name["TrainerService"]
SECONDS = 120.0


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


def base() -> dict[str, Any]:
    return train_config("ppo", "CartPole-v1", total_timesteps=100_000)


def _with(path: str, value: Any) -> Callable[[], str]:
    """The text of a right config with one value changed."""

    def made() -> str:
        config = base()
        place: Any = config
        *before, last = path.split(".")
        for part in before:
            place = place.setdefault(part, {})
        place[last] = value
        return json.dumps(config)

    return made


CONFIGS: dict[str, Callable[[], str]] = {
    "empty": lambda: "",
    "not JSON": lambda: "{",
    "a list": lambda: "[]",
    "null": lambda: "null",
    "a number": lambda: "1",
    "nested 900 deep": lambda: deep(900),
    "nested 100,000 deep": lambda: deep(100_000),
    "an extra nested 900 deep": _with("metadata.worker.config.extras.notes", json.loads(deep(900))),
    "ui nested 900 deep": _with("metadata.ui.x", json.loads(deep(900))),
    "half a character": _with("run_name", "\ud800"),
    "half a character in an extra": _with("metadata.worker.config.extras.notes", "a\udc9b"),
    "half a character in a tag": _with("tags", ["\udfff"]),
    "a name of 10,000 letters": _with("run_name", "x" * 10_000),
    "no name": _with("run_name", ""),
    "a name that is a number": _with("run_name", 5),
    "2,000 tags": _with("tags", [f"t{number}" for number in range(2000)]),
    "a tag of 100,000 letters": _with("tags", ["x" * 100_000]),
    "a tag that is a list": _with("tags", [[]]),
    "notes of 2 MB": _with("metadata.worker.config.extras.notes", "x" * 2_000_000),
    "ui of 2 MB": _with("metadata.ui.x", "x" * 2_000_000),
    "30 MB": _with("metadata.ui.x", "x" * 30_000_000),
    "an unknown key": _with("nope", 1),
    "an unknown key inside": _with("resources.nope", 1),
    "no worker": _with("metadata.worker", {}),
    "an unknown worker": _with("metadata.worker.type", "nope"),
    "a worker that is a path": _with("metadata.worker.type", "../../x"),
    "0 CPUs": _with("resources.cpus", 0),
    "-1 CPUs": _with("resources.cpus", -1),
    "2**70 CPUs": _with("resources.cpus", 2**70),
    "NaN CPUs": _with("resources.cpus", float("nan")),
    "CPUs in words": _with("resources.cpus", "many"),
    "more memory than there is": _with("resources.memory_mb", 10**12),
    "2**70 MB": _with("resources.memory_mb", 2**70),
    "-1 GPUs": _with("resources.gpus", -1),
    "2**70 GPUs that it must have": _with("resources.gpus", {"requested": 2**70, "mandatory": True}),
    "NaN minutes": _with("schedule.max_wallclock_minutes", float("nan")),
    "0 minutes": _with("schedule.max_wallclock_minutes", 0),
    "-1 restarts": _with("schedule.max_restarts", -1),
    "2**70 restarts": _with("schedule.max_restarts", 2**70),
    "a priority of 5,000": _with("schedule.priority", 5000),
    "a variable with =": _with("environment", {"A=B": "x"}),
    "a variable with NUL": _with("environment", {"A": "x\0y"}),
    "a variable that is a number": _with("environment", {"A": 5}),
    "a seed of 2**64": _with("metadata.worker.config.seed", 2**64),
    "a seed of -1": _with("metadata.worker.config.seed", -1),
    "0 steps": _with("metadata.worker.config.total_timesteps", 0),
    "steps in words": _with("metadata.worker.config.total_timesteps", "many"),
    "an environment that is a list": _with("metadata.worker.config.env_id", []),
    "an environment with NUL": _with("metadata.worker.config.env_id", "a\0b"),
    "an algorithm with NUL": _with("metadata.worker.config.algo", "/nowhere/a\0b.py"),
    "a policy with NUL": _with(
        "metadata.worker.config.extras", {"mode": "policy_eval", "policy_path": "/a\0b"}
    ),
    "an unknown mode": _with("metadata.worker.config.extras", {"mode": "fly"}),
    "an infinite extra": _with("metadata.worker.config.extras", {"notes": float("inf")}),
    "a parameter that is not there": _with("metadata.worker.config.extras", {"algo_params": {"nope": 1}}),
    "a parameter of the wrong kind": _with(
        "metadata.worker.config.extras", {"algo_params": {"learning_rate": []}}
    ),
    "parameters that are a list": _with("metadata.worker.config.extras", {"algo_params": [1]}),
}


def _calls(run: str, ended: str) -> dict[str, tuple[str, Any, Codes]]:
    huge = "A" * 1_000_000
    wrong: Codes = (INVALID, MISSING)
    found: dict[str, tuple[str, Any, Codes]] = {}
    for method in ("GetRun", "CancelRun", "PauseRun", "ResumeRun", "DeleteRun", "ReorderRun", "LabelRun"):
        request = getattr(pb, f"{method}Request")
        for name, run_id in {"1 MB": huge, "empty": "", "%": "%", "a path": "../../x", "NUL": "a\0b"}.items():
            found[f"{method} of the id {name}"] = (method, request(run_id=run_id), wrong)
    for method in ("StreamMetrics", "StreamLogs", "StreamRunSteps", "StreamRunEpisodes"):
        request = getattr(
            pb, "StreamPublishedRequest" if method.startswith("StreamRun") else f"{method}Request"
        )
        for name, run_id in {"1 MB": huge, "empty": "", "%": "%"}.items():
            found[f"{method} of the id {name}"] = (method, request(run_id=run_id), wrong)
    found |= {
        "StreamLogs from -1": (
            "StreamLogs",
            pb.StreamLogsRequest(run_id=ended, stream="stdout", offset=-1),
            (INVALID,),
        ),
        "StreamLogs from -2**63": (
            "StreamLogs",
            pb.StreamLogsRequest(run_id=ended, stream="events", offset=-(2**63)),
            (INVALID,),
        ),
        "StreamLogs of ../secrets": (
            "StreamLogs",
            pb.StreamLogsRequest(run_id=ended, stream="../secrets"),
            (INVALID,),
        ),
        "StreamRunSteps since -1": (
            "StreamRunSteps",
            pb.StreamPublishedRequest(run_id=run, since_seq=-1),
            (INVALID,),
        ),
        "StreamRunEpisodes since -2**63": (
            "StreamRunEpisodes",
            pb.StreamPublishedRequest(run_id=run, since_seq=-(2**63)),
            (INVALID,),
        ),
        "StreamMetrics with a cursor of noise": (
            "StreamMetrics",
            pb.StreamMetricsRequest(run_id=ended, cursor="x"),
            (INVALID,),
        ),
        "StreamMetrics with a deep cursor": (
            "StreamMetrics",
            pb.StreamMetricsRequest(run_id=ended, cursor=deep(5000)),
            (INVALID,),
        ),
        "StreamMetrics with a negative cursor": (
            "StreamMetrics",
            pb.StreamMetricsRequest(run_id=ended, cursor='{"a":[-1,0]}'),
            (INVALID,),
        ),
        "ListRuns with the state 'flying'": (
            "ListRuns",
            pb.ListRunsRequest(statuses=["flying"]),
            (INVALID, grpc.StatusCode.OK),
        ),
        "ListRuns with limit -1": ("ListRuns", pb.ListRunsRequest(limit=-1), (INVALID, grpc.StatusCode.OK)),
        "ListRuns with 40,000 states": (
            "ListRuns",
            pb.ListRunsRequest(statuses=["INIT"] * 40_000),
            (INVALID, grpc.StatusCode.OK),
        ),
        "ListRuns with 2,000 tags": (
            "ListRuns",
            pb.ListRunsRequest(tags=["x"] * 2000),
            (INVALID, grpc.StatusCode.OK),
        ),
        "ListRuns with 40,000 tags": (
            "ListRuns",
            pb.ListRunsRequest(tags=["x"] * 40_000),
            (INVALID, grpc.StatusCode.OK),
        ),
        "LabelRun with an empty name": (
            "LabelRun",
            pb.LabelRunRequest(run_id=ended, run_name=" "),
            (INVALID,),
        ),
        "LabelRun with a name of 10,000 letters": (
            "LabelRun",
            pb.LabelRunRequest(run_id=ended, run_name="x" * 10_000),
            (INVALID,),
        ),
        "LabelRun with notes of 2 MB": (
            "LabelRun",
            pb.LabelRunRequest(run_id=ended, notes="x" * 2_000_000),
            (INVALID,),
        ),
        "LabelRun with 2,000 tags": (
            "LabelRun",
            pb.LabelRunRequest(run_id=ended, tags=pb.TagList(tags=[f"t{n}" for n in range(2000)])),
            (INVALID,),
        ),
        "LabelRun with a tag of 100,000 letters": (
            "LabelRun",
            pb.LabelRunRequest(run_id=ended, tags=pb.TagList(tags=["x" * 100_000])),
            (INVALID,),
        ),
        "ReorderRun to 5,000": (
            "ReorderRun",
            pb.ReorderRunRequest(run_id=ended, priority=5000),
            (INVALID, STATE),
        ),
        "ReorderRun before nothing": (
            "ReorderRun",
            pb.ReorderRunRequest(run_id=ended, before_run_id="nope"),
            (INVALID, MISSING, STATE),
        ),
        "PauseRun of an ended run": ("PauseRun", pb.PauseRunRequest(run_id=ended), (STATE,)),
        "CancelRun of an ended run": ("CancelRun", pb.CancelRunRequest(run_id=ended), (STATE,)),
        "DeleteRun of a live run": ("DeleteRun", pb.DeleteRunRequest(run_id=run), (STATE,)),
        "WatchRuns since 2**63 - 1": (
            "WatchRuns",
            pb.WatchRunsRequest(since_seq=2**63 - 1),
            (INVALID,),
        ),
        "SubmitRun without a request id": ("SubmitRun", pb.SubmitRunRequest(config_json="{}"), (INVALID,)),
        "RegisterWorker with deep details": (
            "RegisterWorker",
            pb.RegisterWorkerRequest(run_id=run, details_json=deep(5000)),
            (INVALID, NO),
        ),
    }
    return found


def checks(ground: Ground) -> Iterator[Check]:
    client = ground.client()
    (ground.user / "quick.py").write_text("print('done')\n")
    (ground.user / "long.py").write_text("import time\nprint('on', flush=True)\ntime.sleep(600)\n")
    ended = str(ground.finish("quick.py", "CartPole-v1")["run_id"])
    run = ground.start("long.py", "CartPole-v1")
    ground.until(run, lambda one: one["status"] == "EXEC")
    for number, (name, made) in enumerate(CONFIGS.items()):
        yield Check(f"SubmitRun: {name}", lambda made=made, number=number: _submit(client, made(), number))
    for name, (method, message, codes) in _calls(run, ended).items():
        yield Check(
            name, lambda method=method, message=message, codes=codes: _call(client, method, message, codes)
        )
    for method in SERVICE.methods:
        yield Check(
            f"{method.name} without the token",
            lambda method=method: _raw(client, method, b"", (STRANGER,), []),
        )
        wrong = [("authorization", "Bearer 00")]
        yield Check(
            f"{method.name} with a wrong token",
            lambda method=method, wrong=wrong: _raw(client, method, b"", (STRANGER,), wrong),
        )
        if not method.client_streaming:
            yield Check(
                f"{method.name} with noise for a message",
                lambda method=method: _raw(client, method, b"\xff\xff\x07", (INVALID,)),
            )
    for method in ("Heartbeat", "ControlStream", "PublishRunSteps", "PublishRunEpisodes"):
        for name, credential in {"none": "", "a wrong one": "00", "the daemon's token": "token"}.items():
            yield Check(
                f"{method} with the credential {name}",
                lambda method=method, credential=credential: _as_worker(client, method, run, credential),
            )
    yield Check("nothing was taken in, the live run lives", lambda: _still(ground, client, run, ended))


def _submit(client: Client, text: str, number: int) -> None:
    request = pb.SubmitRunRequest(config_json=text, request_id=f"hostile-{number}")
    _call(client, "SubmitRun", request, (INVALID, LARGE, MISSING))


def _call(client: Client, method: str, request: Any, codes: Codes, worker: str = "") -> None:
    with wire(client) as (stub, metadata):
        call = getattr(stub, method)
        sent = iter([request]) if method.startswith("Publish") else request
        seconds = 1.0 if method == "WatchRuns" else SECONDS
        given = (*metadata, (WORKER_KEY, worker)) if worker else metadata
        try:
            answer = call(sent, timeout=seconds, metadata=given)
            if method.startswith(("Stream", "Watch", "Control")):
                next(iter(answer), None)
            code = grpc.StatusCode.OK
            said = ""
        except grpc.RpcError as error:
            code, said = error.code(), str(error.details())
        except ValueError as error:
            # A message that no client can write cannot be sent either.
            raise Bad(f"the message was not sent: {error}") from error
    expect(code in codes, f"{code.name}: {said[:300]!r}")
    expect(len(said) < 3000, f"a sentence of {len(said)} letters")


def _raw(client: Client, method: Any, data: bytes, codes: Codes, metadata: Any = None) -> None:
    from mosaic.client.daemon import find_daemon
    from mosaic.contract.channel import open_channel

    address = find_daemon(client.paths)
    if address is None:
        raise Bad("the daemon is not found")
    path = f"/{SERVICE.full_name}/{method.name}"
    given = address.metadata() if metadata is None else metadata
    with open_channel(address.address) as channel:
        try:
            if method.client_streaming:
                channel.stream_unary(path)(iter([data]), timeout=SECONDS, metadata=given)
            elif method.server_streaming:
                next(channel.unary_stream(path)(data, timeout=SECONDS, metadata=given))
            else:
                channel.unary_unary(path)(data, timeout=SECONDS, metadata=given)
        except grpc.RpcError as error:
            expect(error.code() in codes, f"{error.code().name}: {error.details()!r:.300}")
            return
    raise Bad("it was answered")


def _as_worker(client: Client, method: str, run: str, credential: str) -> None:
    names = {"Heartbeat": "HeartbeatRequest", "ControlStream": "ControlStreamRequest"}
    request = getattr(pb, names.get(method, "PublishRequest"))(run_id=run)
    with wire(client) as (_, metadata):
        given = dict(metadata)["authorization"] if credential == "token" else credential
    _call(client, method, request, (NO,), given)


def _still(ground: Ground, client: Client, run: str, ended: str) -> None:
    listed = {one["run_id"]: one["status"] for one in ground.json("runs", "--all")}
    expect(listed == {run: "EXEC", ended: "TERM"}, f"{listed}")
    log = client.paths.daemon_log.read_text(errors="replace")
    expect("Traceback" not in log, log[log.find("Traceback") :][:600])
