"""A worker that does what a worker must and nothing else: handshake, `run_started`, `run_completed`."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path

import grpc

from mosaic.contract.connection import SECRET_VARIABLE, WORKER_KEY, DaemonAddress
from mosaic.contract.events import EventKind, LifecycleWriter
from mosaic.contract.paths import VarPaths, resolve_var
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.proto import trainer_pb2_grpc as pb_grpc

_PATIENCE_SECONDS = 60.0


def main() -> int:
    config = json.loads(Path(sys.argv[sys.argv.index("--config") + 1]).read_text())
    register(config["run_id"])
    writer = LifecycleWriter(config["run_id"], sys.stdout.fileno())
    writer.write(EventKind.RUN_STARTED, {"training_pid": os.getpid()})
    writer.write(EventKind.RUN_COMPLETED, {"exit_code": 0, "headline": {}})
    return 0


def register(run_id: str) -> None:
    """Shake hands, with the daemon that comes next if this one dies."""
    request = pb.RegisterWorkerRequest(run_id=run_id, worker_id="tiny", worker_kind="tiny", pid=os.getpid())
    paths, deadline = VarPaths(resolve_var()), time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        daemon = DaemonAddress.read(paths.daemon_file)
        if daemon is not None:
            metadata = (*daemon.metadata(), (WORKER_KEY, os.environ[SECRET_VARIABLE]))
            with grpc.insecure_channel(daemon.address) as channel, contextlib.suppress(grpc.RpcError):
                pb_grpc.TrainerServiceStub(channel).RegisterWorker(request, timeout=10, metadata=metadata)
                return
        time.sleep(0.05)
    raise TimeoutError("no daemon took the handshake")


if __name__ == "__main__":
    sys.exit(main())
