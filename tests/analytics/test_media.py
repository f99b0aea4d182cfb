"""Histograms, pictures, films and texts: found by the reader, read when asked for."""

from __future__ import annotations

import io
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from torch.utils.tensorboard import SummaryWriter

from analytics.event_file_parts import NAME, VERSION, scalar
from mosaic.analytics import store
from mosaic.analytics.event_files import EventWriter, Medium
from mosaic.analytics.event_files.format import CRC_START, extend_crc, frame
from mosaic.analytics.event_files.layouts import crc_of
from mosaic.analytics.event_files.reader import BLOCK_BYTES
from mosaic.analytics.media import Histogram, Pictures, as_table, load_medium, shown_name
from mosaic.analytics.store import RunMetrics
from mosaic.contract.errors import StorageError


def record(value: Summary.Value, step: int = 3) -> bytes:
    return frame(Event(wall_time=step + 0.5, step=step, summary=Summary(value=[value])).SerializeToString())


def strings(*texts: bytes) -> TensorProto:
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=len(texts))])
    return TensorProto(dtype="DT_STRING", tensor_shape=shape, string_val=texts)


def plugin(name: str) -> SummaryMetadata:
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=name))


def picture(kind: str, colour: int = 9) -> bytes:
    out = io.BytesIO()
    frames = [Image.new("L", (6, 4), colour + at) for at in range(3)]
    frames[0].save(out, kind, **({"save_all": True, "append_images": frames[1:]} if kind == "GIF" else {}))
    return out.getvalue()


def only(folder: Path) -> Medium:
    (track,) = RunMetrics.open(folder).media()
    (medium,) = track.items
    return medium


def test_what_torch_writes_is_found_and_read(tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=5000)
    with SummaryWriter(str(tmp_path / "runs" / "x")) as writer:
        for step in (0, 10):
            writer.add_histogram("weights", values + step, step)
            writer.add_image("frame", np.full((3, 4, 6), 0.5), step)
            writer.add_scalar("loss", step, step)
        writer.add_text("notes", "# not a title\n<b>not bold</b>", 5)
        writer.add_hparams({"lr": 0.1, "env": "x", "norm": True}, {"return": 1.0}, run_name="h")
    metrics = RunMetrics.open(tmp_path)
    assert metrics.names == ["loss", "return"]
    tracks = {(track.name, track.kind): track.items for track in metrics.media()}
    assert {(name, kind): [one.step for one in items] for (name, kind), items in tracks.items()} == {
        ("weights", "histogram"): [0, 10],
        ("frame", "image"): [0, 10],
        ("notes/text_summary", "text"): [5],
        ("_hparams_/session_start_info", "hparams"): [10],
    }
    told = {kind: load_medium(tmp_path, items[-1]) for (_, kind), items in tracks.items()}
    assert told["text"] == "# not a title\n<b>not bold</b>"
    assert told["hparams"] == "env = x\nlr = 0.1\nnorm = 1"
    histogram, image = told["histogram"], told["image"]
    assert isinstance(histogram, Histogram) and isinstance(image, Pictures)
    assert histogram.counts.sum() == 5000
    assert histogram.left[0] == pytest.approx(values.min() + 10) and histogram.right[-1] == pytest.approx(
        values.max() + 10
    )
    middle = (histogram.left + histogram.right) / 2
    assert np.average(middle, weights=histogram.counts) == pytest.approx(values.mean() + 10, abs=0.05)
    (file,) = image.files
    assert Image.open(io.BytesIO(file)).size == (6, 4)
    names = [shown_name(items[0]) for items in tracks.values()]
    assert sorted(names) == ["frame", "hyperparameters", "notes", "weights"]


@pytest.mark.parametrize("bulk", [False, True])
def test_what_tensorflow_writes_is_found_and_read(
    tmp_path: Path, bulk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if bulk:
        monkeypatch.setattr("mosaic.analytics.event_files.parser._BULK_BYTES", 0)
    buckets = np.array([[-1.0, 0.0, 3.0], [0.0, 1.0, 4.0]])
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=2), TensorShapeProto.Dim(size=3)])
    values = {
        "text": Summary.Value(tag="t", tensor=strings(b"one", b"two"), metadata=plugin("text")),
        "image": Summary.Value(
            tag="i", tensor=strings(b"6", b"4", picture("PNG"), picture("PNG", 40)), metadata=plugin("images")
        ),
        "video": Summary.Value(
            tag="v", tensor=strings(b"6", b"4", picture("GIF")), metadata=plugin("images")
        ),
        "histogram": Summary.Value(
            tag="h",
            tensor=TensorProto(dtype="DT_DOUBLE", tensor_shape=shape, tensor_content=buckets.tobytes()),
            metadata=plugin("histograms"),
        ),
    }
    events = [record(value) for value in values.values()]
    (tmp_path / NAME).write_bytes(VERSION + b"".join(events) + scalar("a", 1, 1))
    metrics = RunMetrics.open(tmp_path)
    told = {track.kind: load_medium(tmp_path, track.items[0]) for track in metrics.media()}
    assert told["text"] == "one\n\ntwo"
    assert told["image"] == Pictures((picture("PNG"), picture("PNG", 40)))
    assert told["video"] == Pictures((picture("GIF"),))
    histogram = told["histogram"]
    assert isinstance(histogram, Histogram)
    assert (histogram.left.tolist(), histogram.right.tolist(), histogram.counts.tolist()) == (
        [-1, 0],
        [0, 1],
        [3, 4],
    )
    assert metrics.names == ["a"]


def test_a_film_as_older_writers_keep_it_is_a_video(tmp_path: Path) -> None:
    value = Summary.Value(
        tag="v", image=Summary.Image(height=4, width=6, colorspace=3, encoded_image_string=picture("GIF"))
    )
    (tmp_path / NAME).write_bytes(VERSION + record(value))
    medium = only(tmp_path)
    assert medium.kind == "video"
    assert load_medium(tmp_path, medium) == Pictures((picture("GIF"),))


def test_our_own_writers_text_is_read(tmp_path: Path) -> None:
    with closing(EventWriter(tmp_path)) as writer:
        writer.add_text("hyperparameters", "|a|b|", 7)
    medium = only(tmp_path)
    assert (shown_name(medium), medium.step) == ("hyperparameters", 7)
    assert load_medium(tmp_path, medium) == "|a|b|"


def test_a_picture_larger_than_a_block_is_found_and_those_behind_it_too(tmp_path: Path) -> None:
    large = picture("PNG") + bytes(3 * BLOCK_BYTES)
    events = [
        record(Summary.Value(tag=tag, image=Summary.Image(encoded_image_string=data)))
        for tag, data in (("large", large), ("small", picture("PNG")))
    ]
    (tmp_path / NAME).write_bytes(VERSION + b"".join(events) + scalar("a", 2, 9))
    metrics = RunMetrics.open(tmp_path)
    large_one, small_one = (track.items[0] for track in metrics.media())
    assert load_medium(tmp_path, large_one) == Pictures((large,))
    assert load_medium(tmp_path, small_one) == Pictures((picture("PNG"),))
    assert metrics.last("a") == 2


def test_media_are_purged_moved_and_kept_as_numbers_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_WORTH_SAVING", 1)
    with closing(EventWriter(tmp_path / "a")) as writer:
        for step in (1, 50, 100):
            writer.add_text("t", f"first {step}", step)
    with closing(EventWriter(tmp_path / "a", purge_step=60)) as writer:
        writer.add_text("t", "again 100", 100)
    with closing(EventWriter(tmp_path / "b")) as writer:
        writer.add_text("t", "phase two", 3)
    for _ in range(2):
        (track,) = RunMetrics.open(tmp_path).media()
        assert [one.step for one in track.items] == [1, 50, 100, 103]
        assert [load_medium(tmp_path, one) for one in track.items] == [
            "first 1",
            "first 50",
            "again 100",
            "phase two",
        ]


@pytest.mark.parametrize("damage", ["gone", "bit", "cut", "replaced", "nonsense", "link", "pipe"])
def test_a_medium_that_cannot_be_read_is_one_sentence(tmp_path: Path, damage: str) -> None:
    import os

    histogram = HistogramProto(min=0, max=1, num=2, bucket_limit=[1.0, 2.0], bucket=[1.0])
    value = Summary.Value(tag="h", histo=histogram)
    file = tmp_path / NAME
    file.write_bytes(
        VERSION
        + record(
            value
            if damage == "nonsense"
            else Summary.Value(
                tag="h", histo=HistogramProto(min=0, max=1, num=2, bucket_limit=[1.0], bucket=[2.0])
            )
        )
    )
    medium = only(tmp_path)
    data = bytearray(file.read_bytes())
    data[-9] ^= 1
    if damage == "bit":
        file.write_bytes(data)
    elif damage == "cut":
        os.truncate(file, len(data) - 5)
    elif damage == "replaced":
        file.write_bytes(VERSION + scalar("a", 1, 1) * 9)
    elif damage != "nonsense":
        file.unlink()
        if damage == "link":
            file.symlink_to("/etc/hostname")
        elif damage == "pipe":
            os.mkfifo(file)
    with pytest.raises(
        StorageError, match=r"^The histogram 'h' of step 3 (cannot be read|is damaged) \(.*\): .*\.$"
    ):
        load_medium(tmp_path, medium)


def test_histograms_share_bins_and_lose_no_value() -> None:
    one = Histogram(np.array([0.0, 1.0]), np.array([1.0, 2.0]), np.array([4.0, 6.0]))
    point = Histogram(np.array([4.0]), np.array([4.0]), np.array([5.0]))
    none = Histogram(*(np.empty(0),) * 3)
    edges, table = as_table([one, point, none], 8)
    assert edges.tolist() == [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4]
    assert table[0].tolist() == pytest.approx([2, 2, 3, 3, 0, 0, 0, 0], abs=1e-6)
    assert table[1].tolist() == pytest.approx([0] * 7 + [5], abs=1e-6)
    assert not table[2].any()
    assert as_table([none], 4)[1].tolist() == [[0, 0, 0, 0]]


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 1000, 65_537])
def test_the_quick_checksum_is_the_checksum(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    assert crc_of(data) == extend_crc(CRC_START, data)
