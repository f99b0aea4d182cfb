"""A supervisor that shakes hands, leaves its credentials to whoever plays its part, and waits to be ended."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

import grpc

from mosaic.contract.connection import SECRET_VARIABLE, WORKER_KEY, DaemonAddress
from mosaic.contract.events import EventKind, LifecycleWriter
from mosaic.contract.paths import VarPaths, resolve_var
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.proto import trainer_pb2_grpc as pb_grpc

CREDENTIALS = "credentials.json"
_BEAT_SECONDS = 20.0


def main() -> int:
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    run_id = json.loads(Path(sys.argv[sys.argv.index("--config") + 1]).read_text())["run_id"]
    daemon = DaemonAddress.read(VarPaths(resolve_var()).daemon_file)
    assert daemon is not None
    secret = os.environ[SECRET_VARIABLE]
    request = pb.RegisterWorkerRequest(
        run_id=run_id, worker_id="holder", worker_kind="holder", pid=os.getpid()
    )
    with grpc.insecure_channel(daemon.address) as channel:
        answer = pb_grpc.TrainerServiceStub(channel).RegisterWorker(
            request, timeout=30, metadata=(*daemon.metadata(), (WORKER_KEY, secret))
        )
    Path(CREDENTIALS).write_text(json.dumps({"secret": secret, "session": answer.session_token}))
    writer = LifecycleWriter(run_id, sys.stdout.fileno())
    writer.write(EventKind.RUN_STARTED, {"training_pid": os.getpid()})
    while not ended.wait(_BEAT_SECONDS):
        writer.write(EventKind.HEARTBEAT, {"phase": "training"})
    writer.write(EventKind.RUN_CANCELLED, {"exit_code": 143, "headline": {}})
    return 0


if __name__ == "__main__":
    sys.exit(main())
