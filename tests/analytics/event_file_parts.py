"""What the tests of event files share."""

from __future__ import annotations

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

from mosaic.analytics.event_files import ScalarChunk
from mosaic.analytics.event_files.format import frame

VERSION = frame(Event(wall_time=1.5, file_version="brain.Event:2").SerializeToString())
NAME = "events.out.tfevents.0000000001.host.1.0"


def scalar(tag: str, value: float, step: int) -> bytes:
    event = Event(
        wall_time=step + 0.5, step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)])
    )
    return frame(event.SerializeToString())


def collect(chunks: list[ScalarChunk]) -> list[tuple[str, str, int, float]]:
    return [
        (chunk.source, tag, step, value)
        for chunk in chunks
        for tag, series in chunk.series.items()
        for step, value in zip(series.steps, series.values, strict=True)
    ]
