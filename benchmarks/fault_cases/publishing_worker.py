"""A worker that publishes numbered steps until it is told to end, wherever `daemon.json` says it is."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

from mosaic.contract.connection import DaemonAddress
from mosaic.contract.events import EventKind, LifecycleWriter
from mosaic.contract.paths import VarPaths, resolve_var
from mosaic.worker.link import TrainerLink
from mosaic.worker.publisher import StepPublisher
from mosaic.worker.telemetry import Introduction

PACE_SECONDS = 0.05
BEAT_ITEMS = 400


def main() -> int:
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    run_id = json.loads(Path(sys.argv[sys.argv.index("--config") + 1]).read_text())["run_id"]
    paths = VarPaths(resolve_var())
    daemon = DaemonAddress.read(paths.daemon_file)
    assert daemon is not None
    link = TrainerLink(Introduction(run_id, "publisher", "publisher"), paths, daemon.address)
    link.register()
    link.listen(lambda _: None)
    writer = LifecycleWriter(run_id, sys.stdout.fileno())
    link.heartbeat(writer.write(EventKind.RUN_STARTED, {"training_pid": os.getpid()}).seq)
    publisher = StepPublisher(link)
    number = 0
    while not ended.wait(PACE_SECONDS):
        number += 1
        publisher.publish({"number": number})
        if number % BEAT_ITEMS == 0:
            link.heartbeat(writer.write(EventKind.HEARTBEAT, {"published": number}).seq)
    publisher.close()
    link.close()
    writer.write(EventKind.RUN_CANCELLED, {"exit_code": 0, "headline": {"published": number}})
    return 0


if __name__ == "__main__":
    sys.exit(main())
