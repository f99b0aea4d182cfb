"""Whatever a call carries, the daemon answers in a sentence and goes on: no call is an error of its own."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mosaic.client import Client
from mosaic.contract.connection import CHANNEL_OPTIONS
from mosaic.contract.errors import UserError
from mosaic.contract.proto import trainer_pb2 as pb
from support.runs import end, long_config, script_config

METHODS = {method.name: method for method in pb.DESCRIPTOR.services_by_name["TrainerService"].methods}
GOOD = {
    "OK",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "FAILED_PRECONDITION",
    "PERMISSION_DENIED",
    "DEADLINE_EXCEEDED",
}
"""A stream that only waits is left when its time is over."""
UNKNOWN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


class Wire:
    """Calls without our client in between."""

    def __init__(self, client: Client) -> None:
        address = client._connection.address
        self.channel = grpc.insecure_channel(address.address, options=CHANNEL_OPTIONS)
        self.metadata = address.metadata()

    def call(self, method: str, message: Message | bytes, seconds: float = 20) -> tuple[str, str]:
        """The code and the sentence that a call ends with."""
        about = METHODS[method]
        data = message if isinstance(message, bytes) else message.SerializeToString()
        sides = ("stream" if many else "unary" for many in (about.client_streaming, about.server_streaming))
        invoke = getattr(self.channel, "_".join(sides))(
            f"/mosaic.trainer.v1.TrainerService/{method}",
            request_serializer=lambda given: given,
            response_deserializer=lambda given: given,
        )
        try:
            answer = invoke(
                iter([data]) if about.client_streaming else data, timeout=seconds, metadata=self.metadata
            )
            if about.server_streaming:
                next(iter(answer), None)
                answer.cancel()
        except grpc.RpcError as error:
            return error.code().name, error.details() or ""
        return "OK", ""


@pytest.fixture
def wire(client: Client) -> Iterator[Wire]:
    made = Wire(client)
    yield made
    made.channel.close()


def request(method: str, **values: Any) -> Message:
    made: Message = getattr(pb, METHODS[method].input_type.name)(**values)
    return made


def with_run_id() -> list[str]:
    return [name for name, about in METHODS.items() if "run_id" in about.input_type.fields_by_name]


def test_a_run_id_that_cannot_be_one_is_refused_everywhere(wire: Wire) -> None:
    assert len(with_run_id()) >= 14
    for method in with_run_id():
        for run_id in (
            "A" * 1_000_000,
            "../../etc/passwd",
            "%",
            "'; DROP TABLE runs; --",
            UNKNOWN,
            "\0",
            "é" * 60,
        ):
            code, said = wire.call(method, request(method, run_id=run_id))
            assert code in ("INVALID_ARGUMENT", "NOT_FOUND"), (method, run_id[:30], code, said)
            assert said and len(said) < 300


def test_what_is_no_message_of_the_call_is_refused_everywhere(wire: Wire) -> None:
    for method in METHODS:
        if method == "Shutdown":
            continue
        # Field 1 as a text that is not UTF-8, a length beyond the end, and an end in the middle of a number.
        for data in (b"\x0a\x03\xff\xfe\xfd", b"\x0a\xff\xff\xff\x7f", b"\xff\xff\xff"):
            code, said = wire.call(method, data, seconds=0.5 if METHODS[method].server_streaming else 20)
            fields = METHODS[method].input_type.fields_by_number
            is_text = 1 in fields and fields[1].type == fields[1].TYPE_STRING
            if is_text or data[0] == 0xFF:
                assert code == "INVALID_ARGUMENT", (method, data, code, said)
                assert "cannot be read" in said
            assert code in GOOD, (method, data, code, said)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("SubmitRun", {"config_json": "[" * 900 + "]" * 900, "request_id": "a"}, "nested too deep"),
    ("SubmitRun", {"config_json": "[" * 100_000, "request_id": "a"}, "nested too deep"),
    ("SubmitRun", {"config_json": '{"a": "' + "x" * 30_000_000 + '"}', "request_id": "a"}, "has 30.0 MB"),
    ("SubmitRun", {"config_json": "nonsense", "request_id": "a"}, "is not JSON"),
    ("SubmitRun", {"config_json": "{}"}, "no request_id"),
    ("SubmitRun", {"config_json": "{}", "request_id": "a" * 1000}, "'request_id' is 1,000 characters"),
    ("SubmitRun", {"config_json": "[]", "request_id": "a"}, "must be a JSON object"),
    ("SubmitRun", {"config_json": '{"run_name": "\\ud800"}', "request_id": "a"}, "not valid Unicode"),
    ("SubmitRun", {"config_json": '{"run_name": "\\u0000"}', "request_id": "a"}, "NUL character"),
    ("ListRuns", {"limit": -1}, "'limit' is -1"),
    ("ListRuns", {"limit": 2**31 - 1}, "at most 1000 runs"),
    ("ListRuns", {"statuses": ["BANANA"]}, "'BANANA' is not a known state"),
    ("ListRuns", {"outcomes": ["great"]}, "'great' is not a known outcome"),
    ("ListRuns", {"fields": ["secret"]}, "is not a known field of a listed run"),
    ("ListRuns", {"cursor": "garbage"}, "The cursor is not from"),
    ("ListRuns", {"cursor": "[" * 5000}, "The cursor is not from"),
    ("ListRuns", {"cursor": '["a", "b"]'}, "The cursor is not from"),
    ("ListRuns", {"cursor": f"[{10**30}]"}, "cannot be stored"),
    ("ListRuns", {"order_by": "x'; DROP TABLE runs"}, "cannot be sorted"),
    ("ListRuns", {"filter": "return>many"}, "is not a number"),
    ("ListRuns", {"filter": "x" * 10_000}, "'filter' is 10,000 characters long"),
    ("ListRuns", {"ended_before": math.nan}, "must be a finite number"),
    ("ListRuns", {"run_ids": ["a"] * 2000}, "has 2,000 entries"),
    ("StreamLogs", {"offset": -5}, "'offset' is -5"),
    ("StreamLogs", {"stream": "etc"}, "is not a log of a run"),
    ("StreamMetrics", {"cursor": "garbage"}, "not one that a reader gave"),
    ("StreamRunSteps", {"since_seq": -1}, "'since_seq' is -1"),
    ("WatchRuns", {"since_seq": -1}, "'since_seq' is -1"),
    ("WatchRuns", {"since_seq": 2**63 - 1}, "or less"),
    ("ReorderRun", {"priority": 10_000}, "A priority is from -1000 to 1000"),
    ("LabelRun", {"tags": pb.TagList(tags=[f"t{n}" for n in range(2000)])}, "at most 100 tags, not 2,000"),
    ("LabelRun", {"tags": pb.TagList(tags=["t" * 5000])}, "at most 100 characters"),
    ("LabelRun", {"run_name": "n" * 1_000_000}, "1 to 200 characters, not 1,000,000"),
    ("LabelRun", {"notes": "n" * 1_000_000}, "at most 10,000 characters, not 1,000,000"),
    ("CancelRun", {"reason": "r" * 1_000_000}, "'reason' is 1,000,000 characters long"),
]


def test_a_value_that_cannot_be_taken_is_refused_by_name(client: Client, wire: Wire) -> None:
    all_cpus = client.health().cpus
    working = client.submit(long_config(cpus=all_cpus))
    waiting = client.submit(script_config("steps.py", cpus=all_cpus))
    for method, values, said in REFUSED:
        named = {"run_id": waiting.run_id} if method in with_run_id() else {}
        code, words = wire.call(method, request(method, **named, **values))
        assert (code, said in words) == ("INVALID_ARGUMENT", True), (method, said, code, words)
    end(client, waiting, working)


LIMITS: list[tuple[dict[str, Any], str]] = [
    ({"tags": [f"t{number}" for number in range(2000)]}, "at most 100 tags, not 2,000"),
    ({"tags": ["t" * 5000]}, "a tag has at most 100 characters"),
    ({"run_name": "n" * 5000}, "'run_name'"),
    ({"resources": {"gpus": {"requested": 10**30}}}, "'resources.gpus.requested'"),
    ({"schedule": {"max_wallclock_minutes": 1e300}}, "'schedule.max_wallclock_minutes'"),
    ({"environment": {"A": "b\0c"}}, "NUL character"),
    ({"metadata": {"ui": {"notes": "n" * 20_000}}}, "notes have at most 10,000 characters"),
    ({"metadata": {"ui": {"big": "n" * 2_000_000}}}, "has 2.0 MB: at most 1.0 MB"),
]


def test_a_config_beyond_its_limits_is_refused_by_client_and_daemon(client: Client, wire: Wire) -> None:
    config = script_config("steps.py")
    for change, said in LIMITS:
        metadata = {**config["metadata"], **change.get("metadata", {})}
        changed = {**config, **change, "metadata": metadata}
        with pytest.raises(UserError) as refused:
            client.submit(changed)
        assert said in str(refused.value)
        message = request("SubmitRun", config_json=json.dumps(changed), request_id="a")
        code, words = wire.call("SubmitRun", message)
        assert (code, said in words) == ("INVALID_ARGUMENT", True), words
    assert client.runs() == []


def _values(field: Any) -> st.SearchStrategy[Any]:
    if field.message_type is not None:
        return _messages(field.message_type)
    kinds: dict[int, st.SearchStrategy[Any]] = {
        field.TYPE_STRING: st.one_of(
            st.text(max_size=30),
            st.sampled_from([UNKNOWN, "", "TERM", "completed", "[0]", "return>1", "stdout", "run_id", "{}"]),
        ),
        field.TYPE_BOOL: st.booleans(),
        field.TYPE_INT32: st.integers(-(2**31), 2**31 - 1),
        field.TYPE_INT64: st.integers(-(2**63), 2**63 - 1),
        field.TYPE_DOUBLE: st.floats(),
    }
    return kinds[field.type]


def _messages(descriptor: Any) -> st.SearchStrategy[Any]:
    if descriptor.GetOptions().map_entry:
        return st.nothing()
    fields = {
        field.name: st.lists(_values(field), max_size=3)
        if hasattr(getattr(getattr(pb, descriptor.name)(), field.name), "append")
        else _values(field)
        for field in descriptor.fields
        if not (field.message_type and field.message_type.GetOptions().map_entry)
    }
    return st.fixed_dictionaries({}, optional=fields).map(lambda given: getattr(pb, descriptor.name)(**given))


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_message_is_an_error_of_the_daemon(wire: Wire, data: st.DataObject) -> None:
    for method, about in METHODS.items():
        if method != "Shutdown":
            message = data.draw(_messages(about.input_type), label=method)
            code, said = wire.call(method, message, seconds=0.1 if about.server_streaming else 20)
            assert code in GOOD, (method, code, said)
