"""The doors of the daemon: every call of its service, and the event file of a run that it watches."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import grpc
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from rich.console import Console

from fuzz_doors.configs import run_configs
from fuzz_doors.files import event_lines
from fuzz_doors.holder import CREDENTIALS
from fuzz_doors.knocking import Door, Hang, Trespass
from fuzz_doors.shapes import as_text, json_texts, mutated, texts
from mosaic.analytics.store import RunMetrics
from mosaic.cli.commands.show import full_run_json
from mosaic.cli.live.board import Board
from mosaic.cli.live.views import plain_line, render
from mosaic.client import Client, RunRecord, train_config
from mosaic.client.daemon import find_daemon, stop_daemon
from mosaic.contract.channel import open_channel
from mosaic.contract.connection import WORKER_KEY
from mosaic.contract.errors import NotFoundError, UserError
from mosaic.contract.paths import VarPaths
from mosaic.contract.proto import trainer_pb2 as pb

BENCHMARKS = Path(__file__).parents[1]
SERVICE = pb.DESCRIPTOR.services_by_name["TrainerService"]
NOT_FUZZED = frozenset({"Shutdown"})
"""Ends the daemon, as it is told to; it is refused without the token like all others."""
_ANSWER_SECONDS = 15.0
_GLANCE_SECONDS = 0.03
"""A stream that goes on for ever is looked at so long."""
_BAD_CODES = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNAVAILABLE)
_RUN_FIELDS = ("run_id", "before_run_id")
_ENDS_RUNS = ("CancelRun", "DeleteRun", "PauseRun", "ResumeRun")
_BITS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
}
_BITS |= {FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1), FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1)}


class Fault(Exception):
    """The daemon answered as it never should."""


class Town:
    """A daemon with one run that lives and holds the only CPU, one that waits and one that has ended."""

    def __init__(self, root: Path) -> None:
        self.var = root / "var"
        self.var.mkdir(parents=True)
        self._audit, self._before = root / "audit.txt", dict(os.environ)
        self.ids: dict[str, str] = {}

    def __enter__(self) -> Town:
        places = [
            str(BENCHMARKS),
            str(BENCHMARKS / "fuzz_doors" / "audit_site"),
            os.environ.get("PYTHONPATH", ""),
        ]
        os.environ |= {"MOSAIC_CPUS": "1", "PYTHONPATH": os.pathsep.join(places)}
        os.environ |= {"FUZZ_AUDIT": str(self._audit), "FUZZ_VAR": str(self.var)}
        self.client = Client.connect(self.var)
        self.paths = VarPaths(self.var)
        address = find_daemon(self.paths)
        assert address is not None
        self.address, self.channel = address, open_channel(address.address)
        self._log_read = 0
        held = self._submit("fuzz_doors.holder")
        run_dir = self.paths.run(held).run_dir
        _wait(lambda: self.client.get(held).status == "EXEC")
        self.credentials: dict[str, str] = json.loads((run_dir / CREDENTIALS).read_text())
        self.ids["live"] = held
        self.fill()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.channel.close()
        for run in self.client.runs(["INIT", "HSHK", "RDY", "EXEC", "PAUSE"]):
            self.client.cancel(run.run_id)
        self.client.wait(self.ids["live"], timeout=90)
        self.client.close()
        stop_daemon(self.paths)
        for name in ("MOSAIC_CPUS", "PYTHONPATH", "FUZZ_AUDIT", "FUZZ_VAR"):
            if name in self._before:
                os.environ[name] = self._before[name]
            else:
                del os.environ[name]

    def _submit(self, module: str | None = None) -> str:
        config = train_config("ppo", "CartPole-v1", total_timesteps=1000)
        config["metadata"]["worker"]["module"] = module
        return self.client.submit(config).run_id

    def fill(self) -> None:
        """Have a run that waits and one that has ended."""
        for name, wanted in (("waiting", "INIT"), ("ended", "TERM")):
            old = self.ids.get(name, "")
            state = self._state(old)
            if state == wanted:
                continue
            if state == "TERM":
                # Thousands of runs that have ended would only make every call slower.
                self.client.remove(old)
            self.ids[name] = self._submit()
            if wanted == "TERM":
                self.client.cancel(self.ids[name])
        if self._state(self.ids["live"]) not in ("RDY", "EXEC", "PAUSE"):
            raise Fault(f"the run that lives is {self._state(self.ids['live'])}")

    def _state(self, run_id: str) -> str:
        """The state of a run; none of one that there is not, or no longer."""
        try:
            return self.client.get(run_id).status if run_id else ""
        except NotFoundError:
            return ""

    def named(self, text: str, ends_runs: bool) -> str:
        """A run id in place of `<live>`, `<waiting>`, `<ended>` or `<live:9>`, which is cut to 9 letters."""
        if not text.startswith("<") or not text.endswith(">"):
            return text
        name, _, length = text[1:-1].partition(":")
        if name == "live" and ends_runs:
            name = "waiting"
        whole = self.ids.get(name)
        return text if whole is None else whole[: int(length or len(whole))]

    def verify(self) -> None:
        """Nothing was written outside the var folder, and the daemon's log tells of no error of its own."""
        if self._audit.exists() and self._audit.stat().st_size:
            said = self._audit.read_text(errors="replace")
            self._audit.write_text("")
            raise Trespass(said[-500:])
        size = self.paths.daemon_log.stat().st_size
        if size < self._log_read:
            self._log_read = 0
        with self.paths.daemon_log.open("rb") as log:
            log.seek(self._log_read)
            new = log.read()
        self._log_read += len(new)
        if b"Traceback" in new:
            raise Fault(new.decode(errors="replace")[-1500:])


def call_doors(town: Town, user: Path) -> list[Door]:
    """One door for each call, one for calls without the token, one for the event file."""
    methods = [method for method in SERVICE.methods if method.name not in NOT_FUZZED]
    doors = [_call_door(town, method, user) for method in methods]
    return [*doors, _stranger_door(town), _event_door(town)]


def _call_door(town: Town, method: MethodDescriptor, user: Path) -> Door:
    requests = st.lists(
        _messages(method.input_type, user), min_size=1, max_size=3 if method.client_streaming else 1
    )
    credentials = st.sampled_from(["session", "session", "session", "secret", "none", "wrong"])

    def enter(example: tuple[list[tuple[Any, bytes | None]], str]) -> None:
        fields, credential = example
        sent = [
            damage if damage is not None else _built(method, made, town).SerializeToString()
            for made, damage in fields
        ]
        try:
            answers = _call(town, method, sent, town.credentials.get(credential, credential))
            _follow_up(town, method, answers)
        finally:
            town.verify()

    what = "values of any kind in every field, damaged messages, right and wrong credentials"
    return Door(f"call {method.name}", what, st.tuples(requests, credentials), enter, town.var.parent)


def _messages(descriptor: Any, user: Path) -> SearchStrategy[tuple[Any, bytes | None]]:
    """The fields of a message, and for a few of them the bytes that are sent in their place."""
    return st.tuples(_fields(descriptor, user), _mostly(st.none(), st.binary(max_size=40)))


def _mostly(usual: SearchStrategy[Any], other: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """Four times of five the usual one."""
    return st.integers(0, 4).flatmap(lambda number: usual if number else other)


def _fields(descriptor: Any, user: Path) -> SearchStrategy[dict[str, Any]]:
    """Any of the fields; those that name the run nearly always, as without them little is looked at."""
    found = {field.name: _values(field, user) for field in descriptor.fields}
    named = {name: found.pop(name) for name in ("run_id", "config_json", "request_id") if name in found}
    return st.fixed_dictionaries(named, optional=found)


def _values(field: Any, user: Path) -> SearchStrategy[Any]:
    one = _value(field, user)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return st.dictionaries(_utf8(texts), _utf8(texts), max_size=3)
    return st.lists(one, max_size=4) if field.is_repeated else one


def _value(field: Any, user: Path) -> SearchStrategy[Any]:
    if field.message_type is not None:
        return _fields(field.message_type, user)
    if field.cpp_type in _BITS:
        low, high = _BITS[field.cpp_type]
        return st.one_of(
            st.sampled_from([low, high, 0, 1, -1 if low else 2]), st.integers(low, high), st.integers(0, 9)
        )
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return st.booleans()
    if field.cpp_type in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return st.floats()
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return st.sampled_from([value.number for value in field.enum_type.values])
    if field.type == FieldDescriptor.TYPE_BYTES:
        return st.binary(max_size=60)
    return _utf8(_words(field.name, user))


def _words(name: str, user: Path) -> SearchStrategy[str]:
    if name in _RUN_FIELDS:
        named = [
            "<live>",
            "<live>",
            "<waiting>",
            "<ended>",
            "<live:12>",
            "<ended:1>",
            "<waiting:25>",
            "%",
            "_",
            "last",
        ]
        return _mostly(st.sampled_from(named), texts)
    if name == "config_json":
        return st.one_of(mutated(run_configs(user)).map(as_text), json_texts)
    if name == "cursor" or name.endswith("_json"):
        cursors = mutated([{"runs/x/events.out.tfevents.1": [10, 3]}, {"../../../etc/passwd": [0, 0]}]).map(
            as_text
        )
        return st.one_of(cursors, json_texts)
    if name == "stream":
        return st.one_of(st.sampled_from(["stdout", "stderr", "events", "supervisor", "../secrets"]), texts)
    if name in ("statuses", "status"):
        return st.one_of(st.sampled_from(["INIT", "EXEC", "TERM"]), texts)
    return texts


def _utf8(strategy: SearchStrategy[str]) -> SearchStrategy[str]:
    return strategy.map(lambda text: text.encode(errors="replace").decode())


def _built(method: MethodDescriptor, fields: dict[str, Any], town: Town) -> Message:
    ends = method.name in _ENDS_RUNS
    named = {
        name: town.named(value, ends) if name in _RUN_FIELDS else value for name, value in fields.items()
    }
    made: Message = GetMessageClass(method.input_type)(**named)
    return made


def _call(town: Town, method: MethodDescriptor, sent: list[bytes], credential: str) -> list[bytes]:
    path = f"/{SERVICE.full_name}/{method.name}"
    follows = method.server_streaming
    metadata = [*town.address.metadata(), (WORKER_KEY, credential)]
    seconds = _GLANCE_SECONDS if follows else _ANSWER_SECONDS
    try:
        if method.client_streaming:
            return [bytes(town.channel.stream_unary(path)(iter(sent), timeout=seconds, metadata=metadata))]
        if not follows:
            return [bytes(town.channel.unary_unary(path)(sent[0], timeout=seconds, metadata=metadata))]
        stream: Any = town.channel.unary_stream(path)(sent[0], timeout=seconds, metadata=metadata)
        found = [answer for answer, _ in zip(stream, range(3), strict=False)]
        stream.cancel()
        return found
    except grpc.RpcError as error:
        code, said = error.code(), str(error.details())
        if code == grpc.StatusCode.DEADLINE_EXCEEDED and follows:
            return []
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            raise Hang(f"{method.name} has no answer after {seconds:g} s") from error
        if code in _BAD_CODES:
            raise Fault(f"{method.name} {code.name}: {said}") from error
        raise UserError(said) from error


def _follow_up(town: Town, method: MethodDescriptor, answers: list[bytes]) -> None:
    """What an accepted call has changed is put back."""
    if method.name == "RegisterWorker":
        town.credentials["session"] = pb.RegisterWorkerResponse.FromString(answers[0]).session_token
    if method.name == "SubmitRun":
        run = RunRecord.from_message(pb.Run.FromString(answers[0]))
        _show(run)
        if run.run_id not in town.ids.values() and not run.ended:
            town.client.cancel(run.run_id)
            town.client.remove(run.run_id)
    if method.name in _ENDS_RUNS:
        town.fill()


def _show(run: RunRecord) -> None:
    """Whatever a run says of itself can be shown."""
    board = Board([run])
    plain_line(board.rows[run.run_id], several=True)
    Console(file=io.StringIO(), width=80).print(render(board))
    json.dumps(full_run_json(run, [], RunMetrics(Path(run.run_dir))))


def _stranger_door(town: Town) -> Door:
    """Every call without the token, or with a wrong one, is refused before it is looked at."""
    printable = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40)
    tokens = st.one_of(st.none(), printable, printable.map("Bearer {}".format))

    def enter(example: tuple[MethodDescriptor, bytes, str | None]) -> None:
        method, data, token = example
        path = f"/{SERVICE.full_name}/{method.name}"
        metadata = [] if token is None else [("authorization", token)]
        try:
            if method.client_streaming:
                town.channel.stream_unary(path)(iter([data]), timeout=_ANSWER_SECONDS, metadata=metadata)
            elif method.server_streaming:
                next(town.channel.unary_stream(path)(data, timeout=_ANSWER_SECONDS, metadata=metadata))
            else:
                town.channel.unary_unary(path)(data, timeout=_ANSWER_SECONDS, metadata=metadata)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNAUTHENTICATED:
                raise UserError(str(error.details())) from error
            raise Fault(f"{method.name} {error.code().name}: {error.details()}") from error
        raise Fault(f"{method.name} answered a stranger")

    methods = st.sampled_from(list(SERVICE.methods))
    what = "every call, Shutdown too, without the token and with wrong ones"
    return Door(
        "calls of strangers", what, st.tuples(methods, st.binary(max_size=20), tokens), enter, town.var.parent
    )


def _event_door(town: Town) -> Door:
    live = town.ids["live"]
    heartbeat = next(method for method in SERVICE.methods if method.name == "Heartbeat")
    request = pb.HeartbeatRequest(run_id=live).SerializeToString()

    def enter(data: bytes) -> None:
        with town.paths.run(live).events.open("ab") as events:
            events.write(data)
        _call(town, heartbeat, [request], town.credentials["session"])
        _show(town.client.get(live))
        town.fill()
        town.verify()

    what = "lines in the event file of a live run; the daemon takes them in, and the run can still be shown"
    return Door("events of a live run", what, event_lines(live), enter, town.var.parent)


def _wait(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
