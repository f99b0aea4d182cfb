"""What trackers are told of a run of this worker, and the processes that tell them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cleanrl_worker.config.modes import INTERACTIVE
from cleanrl_worker.config.scripts import Script
from cleanrl_worker.config.worker_config import CleanRLWorkerConfig
from cleanrl_worker.schemas.model import load_schema
from cleanrl_worker.supervisor.arguments import DEFAULT_SEED, RuntimeSummary, tracks_itself
from mosaic.contract.connection import SECRET_VARIABLE
from mosaic.contract.outside import read_json
from mosaic.contract.paths import RunPaths, VarPaths
from mosaic.contract.process import tree_below
from mosaic.contract.secrets import HIDDEN_VARIABLE
from mosaic.tracking import OFFLINE, ONLINE, TrackerLink, read_link, write_link
from mosaic.tracking.beside import Trackers
from mosaic.tracking.request import Request
from mosaic.tracking.settings import proxies, settings_of, wanted
from mosaic.tracking.wandb import DEFAULT_PROJECT, KEPT_HERE, sync_command
from mosaic.worker.environment import user_folder
from mosaic.worker.training_process import Watch

_SECRETS = frozenset({"api_key", "http_proxy", "https_proxy"})
"""Settings that a tracker's process has in its environment only."""
_TALKATIVE = ("WANDB_DEBUG", "WANDB_CORE_DEBUG", "WANDB__LOG_LEVEL", "WANDB_X_LOG_LEVEL")
"""With these the client writes its settings to its log, and the API key with them."""
_LOOK_SECONDS = 20.0
_LAST_SECONDS = 2.0
"""Of the time in which a cancelled run must end, what is kept for the last word."""


def start_trackers(summary: RuntimeSummary, var: VarPaths, training_pid: int) -> Trackers | None:
    """The processes beside a run, one for each tracker that it asks for; None when it asks for none."""
    config, script = summary.config, summary.script
    names = [] if config.mode == INTERACTIVE else wanted(config.extras)
    if tracks_itself(script):
        names = [name for name in names if name != "wandb"]
    if not names:
        return None
    paths = var.run(config.run_id)
    about = _about(config, var)
    requests = [
        Request(
            tracker=name,
            run_id=config.run_id,
            run_dir=str(paths.run_dir),
            var=str(var.root),
            mode=config.mode,
            parameters=_parameters(summary),
            settings=_settings(config, name),
            training_pid=training_pid,
            **about,
        )
        for name in names
    ]
    return Trackers(requests, paths.logs, tracking_environment(config, paths))


def prepare_own_tracking(config: CleanRLWorkerConfig, script: Script, paths: RunPaths) -> dict[str, str]:
    """Variables for a script that tracks by itself: it would die of a service that it cannot reach.

    Then it keeps its run in its folder, and that is told as with other trackers.
    """
    if not tracks_itself(script) or "wandb" not in wanted(config.extras):
        return {}
    environment = tracking_environment(config, paths)
    own = settings_of("wandb", config.extras, os.environ)
    offline = (own.get("mode") or os.environ.get("WANDB_MODE")) == "offline"
    answer: dict[str, str] = {}
    if not offline:
        command = [sys.executable, "-P", "-m", "mosaic.tracking.process", "--look"]
        with contextlib.suppress(subprocess.SubprocessError, ValueError, IndexError):
            done = subprocess.run(command, env=environment, capture_output=True, timeout=_LOOK_SECONDS)
            answer = json.loads(done.stdout.splitlines()[-1])
    problem = answer.get("problem", "")
    offline = offline or bool(problem)
    project = own.get("project_name") or own.get("project") or os.environ.get("WANDB_PROJECT")
    project = project or script.flags.default("wandb_project_name") or DEFAULT_PROJECT
    entity = own.get("entity") or os.environ.get("WANDB_ENTITY") or answer.get("entity")
    pages = answer.get("pages")
    known = {"project": project, "entity": entity, "run_name": own.get("run_name")}
    link = TrackerLink(
        "wandb",
        OFFLINE if offline else ONLINE,
        url=f"{pages}/{entity}/{project}/runs/{config.run_id}" if pages and entity and not offline else "",
        folder=str(paths.run_dir / "wandb"),
        problem=f"{problem} {KEPT_HERE}" if problem else "",
        details={name: str(value) for name, value in known.items() if value},
    )
    write_link(paths.run_dir, link, {})
    return {"WANDB_MODE": "offline"} if offline else {}


def end_own_tracking(paths: RunPaths) -> None:
    """What a script that tracks by itself has left can be sent from now on."""
    link = read_link(paths.run_dir, "wandb")
    if link is not None and link.state == OFFLINE and not link.command:
        write_link(paths.run_dir, replace(link, command=sync_command(Path(link.folder))), {})


def end_trackers(trackers: Trackers, outcome: str, watch: Watch, beat: Callable[[], object]) -> None:
    """Give trackers their time at the end of a run, or what is left of it once its end was asked for."""
    deadline = time.monotonic() + trackers.end_seconds

    def left() -> float:
        least = deadline - time.monotonic()
        return min(least, watch.seconds_to_end() - _LAST_SECONDS) if watch.cancelled else least

    trackers.end(outcome, left, beat)
    # What their own helpers have left became ours when they ended.
    for process in tree_below(os.getpid()):
        process.send(signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process.pid, 0)


def tracking_environment(config: CleanRLWorkerConfig, paths: RunPaths) -> dict[str, str]:
    """The variables of a tracker's process: those of the user, with the key and the proxies of this run."""
    own = settings_of("wandb", config.extras, os.environ)
    found = {**os.environ, "WANDB_DIR": str(paths.run_dir)}
    for name in (SECRET_VARIABLE, HIDDEN_VARIABLE, *_TALKATIVE):
        found.pop(name, None)
    for name in ("api_key", "base_url"):
        if own.get(name):
            found[f"WANDB_{name.upper()}"] = str(own[name])
    for scheme, proxy in proxies(config.extras, os.environ, user_folder()).items():
        # Libraries differ in which of the two they look at first.
        found |= {f"{scheme.upper()}_PROXY": proxy, f"{scheme}_proxy": proxy}
    return found


def _settings(config: CleanRLWorkerConfig, name: str) -> dict[str, Any]:
    found = settings_of(name, config.extras, os.environ)
    return {key: value for key, value in found.items() if key not in _SECRETS}


def _about(config: CleanRLWorkerConfig, var: VarPaths) -> dict[str, Any]:
    """What the run is called by whoever asked for it; a worker's own config does not say."""
    asked: Mapping[str, Any] = config.raw if "metadata" in config.raw else {}
    with contextlib.suppress(OSError, ValueError):
        asked = read_json(var.run_config(config.run_id))
    seed = DEFAULT_SEED if config.effective_seed is None else config.effective_seed
    usual = f"{config.env_id}__{config.algo.rpartition('/')[2]}__{seed}"
    notes = config.extras.get("notes") or ((asked.get("metadata") or {}).get("ui") or {}).get("notes")
    return {
        "run_name": str(asked.get("run_name") or usual),
        "tags": list(asked.get("tags") or ()),
        "notes": str(notes or ""),
    }


def _parameters(summary: RuntimeSummary) -> dict[str, Any]:
    """Everything that the run was made with, also what it has by default."""
    config, script = summary.config, summary.script
    schema = load_schema(config.algo) if script.ours else None
    known = schema.parameters if schema else [flag.schema for flag in script.flags.flags.values()]
    usual = {one.name: one.default for one in known if not one.runtime_only}
    said = summary.values or {**config.flags(), **(config.extras.get("algo_params") or {})}
    named = {
        "algo": config.algo,
        **config.named_values(),
        "seed": DEFAULT_SEED if script.ours and config.effective_seed is None else config.effective_seed,
        "mode": config.mode,
        **{
            name: config.extras[name]
            for name in ("env_kwargs", "curriculum_schedule", "checkpoint_path", "policy_path")
            if config.extras.get(name)
        },
    }
    own = ("track", "wandb_project_name", "wandb_entity")
    merged = {**usual, **{name.replace("-", "_"): value for name, value in said.items()}, **named}
    return {name: value for name, value in merged.items() if name not in own}
