"""Starting supervisors, finding them again, and ending what a killed one left behind."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mosaic.contract.atomic import write_json
from mosaic.contract.connection import RUN_VARIABLE, SECRET_VARIABLE
from mosaic.contract.paths import VAR_VARIABLE, RunPaths, VarPaths
from mosaic.contract.process import ProcessIdentity
from mosaic.contract.secrets import is_callers
from mosaic.contract.workers import find_worker
from mosaic.trainer.crash_points import reach

_GPU_VARIABLE = "CUDA_VISIBLE_DEVICES"
_RESERVED_VARIABLE = "MOSAIC_RESERVED_GPUS"
_NO_GPUS = ("", "-1")
_FIND_SECONDS = 2.0
_SWEEPS = 10
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True)
class RunSecrets:
    """What waits in the run's file of mode 0600: the handshake secret, the user's own secrets, and what the
    run takes from its caller's environment."""

    run_secret: str
    environment: Mapping[str, str]

    @classmethod
    def write(cls, path: Path, environment: Mapping[str, str]) -> None:
        content = {"run_secret": secrets.token_hex(32), "environment": dict(environment)}
        write_json(path, content, mode=0o600)

    @classmethod
    def read(cls, path: Path) -> RunSecrets:
        return cls(**json.loads(path.read_bytes()))


def spawn(
    paths: VarPaths, run_id: str, config: Mapping[str, Any], target: str, gpu_ids: Sequence[int]
) -> subprocess.Popen[bytes]:
    """Start the run's supervisor. From this moment it holds `supervisor.lock`, whatever becomes of us."""
    worker = config["metadata"]["worker"]
    module = worker["module"] or find_worker(worker["type"]).cli_module
    command = [sys.executable, "-m", module, "--config", str(paths.worker_config(run_id))]
    command += ["--grpc", "--grpc-target", target]
    run_paths = paths.run(run_id)
    for folder in (run_paths.logs, paths.kept_logs(run_id)):
        folder.mkdir(parents=True, exist_ok=True)
    with (
        run_paths.lock.open("ab") as lock,
        run_paths.events.open("ab") as events,
        (paths.kept_logs(run_id) / "supervisor.stderr.log").open("ab") as stderr,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        reach("start.locked")
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=events,
            stderr=stderr,
            pass_fds=[lock.fileno()],
            start_new_session=True,
            cwd=run_paths.run_dir,
            env=_environment(paths, run_id, config, gpu_ids),
        )


def _environment(
    paths: VarPaths, run_id: str, config: Mapping[str, Any], gpu_ids: Sequence[int]
) -> dict[str, str]:
    held = RunSecrets.read(paths.run_secrets(run_id))
    metadata = config["metadata"]
    reserved = ",".join(map(str, gpu_ids))
    # The daemon's own are those of whoever happened to start it.
    environment = {name: value for name, value in os.environ.items() if not is_callers(name)}
    environment |= {name: str(config["resources"]["cpus"]) for name in _THREAD_VARIABLES}
    environment |= {**held.environment, **config.get("environment", {})}
    wished = environment.get(_GPU_VARIABLE)
    # A run that has reserved GPUs sees those, as others have reserved the rest; or none, if it wants none.
    if wished is None or (reserved and wished not in _NO_GPUS):
        environment[_GPU_VARIABLE] = reserved
    environment[_RESERVED_VARIABLE] = reserved
    environment |= {VAR_VARIABLE: str(paths.root), RUN_VARIABLE: run_id, SECRET_VARIABLE: held.run_secret}
    optional = {
        "MOSAIC_TRAINING_PYTHON": metadata["worker"]["python"],
        "MOSAIC_USER_PATH": metadata["ui"].get("python_path"),
    }
    return environment | {name: str(value) for name, value in optional.items() if value}


def lock_is_held(run_paths: RunPaths) -> bool:
    """Whether the run's supervisor lives."""
    try:
        lock = run_paths.lock.open("ab")
    except FileNotFoundError:
        return False
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def find(run_id: str, run_paths: RunPaths) -> ProcessIdentity | None:
    """The process that holds the run's lock, for a spawn that was never recorded."""
    deadline = time.monotonic() + _FIND_SECONDS
    # A process that is just being started has not got its environment yet.
    while time.monotonic() < deadline:
        for identity in _processes_of(run_id):
            if _leads_its_session(identity.pid) and str(run_paths.lock) in _open_files(identity.pid):
                return identity
        time.sleep(0.05)
    return None


def reserved_gpus(pid: int) -> list[int]:
    """The GPUs that a supervisor was given when it was started."""
    for entry in _environment_of(pid):
        name, _, value = entry.partition(b"=")
        if name.decode(errors="replace") == _RESERVED_VARIABLE:
            return [int(part) for part in value.split(b",") if part]
    return []


def end_leftovers(run_id: str) -> list[int]:
    """Kill every process that still belongs to a run whose supervisor is gone, also one just being born."""
    ended: set[int] = set()
    for _ in range(_SWEEPS):
        found = [identity.pid for identity in _processes_of(run_id) if identity.send(signal.SIGKILL)]
        if not found:
            break
        ended |= set(found)
    return sorted(ended)


def _processes_of(run_id: str) -> Iterator[ProcessIdentity]:
    mark = f"{RUN_VARIABLE}={run_id}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        # Who it is comes first: should the pid change hands now, the signal finds nobody.
        identity = ProcessIdentity.of(int(entry.name))
        if identity is not None and mark in _environment_of(identity.pid):
            yield identity


def _environment_of(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _leads_its_session(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return False


def _open_files(pid: int) -> list[str]:
    try:
        return [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return []
