"""trackio: the run in a database on this machine, or on a server or a Space of the Hugging Face hub."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mosaic.tracking import LOCAL, ONLINE, TrackerLink
from mosaic.tracking.feed import Point, finite, rows
from mosaic.tracking.request import Request, TrackerProblem, first_line
from mosaic.tracking.settings import program, usual_folder, without_user

DEFAULT_PROJECT = "mosaic"
_UNIQUE = 6
"""The run's id ends the run's name there, by which trackio tells runs apart, with so many letters of it."""


class TrackioTracker:
    """One run of the `trackio` client."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._run: Any = None
        self._link = TrackerLink("trackio")

    def open(self, kept: dict[str, Any]) -> TrackerLink:
        request = self._request
        folder = Path(os.environ.setdefault("TRACKIO_DIR", str(usual_folder(Path(request.var), "trackio"))))
        # The client reads the variable when it is imported.
        import trackio

        space = request.setting("space_id") or os.environ.get("TRACKIO_SPACE_ID")
        server = request.setting("server_url") or os.environ.get("TRACKIO_SERVER_URL")
        project = request.setting("project") or os.environ.get("TRACKIO_PROJECT") or DEFAULT_PROJECT
        name = f"{request.title}-{request.run_id[-_UNIQUE:].lower()}"
        notes = request.setting("notes") or request.notes
        about = {"run_id": request.run_id, "tags": request.all_tags, **({"notes": notes} if notes else {})}
        try:
            self._run = trackio.init(
                project=project,
                name=name,
                group=request.setting("group") or None,
                space_id=space,
                server_url=server,
                config={**request.parameters, **about},
                resume="allow",
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )
        except Exception as error:
            raise TrackerProblem(
                f"trackio cannot begin the run: {first_line(error)}", bool(server)
            ) from error
        local = not space and not server
        group = request.setting("group")
        self._link = TrackerLink(
            "trackio",
            LOCAL if local else ONLINE,
            url=""
            if local
            else f"https://huggingface.co/spaces/{space}"
            if space
            else without_user(server or ""),
            folder=str(folder) if local else "",
            command=_show_command(folder, project) if local else "",
            details={
                "project": project,
                "run_name": name,
                "tags": request.all_tags,
                **({"group": group} if group else {}),
                **({"notes": notes} if notes else {}),
            },
        )
        return self._link

    def log(self, points: Sequence[Point]) -> None:
        for row in rows(points):
            self._run.log({tag: finite(value) for tag, value in row.values.items()}, step=row.step)

    def has(self) -> int | None:
        return None

    def add_video(self, path: Path, name: str, step: int) -> None:
        import trackio

        self._run.log({name: trackio.Video(str(path))}, step=step)

    def add_model(self, files: Sequence[Path]) -> None:
        import trackio

        artifact = trackio.Artifact(f"{self._request.run_id}-model", type="model")
        for file in files:
            artifact.add_file(str(file))
        try:
            self._run.log_artifact(artifact)
        except Exception as error:
            raise TrackerProblem(f"trackio cannot take the model: {first_line(error)}") from error

    def close(self, outcome: str) -> TrackerLink:
        self._run.finish()
        return replace(self._link, finished=True)


def _show_command(folder: Path, project: str) -> str:
    show = shlex.join([program("trackio"), "show", "--project", project])
    return f"TRACKIO_DIR={shlex.quote(str(folder))} {show}"
