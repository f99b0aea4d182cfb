"""Taking a run in: checking its config, and the files that wait for it and go with it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from mosaic.contract.atomic import write_json
from mosaic.contract.capabilities import find_worker
from mosaic.contract.errors import UserError
from mosaic.contract.machine import Machine, check_possible
from mosaic.contract.paths import VarPaths
from mosaic.contract.run_config import TrainRunConfig, fill_in, validate_train_run_config
from mosaic.contract.secrets import callers_variables, declared_variables, lift_secrets, mask
from mosaic.trainer.log import reach
from mosaic.trainer.rebuild import has_begun
from mosaic.trainer.supervisors import RunSecrets

_WRITERS = ThreadPoolExecutor(3, thread_name_prefix="intake")
_CONFIG, _SECRETS = re.compile(r"(?:config|worker)-(.*)\.json"), re.compile(r"([^.].*)\.json")
_HALF_WRITTEN = re.compile(r"\..*\.json\..*")
MOST_KEPT = 4_000_000
"""Bytes of what a run printed on one stream that stay when its folder goes: its end tells the most."""


def accept(
    payload: Any, run_id: str, paths: VarPaths, machine: Machine, caller: Mapping[str, str]
) -> tuple[TrainRunConfig, RunSecrets]:
    """The config and what waits for the run, checked as far as a light process can; a UserError says what is
    wrong.

    `caller` are variables of the caller's environment: those that every run takes, and those that the payload
    refers to. They are kept as secrets are, which some of them are.
    """
    if not isinstance(payload, Mapping):
        raise UserError("The run config is not valid: it must be a JSON object.")
    lifted = lift_secrets(payload, caller)
    config = validate_train_run_config(lifted.config)
    config = fill_in(config, {"RUN_ID": run_id, "VAR_TENSORBOARD_DIR": str(paths.tensorboard)})
    check_possible(config.resources, machine)
    request = config.metadata.worker
    worker_config = {**request.config, "run_id": run_id}
    worker = find_worker(request.type)
    if config.artifacts.wandb.enabled:
        worker_config = worker.told_to_track(worker_config)
    if worker.catalog:
        worker_config = worker.load_catalog().check(worker_config, request.python, None)
    request = request.model_copy(update={"config": worker_config})
    metadata = config.metadata.model_copy(update={"worker": request})
    taken = callers_variables(caller)
    names = sorted({*lifted.values, *declared_variables(taken)})
    return config.model_copy(update={"metadata": metadata}), RunSecrets(taken | lifted.values, names)


def write_files(config: TrainRunConfig, secrets: RunSecrets, run_id: str, paths: VarPaths) -> None:
    """The files that must be there before the run's row is; side by side, for the disk to sync at once."""

    def write(name: str, how: Callable[..., None], *what: Any) -> None:
        how(*what)
        reach(f"submit.{name}")

    files = (
        ("secrets", secrets.write, paths.run_secrets(run_id)),
        ("config", write_json, paths.run_config(run_id), config.as_json()),
        ("worker", write_json, paths.worker_config(run_id), config.metadata.worker.config),
    )
    writes = [_WRITERS.submit(write, *file) for file in files]
    # All of them end before an error of one is seen: what is removed then must not come back.
    wait(writes)
    for written in writes:
        written.result()


def keep_logs(run_id: str, paths: VarPaths) -> None:
    """A run is about to end: keep its events and what it printed apart from its folder, if there is room."""
    run, kept = paths.run(run_id), paths.kept_logs(run_id)
    with contextlib.suppress(OSError, ValueError):
        held = RunSecrets.read(paths.run_secrets(run_id))
        for log in (run.stdout, run.stderr):
            # A supervisor that was killed could not do it.
            mask(log, {name: held.environment[name] for name in held.names})
    for file in (run.stdout, run.stderr, run.events):
        try:
            kept.mkdir(parents=True, exist_ok=True)
            if file.exists():
                _keep(file, kept / file.name, file.stat().st_size if file == run.events else MOST_KEPT)
        except OSError:
            with contextlib.suppress(OSError):
                (kept / file.name).unlink(missing_ok=True)


def _keep(file: Path, copy: Path, most: int) -> None:
    """Copy a log; of a longer one its last lines, after one that says so."""
    with file.open("rb") as log, copy.open("wb") as kept:
        left_out = log.seek(0, os.SEEK_END) - most
        log.seek(max(0, left_out))
        if left_out > 0:
            left_out += len(log.readline())
            kept.write(f"[{left_out:,} bytes before this were not kept]\n".encode())
        shutil.copyfileobj(log, kept)


def drop_secrets(run_id: str, paths: VarPaths) -> None:
    """A run has ended: its secrets go; those that stay for some reason are swept at the next start."""
    with contextlib.suppress(OSError):
        paths.run_secrets(run_id).unlink(missing_ok=True)


def remove_files(run_id: str, paths: VarPaths) -> None:
    """Remove what lies beside a run's folder: what `write_files` wrote, and the record."""
    made = (paths.run_config, paths.worker_config, paths.run_secrets, paths.run_record)
    for file in made:
        file(run_id).unlink(missing_ok=True)


def remove_run(run_id: str, paths: VarPaths) -> int:
    """Remove an ended run's folder and configs; gives the bytes freed."""
    run_dir = paths.run(run_id).run_dir
    freed = sum(file.lstat().st_size for file in run_dir.rglob("*") if not file.is_dir())
    shutil.rmtree(run_dir, ignore_errors=True)
    remove_files(run_id, paths)
    link = paths.tensorboard / run_id
    if link.is_symlink():
        link.unlink()
    return freed


def sweep_files(known: set[str], live: set[str], paths: VarPaths) -> None:
    """Remove files of interrupted submissions, which have no row, and secrets of runs that have ended.

    What belongs to a run that has begun stays, known or not. Files that were only half written begin with a
    dot and belong to nobody.
    """
    for folder, kept, kind in ((paths.configs, known, _CONFIG), (paths.secrets, live, _SECRETS)):
        # By name alone: every run has two files here, and the daemon starts only after this.
        for name in os.listdir(folder):
            found = kind.fullmatch(name)
            run_id = found[1] if found is not None else ""
            is_left = run_id not in kept and (run_id in known or not has_begun(paths, run_id))
            if _HALF_WRITTEN.fullmatch(name) or (found is not None and is_left):
                (folder / name).unlink(missing_ok=True)
