"""What clients follow of a run: metrics and logs from its files, published items from their ring."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

from mosaic.analytics.event_files import EventReader, ScalarChunk
from mosaic.contract.errors import UnavailableError, UserError
from mosaic.contract.fsm import RunStatus
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.trainer.engine import Engine

_METRICS_SECONDS = 2.0
_LOGS_SECONDS = 0.3
"""A followed file is looked at this often, and at each heartbeat."""
_CHUNK_BYTES = 256 * 1024
_RECORDS = 20_000


async def metrics(
    engine: Engine, request: pb.StreamMetricsRequest, stop: asyncio.Event
) -> AsyncIterator[pb.MetricBatch]:
    """Scalars from the cursor on; with `follow` until the run has ended."""
    run = engine.registry.resolve(request.run_id)
    reader = EventReader(engine.paths.run(run.run_id).run_dir, cursor=request.cursor or None)
    with engine.broker.subscribe(run.run_id) as subscriber:
        while True:
            ended = engine.registry.get(run.run_id).status == RunStatus.TERM
            chunks = await asyncio.to_thread(reader.poll, _RECORDS)
            if chunks:
                yield pb.MetricBatch(chunks=map(_chunk, chunks), cursor=reader.cursor())
            elif ended or not request.follow:
                return
            else:
                await subscriber.wait(_METRICS_SECONDS)
            if stop.is_set():
                raise UnavailableError("The daemon is stopping.")


def _chunk(chunk: ScalarChunk) -> pb.MetricChunk:
    series = [
        pb.Series(tag=tag, steps=one.steps, wall_times=one.wall_times, values=one.values)
        for tag, one in chunk.series.items()
    ]
    return pb.MetricChunk(source=chunk.source, purge_from=chunk.purge_from, series=series)


async def logs(
    engine: Engine, request: pb.StreamLogsRequest, stop: asyncio.Event
) -> AsyncIterator[pb.LogChunk]:
    """Bytes of a log from the offset on; with `follow` until the run has ended."""
    run = engine.registry.resolve(request.run_id)
    path = _log_path(engine, run.run_id, request.stream)
    offset = request.offset
    with engine.broker.subscribe(run.run_id) as subscriber:
        while True:
            ended = engine.registry.get(run.run_id).status == RunStatus.TERM
            data = _read(path, offset)
            if data:
                offset += len(data)
                yield pb.LogChunk(data=data, offset=offset)
            elif ended or not request.follow:
                return
            else:
                await subscriber.wait(_LOGS_SECONDS)
            if stop.is_set():
                raise UnavailableError("The daemon is stopping.")


async def published(
    engine: Engine, stream: str, request: pb.StreamPublishedRequest, stop: asyncio.Event
) -> AsyncIterator[pb.PublishedBatch]:
    """Items after the cursor, as far as they are kept; with `follow` until the run has ended."""
    run = engine.registry.resolve(request.run_id)
    ring, seen = engine.published.ring(run.run_id, stream), request.since_seq
    with ExitStack() as stack:
        subscriber = stack.enter_context(engine.broker.subscribe(run.run_id))
        stack.enter_context(engine.published.reading(run.run_id, subscriber))
        if request.follow:
            # One glance is no reason for a worker to hurry.
            stack.enter_context(engine.control.reading(run.run_id))
        while True:
            batch = ring.since(seen)
            if batch is not None:
                seen = batch.items[-1].seq
                yield batch
            elif not request.follow or engine.registry.get(run.run_id).status == RunStatus.TERM:
                return
            else:
                await subscriber.wait()
            if stop.is_set():
                raise UnavailableError("The daemon is stopping.")


def _log_path(engine: Engine, run_id: str, stream: str) -> Path:
    known = engine.paths.run_logs(run_id)
    if stream not in known:
        raise UserError(f"'{stream}' is no log of a run: it is one of {', '.join(known)}.")
    return known[stream]


def _read(path: Path, offset: int) -> bytes:
    try:
        with path.open("rb") as file:
            # No file is so long, and some file systems refuse the place.
            if offset > file.seek(0, os.SEEK_END):
                return b""
            file.seek(offset)
            return file.read(_CHUNK_BYTES)
    except FileNotFoundError:
        return b""
