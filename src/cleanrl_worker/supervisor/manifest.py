"""Two files about a run: the manifest, what it has left behind, and the provenance, where it comes from."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cleanrl_worker.config.modes import POLICY_EVAL
from cleanrl_worker.config.registry import AlgorithmFile
from cleanrl_worker.config.worker_config import CleanRLWorkerConfig
from mosaic import __version__
from mosaic.analytics.artifacts import list_artifacts
from mosaic.contract.atomic import write_json
from mosaic.contract.outside import read_json
from mosaic.contract.paths import RunPaths
from mosaic.worker.environment import without_secrets


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


def write_manifest(config: CleanRLWorkerConfig, paths: RunPaths, result: dict[str, Any]) -> dict[str, Any]:
    """Write the manifest, and give its content; `result` says how the run went."""
    extras = config.extras
    wandb = {
        "enabled": bool(extras.get("track_wandb")),
        "run_path": extras.get("wandb_run_path"),
        "entity": extras.get("wandb_entity"),
        "project": extras.get("wandb_project_name") or extras.get("wandb_project"),
    }
    tracked = any(value for name, value in extras.items() if name.startswith("track_"))
    files = list_artifacts(paths.run_dir)
    manifest = {
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
            **({"trackers": _trackers(paths, wandb)} if tracked else {}),
            "optuna_db": _under(paths, extras.get("optuna_db")),
            "checkpoints_dir": _under(paths, extras.get("checkpoints_dir")),
            "models": [str(file.path) for file in files if file.kind == "model"],
            "checkpoints": [str(file.path) for file in files if file.kind == "checkpoint"],
            "videos": [str(file.path) for file in files if file.kind == "video"],
        },
        "notes": extras.get("notes"),
    }
    write_json(paths.manifest, manifest)
    return manifest


def _trackers(paths: RunPaths, wandb: dict[str, Any]) -> list[dict[str, Any]]:
    """Where each tracker stands; what the one of W&B knows better is put into its own entry too."""
    from mosaic.tracking import links

    found = [link.as_json() for link in links(paths.run_dir)]
    for link in found:
        if link["name"] == "wandb":
            known = {name: link["details"][name] for name in ("entity", "project") if name in link["details"]}
            wandb |= known | {"url": link["url"] or None, "name": link["details"].get("run_name")}
            if all(wandb.get(name) for name in ("entity", "project")) and not wandb["run_path"]:
                wandb["run_path"] = f"{wandb['entity']}/{wandb['project']}/{paths.run_dir.name}"
    return found


def _under(paths: RunPaths, name: Any) -> str | None:
    """An absolute path under the run's folder."""
    return str(paths.run_dir / str(name)) if name else None


_PACKAGES = ("torch", "gymnasium", "numpy", "tensorboard", "tyro", "ale-py", "minigrid", "mujoco", "wandb")
_GIT_SECONDS = 10.0
_DIFF_CHARACTERS = 1_000_000


def write_provenance(
    config: CleanRLWorkerConfig,
    paths: RunPaths,
    command: Sequence[str],
    folder: Path,
    algorithm: Path | None,
    checked: Any = None,
) -> None:
    """Write `provenance.json`. `folder` is the user's own, `algorithm` the user's file that is trained by,
    `checked` what a check before the run has found."""
    python = command[0]
    content = {
        "run_id": config.run_id,
        "written_at": time.time(),
        "command": list(command),
        "config": config.as_json(),
        "versions": versions(),
        "training_python": python,
        "same_interpreter": python == sys.executable,
        "hardware": _hardware(),
        **({"algorithm": asdict(AlgorithmFile.of(algorithm))} if algorithm is not None else {}),
        "user_folder": _git(folder),
        **({"checked": checked} if checked else {}),
    }
    write_json(paths.provenance, content)


def checked_before(run_config: Path) -> Any:
    """What a check has found before the run was queued, as its config tells; None for one that was not."""
    try:
        return read_json(run_config)["metadata"]["ui"]["checked"]
    except (OSError, ValueError, LookupError, TypeError):
        return None


def versions() -> dict[str, str]:
    """Versions by the names of the packages' folders, at a fraction of what importlib.metadata costs."""
    found = {"mosaic": __version__, "python": sys.version.split()[0]}
    for folder in sys.path:
        # Not every entry of the path is a folder that can be listed.
        with contextlib.suppress(OSError):
            for entry in os.listdir(folder):
                name, _, version = entry.removesuffix(".dist-info").partition("-")
                name = name.lower().replace("_", "-")
                if name in _PACKAGES and entry.endswith(".dist-info"):
                    found.setdefault(name, version)
    return found


def _hardware() -> dict[str, Any]:
    system = os.uname()
    return {
        "machine": system.machine,
        "system": f"{system.sysname} {system.release}",
        "cpu": _first_value("/proc/cpuinfo", "model name"),
        "cpus": os.cpu_count(),
        "cpus_usable": len(os.sched_getaffinity(0)),
        "memory": _first_value("/proc/meminfo", "MemTotal"),
    }


def _first_value(path: str, key: str) -> str | None:
    with contextlib.suppress(OSError):
        for line in Path(path).read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
    return None


def _git(folder: Path) -> dict[str, Any]:
    """The commit and the uncommitted changes of the user's folder, if it is a checkout."""
    commit = _ask_git(folder, "rev-parse", "HEAD")
    diff = _ask_git(folder, "diff", "HEAD") if commit else None
    return {
        "path": str(folder),
        "git_commit": commit.strip() if commit else None,
        "git_diff": without_secrets(diff[:_DIFF_CHARACTERS]) if diff else diff,
        "git_diff_cut": bool(diff and len(diff) > _DIFF_CHARACTERS),
    }


def _ask_git(folder: Path, *question: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *question], capture_output=True, timeout=_GIT_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace")
