"""The manifest: what a run has left behind, in one file for every reader."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from cleanrl_worker.config.modes import POLICY_EVAL
from cleanrl_worker.config.worker_config import CleanRLWorkerConfig
from mosaic.analytics.artifacts import list_artifacts
from mosaic.contract.atomic import write_json
from mosaic.contract.paths import RunPaths


def tensorboard_folder(config: CleanRLWorkerConfig, paths: RunPaths) -> Path:
    """Where the run's event files can be seen: `tensorboard_dir`, else the folder they are written to."""
    named = config.extras.get("tensorboard_dir")
    return paths.run_dir / str(named) if named else _written_to(config, paths)


def _written_to(config: CleanRLWorkerConfig, paths: RunPaths) -> Path:
    return paths.evaluation_curves if config.mode == POLICY_EVAL else paths.event_files


def make_tensorboard_folder(config: CleanRLWorkerConfig, paths: RunPaths) -> None:
    """Let `tensorboard_dir` show the event files, whatever script writes them: a link to their folder."""
    written, folder = _written_to(config, paths), tensorboard_folder(config, paths)
    written.mkdir(parents=True, exist_ok=True)
    if folder != written:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.symlink_to(written, target_is_directory=True)


def build_manifest(config: CleanRLWorkerConfig, paths: RunPaths, result: dict[str, Any]) -> dict[str, Any]:
    """The manifest's content; `result` says how the run went."""
    extras = config.extras
    wandb = {
        "enabled": bool(extras.get("track_wandb")),
        "run_path": extras.get("wandb_run_path"),
        "entity": extras.get("wandb_entity"),
        "project": extras.get("wandb_project_name") or extras.get("wandb_project"),
    }
    files = list_artifacts(paths.run_dir)
    return {
        "run_id": config.run_id,
        "algo": config.algo,
        "env_id": config.env_id,
        "seed": config.effective_seed,
        "total_timesteps": config.total_timesteps,
        "mode": config.mode,
        "resumed_from": extras.get("checkpoint_path"),
        **result,
        "artifacts": {
            "tensorboard": {
                "log_dir": str(tensorboard_folder(config, paths)),
                "event_files": [str(file.path) for file in files if file.kind == "events"],
            },
            "wandb": wandb,
            "optuna_db": _under(paths, extras.get("optuna_db")),
            "checkpoints_dir": _under(paths, extras.get("checkpoints_dir")),
            "models": [str(file.path) for file in files if file.kind == "model"],
            "checkpoints": [str(file.path) for file in files if file.kind == "checkpoint"],
            "videos": [str(file.path) for file in files if file.kind == "video"],
        },
        "notes": extras.get("notes"),
    }


def write_manifest(config: CleanRLWorkerConfig, paths: RunPaths, result: dict[str, Any]) -> dict[str, Any]:
    manifest = build_manifest(config, paths, result)
    write_json(paths.manifest, manifest)
    return manifest


def _under(paths: RunPaths, name: Any) -> str | None:
    """An absolute path under the run's folder."""
    return str(paths.run_dir / str(name)) if name else None
