"""EventReader on the events of all kinds of writers."""

from __future__ import annotations

import math
import shutil
import struct
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

from analytics.event_file_parts import NAME, VERSION, collect, scalar
from mosaic.analytics.event_files import EventReader, EventWriter, parser
from mosaic.analytics.event_files.format import frame


@pytest.fixture(params=["one by one", "in bulk"], autouse=True)
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks are parsed in another way than large ones; both must find the same."""
    if request.param == "in bulk":
        monkeypatch.setattr(parser, "_BULK_BYTES", 0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.text(min_size=1, max_size=200),
            st.floats(width=32, allow_nan=False),
            st.integers(-(2**63), 2**63 - 1),
        ),
        max_size=20,
    )
)
def test_what_is_written_is_read(tmp_path: Path, rows: list[tuple[str, float, int]]) -> None:
    shutil.rmtree(tmp_path)
    with closing(EventWriter(tmp_path)) as writer:
        for tag, value, step in rows + rows:
            writer.add_scalar(tag, value, step)
    reader = EventReader(tmp_path)
    expected = [(".", tag.encode(errors="replace").decode(), step, value) for tag, value, step in rows + rows]
    assert sorted(collect(reader.poll())) == sorted(expected)
    assert reader.poll() == []
    assert not reader.problems


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "charts/b", "c" * 130]),
            st.floats(width=32, allow_nan=False),
            st.integers(-(2**63), 2**63 - 1),
        )
    )
)
def test_what_protobuf_serialises_is_read(tmp_path: Path, rows: list[tuple[str, float, int]]) -> None:
    (tmp_path / NAME).write_bytes(VERSION + b"".join(scalar(*row) for row in rows))
    assert sorted(collect(EventReader(tmp_path).poll())) == sorted((".", t, s, v) for t, v, s in rows)


@pytest.mark.parametrize("new_style", [False, True])
@pytest.mark.parametrize("double_precision", [False, True])
def test_files_of_torch_are_read(tmp_path: Path, new_style: bool, double_precision: bool) -> None:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path / "runs" / "x")) as writer:
        writer.add_text("hyperparameters", "|a|b|")
        for step in range(300):
            writer.add_scalar("a", step / 4, step, new_style=new_style, double_precision=double_precision)
        writer.add_scalar("charts/other", math.inf, 3)
    rows = collect(EventReader(tmp_path).poll())
    assert rows == [("runs/x", "a", s, s / 4) for s in range(300)] + [("runs/x", "charts/other", 3, math.inf)]


def test_wall_times_are_kept(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(VERSION + scalar("a", 1, 0) + scalar("a", 1, 5) + scalar("a", 1, 600))
    (chunk,) = EventReader(tmp_path).poll()
    assert list(chunk.series["a"].wall_times) == [0.5, 5.5, 600.5]


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (TensorProto(dtype="DT_FLOAT", float_val=[1.5]), 1.5),
        (TensorProto(dtype="DT_DOUBLE", double_val=[0.1]), 0.1),
        (TensorProto(dtype="DT_FLOAT", tensor_content=struct.pack("<f", 2.5)), 2.5),
        (TensorProto(dtype="DT_DOUBLE", tensor_content=struct.pack("<d", 0.1)), 0.1),
        (TensorProto(dtype="DT_FLOAT", tensor_shape=TensorShapeProto(), float_val=[3]), 3),
        (TensorProto(dtype="DT_FLOAT", float_val=[1, 2]), None),
        (TensorProto(dtype="DT_STRING", string_val=[b"text"]), None),
        (
            TensorProto(
                dtype="DT_FLOAT",
                tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=9)]),
                float_val=[0],
            ),
            None,
        ),
    ],
)
@pytest.mark.parametrize("plugin", ["scalars", "", "histograms"])
def test_tensors_count_when_they_are_one_number(
    tmp_path: Path, tensor: TensorProto, expected: float | None, plugin: str
) -> None:
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin)) if plugin else None
    value = Summary.Value(tag="t", tensor=tensor, metadata=metadata)
    event = frame(Event(step=4, summary=Summary(value=[value])).SerializeToString())
    (tmp_path / NAME).write_bytes(VERSION + event + event)
    rows = collect(EventReader(tmp_path).poll())
    wanted = expected is not None and plugin != "histograms"
    assert rows == ([(".", "t", 4, expected)] * 2 if wanted else [])


def test_several_values_in_one_event_are_all_read(tmp_path: Path) -> None:
    values = [Summary.Value(tag=tag, simple_value=number) for number, tag in enumerate("abc")]
    event = frame(Event(step=9, summary=Summary(value=values)).SerializeToString())
    (tmp_path / NAME).write_bytes(VERSION + event + event)
    assert sorted(collect(EventReader(tmp_path).poll())) == sorted(
        [(".", t, 9, n) for n, t in enumerate("abc")] * 2
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_no_content_breaks_the_reader(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(VERSION + scalar("a", 1, 1) + frame(content) + content)
    reader = EventReader(tmp_path)
    assert collect(reader.poll())[0] == (".", "a", 1, 1)
