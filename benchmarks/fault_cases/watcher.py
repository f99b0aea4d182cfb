"""Many watchers in one process, each with a connection of its own.

python -m fault_cases.watcher ADDRESS CREDENTIAL COUNT LAST_SEQ

Prints `ready` when all streams are open; when each has seen LAST_SEQ, one JSON line: the seconds from event
to sight, whether every watcher saw each event once, and how many streams had to be opened again.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import grpc

from mosaic.contract.connection import TOKEN_KEY
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.proto import trainer_pb2_grpc as pb_grpc

_OWN_CONNECTION = (("grpc.use_local_subchannel_pool", 1),)


class Watcher:
    """One stream: what it saw, and how long after the event."""

    def __init__(self, address: str, credential: str, last_seq: int) -> None:
        self._channel = grpc.aio.insecure_channel(address, options=_OWN_CONNECTION)
        self._metadata = ((TOKEN_KEY, credential),)
        self._last_seq = last_seq
        self.opened = asyncio.Event()
        self.delays: list[float] = []
        self.numbers: list[int] = []
        self.reopened = 0

    async def watch(self) -> None:
        """Watch until the last event; a stream that the daemon gave up goes on from its cursor."""
        while not self.numbers or self.numbers[-1] < self._last_seq:
            try:
                await self._follow(self.numbers[-1] if self.numbers else 0)
            except grpc.aio.AioRpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE:
                    raise
                self.reopened += 1
                await asyncio.sleep(0.1)
        await self._channel.close()

    async def _follow(self, since: int) -> None:
        stub = pb_grpc.TrainerServiceStub(self._channel)
        async for update in stub.WatchRuns(pb.WatchRunsRequest(since_seq=since), metadata=self._metadata):
            seen_at = time.time()
            self.numbers.append(update.transition.seq)
            # What was there before the stream was opened is history, not news.
            if self.opened.is_set():
                self.delays.append(seen_at - update.transition.at)
            self.opened.set()
            if update.transition.seq >= self._last_seq:
                return


async def main() -> None:
    address, token, count, last_seq = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    watchers = [Watcher(address, token, last_seq) for _ in range(count)]
    tasks = [asyncio.create_task(watcher.watch()) for watcher in watchers]
    await asyncio.gather(*(watcher.opened.wait() for watcher in watchers))
    # The few events of before the start have come by then.
    await asyncio.sleep(0.5)
    for watcher in watchers:
        watcher.delays.clear()
    print("ready", flush=True)
    await asyncio.gather(*tasks)
    every = list(range(1, last_seq + 1))
    whole = all(watcher.numbers == every for watcher in watchers)
    delays = [delay for watcher in watchers for delay in watcher.delays]
    reopened = sum(watcher.reopened for watcher in watchers)
    print(json.dumps({"whole": whole, "delays": delays, "reopened": reopened}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
