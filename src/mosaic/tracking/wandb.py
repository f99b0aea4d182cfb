"""Weights & Biases: the run with its curves, videos and model, online or kept here for `wandb sync`."""

from __future__ import annotations

import base64
import json
import logging
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from mosaic.tracking import OFFLINE, ONLINE, TrackerLink
from mosaic.tracking.feed import Point, rows
from mosaic.tracking.request import Request, TrackerProblem, first_line
from mosaic.tracking.settings import program, without_user

DEFAULT_PROJECT = "cleanRL"
"""As in CleanRL's scripts."""
KEPT_HERE = "The run is stored locally, for `wandb sync`."
REACH_SECONDS = 5.0
_LONGEST_TAG = 64
_FLUSH_SECONDS = 2.0


@dataclass(frozen=True)
class Answer:
    """What the service says when it is asked who is there."""

    problem: str = ""
    """Why a run cannot be sent to it, as a sentence; empty when it can."""
    entity: str = ""
    pages: str = ""
    """Where its pages are."""


def reach(base_url: str, key: str, proxies: Mapping[str, str], seconds: float = REACH_SECONDS) -> Answer:
    """Ask the service whether it is there and takes the API key; waits `seconds` at most for each step."""
    # Few who import this file ask: the window only makes commands with it.
    import urllib.error
    import urllib.request

    shown, host = without_user(base_url), urlsplit(base_url).hostname
    if not key:
        return Answer(
            f"{host} needs an API key, and none is set: run `{program('wandb')} login`, or set WANDB_API_KEY "
            "or 'wandb_api_key'."
        )
    sign = base64.b64encode(f"api:{key}".encode()).decode()
    question = urllib.request.Request(
        f"{base_url.rstrip('/')}/graphql",
        json.dumps({"query": "query Viewer { viewer { entity username } }"}).encode(),
        {"Authorization": f"Basic {sign}", "Content-Type": "application/json"},
    )
    # Only the proxies that were asked for, else those of the environment, as the client itself does.
    handlers = [urllib.request.ProxyHandler(dict(proxies))] if proxies else []
    try:
        with urllib.request.build_opener(*handlers).open(question, timeout=seconds) as answer:
            viewer = (json.load(answer).get("data") or {}).get("viewer")
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            return Answer(_refused(host))
        return Answer(f"{shown} answers with the error {error.code}: check whether the service is available.")
    except (OSError, ValueError, AttributeError) as error:
        reason = getattr(error, "reason", None) or error
        through = f" through the proxy {without_user(next(iter(proxies.values())))}" if proxies else ""
        return Answer(f"{shown} cannot be reached{through} ({reason}): check the network.")
    if not isinstance(viewer, dict):
        return Answer(_refused(host))
    return Answer(entity=str(viewer.get("entity") or viewer.get("username") or ""))


def _refused(host: str | None) -> str:
    login = f"`{program('wandb')} login`"
    return f"{host} refuses the API key: check WANDB_API_KEY or 'wandb_api_key', or run {login}."


def sync_command(folder: Path) -> str:
    """What sends the run that lies in a folder of the client's; empty when there is none."""
    # A run that was restarted lies there in several parts, and some may have been online.
    parts = sorted(
        (path for path in folder.glob("*run-*") if path.is_dir() and not path.is_symlink()), key=_time
    )
    return shlex.join([program("wandb"), "sync", *map(str, parts)]) if parts else ""


def _time(part: Path) -> str:
    return part.name.removeprefix("offline-")


def look() -> Answer:
    """Whether the service that the `wandb` client would use can be reached, with the key it would take."""
    import wandb
    from wandb.sdk.lib.wbauth import AuthApiKey, authenticate_session
    from wandb.util import app_url

    base_url = wandb.setup().settings.base_url
    try:
        found = authenticate_session(host=base_url, source="mosaic", prompt=False)
    except wandb.Error as error:
        return Answer(f"{urlsplit(base_url).hostname} cannot take the API key: {first_line(error)}")
    if found is not None and not isinstance(found, AuthApiKey):
        # A token of an identity service, which only the client itself can exchange.
        return Answer(pages=app_url(base_url))
    named = {scheme: os.environ.get(f"{scheme.upper()}_PROXY", "") for scheme in ("http", "https")}
    proxies = {scheme: proxy for scheme, proxy in named.items() if proxy}
    answer = reach(base_url, found.api_key if found is not None else "", proxies)
    return replace(answer, pages=app_url(base_url))


def _details(request: Request) -> dict[str, Any]:
    """What the run is called and belongs to, for the client and for whoever shows it."""
    named = {
        "project": request.setting("project_name", "project")
        or os.environ.get("WANDB_PROJECT")
        or DEFAULT_PROJECT,
        "entity": request.setting("entity") or os.environ.get("WANDB_ENTITY"),
        "run_name": request.setting("run_name") or os.environ.get("WANDB_NAME") or request.run_name,
        "group": request.setting("group") or os.environ.get("WANDB_RUN_GROUP"),
        "notes": request.setting("notes") or request.notes,
    }
    tags = [tag[:_LONGEST_TAG] for tag in request.all_tags]
    return {**{name: value for name, value in named.items() if value}, "tags": tags}


class WandbTracker:
    """One run of the `wandb` client."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._root = Path(os.environ.get("WANDB_DIR") or request.run_dir)
        self._folder = self._root / "wandb"
        self._run: Any = None
        self._link = TrackerLink("wandb", folder=str(self._folder))
        self._has_episodes: set[str] = set()
        self._kept: dict[str, Any] = {}

    def open(self, kept: dict[str, Any]) -> TrackerLink:
        import wandb

        self._kept = kept
        kept.setdefault("rows", 0)
        request = self._request
        wished = request.setting("mode") or os.environ.get("WANDB_MODE") or "online"
        problem = "" if wished == "offline" else look().problem
        mode: Literal["online", "offline"] = "offline" if problem or wished == "offline" else "online"
        details = _details(request)
        settings = wandb.Settings(
            console="off",
            silent=True,
            disable_git=True,
            disable_code=True,
            disable_job_creation=True,
            save_code=False,
            x_save_requirements=False,
            x_log_level=logging.INFO,
            x_transaction_log_flush_interval=_FLUSH_SECONDS,
            # What is measured of the machine shall be about who trains.
            x_stats_pid=request.training_pid or os.getpid(),
            x_disable_stats=request.training_pid is None,
        )
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            self._run = wandb.init(
                id=request.run_id,
                project=details["project"],
                entity=details.get("entity"),
                name=details["run_name"],
                group=details.get("group"),
                notes=details.get("notes"),
                tags=details["tags"],
                job_type=request.mode,
                config=dict(request.parameters),
                dir=str(self._root),
                mode=mode,
                resume="allow",
                settings=settings,
            )
        except (wandb.Error, OSError, ValueError) as error:
            raise TrackerProblem(f"Weights & Biases cannot begin the run: {first_line(error)}") from error
        self._run.define_metric("*", step_metric="global_step")
        url = str(self._run.url or "") if mode == "online" else ""
        if mode == "online" and self._run.entity:
            details["entity"] = str(self._run.entity)
        state = ONLINE if mode == "online" else OFFLINE
        if problem:
            problem = f"{problem} {KEPT_HERE}"
        command = sync_command(self._folder) if state == OFFLINE else ""
        self._link = replace(
            self._link, state=state, url=url, command=command, problem=problem, details=details
        )
        return self._link

    def log(self, points: Sequence[Point]) -> None:
        for row in rows(points):
            if row.counts_episodes:
                for tag in row.values.keys() - self._has_episodes:
                    self._run.define_metric(tag, step_metric="episode")
                    self._has_episodes.add(tag)
            kind = "episode" if row.counts_episodes else "global_step"
            self._log({**row.values, kind: row.step, "_timestamp": row.wall_time})

    def _log(self, values: dict[str, Any]) -> None:
        self._run.log(values)
        self._kept["rows"] += 1

    def has(self) -> int | None:
        # Of a process that was killed, what it had not sent yet is not there.
        return int(self._run.starting_step) if self._link.state == ONLINE else None

    def add_video(self, path: Path, name: str, step: int) -> None:
        import wandb

        self._log({name: wandb.Video(str(path)), "global_step": step})

    def add_model(self, files: Sequence[Path]) -> None:
        import wandb

        artifact = wandb.Artifact(f"{self._request.run_id}-model", "model")
        for file in files:
            artifact.add_file(str(file))
        self._run.log_artifact(artifact)

    def close(self, outcome: str) -> TrackerLink:
        self._run.summary["outcome"] = outcome
        self._run.finish(exit_code=0 if outcome == "completed" else 1)
        command = sync_command(self._folder) if self._link.state == OFFLINE else ""
        return replace(self._link, command=command, finished=self._link.state == ONLINE)
