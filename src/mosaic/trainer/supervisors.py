"""Starting supervisors, finding them again, and ending what a killed one left behind."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from mosaic.contract.atomic import write_json
from mosaic.contract.capabilities import find_worker
from mosaic.contract.connection import FOLDER_VARIABLE, RUN_VARIABLE, SECRET_VARIABLE, identity_of
from mosaic.contract.paths import VAR_VARIABLE, RunPaths, VarPaths
from mosaic.contract.process import ProcessIdentity, family_mark, wears_mark
from mosaic.contract.secrets import HIDDEN_VARIABLE, is_callers, referred
from mosaic.trainer.log import reach

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

    environment: Mapping[str, str]
    names: Sequence[str] = ()
    """Those of the environment that are secrets."""
    run_secret: str = field(default_factory=lambda: secrets.token_hex(32))

    def write(self, path: Path) -> None:
        write_json(path, vars(self), mode=0o600)

    @classmethod
    def read(cls, path: Path) -> RunSecrets:
        return cls(**json.loads(path.read_bytes()))


def spawn(
    paths: VarPaths, run_id: str, config: Mapping[str, Any], target: str, gpu_ids: Sequence[int]
) -> subprocess.Popen[bytes]:
    """Start the run's supervisor. From this moment it holds `supervisor.lock`, whatever becomes of us."""
    worker = config["metadata"]["worker"]
    module = worker["module"] or find_worker(worker["type"]).cli_module
    command = [sys.executable, "-P", "-m", module, "--config", str(paths.worker_config(run_id))]
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
    told = config.get("environment", {})
    environment |= held.environment
    environment |= {name: value for name, value in told.items() if referred(value) is None}
    wished = environment.get(_GPU_VARIABLE)
    # A run that has reserved GPUs sees those, as others have reserved the rest; or none, if it wants none.
    if wished is None or (reserved and wished not in _NO_GPUS):
        environment[_GPU_VARIABLE] = reserved
    environment[_RESERVED_VARIABLE] = reserved
    environment |= {VAR_VARIABLE: str(paths.root), FOLDER_VARIABLE: identity_of(paths.trainer)}
    environment |= {RUN_VARIABLE: run_id, SECRET_VARIABLE: held.run_secret}
    environment[HIDDEN_VARIABLE] = ",".join(held.names)
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


def find(run_id: str, paths: VarPaths) -> ProcessIdentity | None:
    """The process that holds the run's lock, for a spawn that was never recorded."""
    lock = str(paths.run(run_id).lock)
    deadline = time.monotonic() + _FIND_SECONDS
    # A process that is just being started has not got its environment yet.
    while time.monotonic() < deadline:
        for identity in _processes_of(run_id, paths):
            with contextlib.suppress(OSError):
                files = [os.readlink(entry) for entry in Path(f"/proc/{identity.pid}/fd").iterdir()]
                if os.getsid(identity.pid) == identity.pid and lock in files:
                    return identity
        time.sleep(0.05)
    return None


def reserved_gpus(pid: int) -> list[int]:
    """The GPUs that a supervisor was given when it was started."""
    reserved = _environment_of(pid).get(_RESERVED_VARIABLE.encode(), b"")
    return [int(part) for part in reserved.split(b",") if part]


def end_leftovers(run_id: str, paths: VarPaths) -> list[int]:
    """Kill every process that still belongs to a run whose supervisor is gone, also one just being born."""
    ended: set[int] = set()
    for _ in range(_SWEEPS):
        found = [one.pid for one in _processes_of(run_id, paths) if one.send(signal.SIGKILL)]
        if not found:
            break
        ended |= set(found)
    return sorted(ended)


def is_ours(supervisor: ProcessIdentity, run_id: str, paths: VarPaths) -> bool:
    """Whether a recorded process is the run's: in a copied folder it is that of the original's run."""
    return supervisor.alive() and _whose(supervisor.pid, run_id, paths) is True


def lives_elsewhere(run_id: str, paths: VarPaths) -> bool:
    """Whether the run has processes in another folder, which is a copy of ours or ours a copy of it."""
    return any(_whose(pid, run_id, paths) is False for pid in psutil.pids())


def _processes_of(run_id: str, paths: VarPaths) -> Iterator[ProcessIdentity]:
    """Those with the run's name in their environment, and those with its mark, who may have none."""
    lock = paths.run(run_id).lock
    mark = family_mark(lock) if lock.exists() else None
    for pid in psutil.pids():
        # Who it is comes first: should the pid change hands now, the signal finds nobody.
        identity = ProcessIdentity.of(pid)
        if identity is None:
            continue
        marked = mark is not None and wears_mark(pid, mark)
        if marked or _whose(pid, run_id, paths):
            yield identity


def _whose(pid: int, run_id: str, paths: VarPaths) -> bool | None:
    """Whether a process of the run belongs to this folder; None for one that is not of the run."""
    told = _environment_of(pid)
    if told.get(RUN_VARIABLE.encode()) != run_id.encode():
        return None
    if FOLDER_VARIABLE.encode() in told:
        return told[FOLDER_VARIABLE.encode()] == identity_of(paths.trainer).encode()
    # Runs that an earlier release has started know their folder by its name only.
    return told.get(VAR_VARIABLE.encode()) == os.fsencode(paths.root)


def _environment_of(pid: int) -> dict[bytes, bytes]:
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    return dict(entry.partition(b"=")[::2] for entry in entries)
