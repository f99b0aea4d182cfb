"""MLflow: the run on a tracking server, or in a database on this machine that all runs share."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from mosaic.tracking import LOCAL, ONLINE, TrackerLink
from mosaic.tracking.feed import Point
from mosaic.tracking.request import Request, TrackerProblem, first_line
from mosaic.tracking.settings import program, usual_folder, without_user

DEFAULT_EXPERIMENT = "mosaic"
_MOST_POINTS = 1000
"""Of one call."""
_MOST_PARAMETERS = 100
_LONGEST_PARAMETER = 6000
_NOT_IN_NAMES = re.compile(r"[^\w\-. :/]")
_STATUS = {"completed": "FINISHED", "cancelled": "KILLED"}
_RUN_TAG = "mosaic.run_id"
_PATIENCE = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


class MlflowTracker:
    """One run of the `mlflow` client."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._client: Any = None
        self._run = self._shown = ""
        self._link = TrackerLink("mlflow")

    def open(self, kept: dict[str, Any]) -> TrackerLink:
        # Before the client is imported, which reads them: a server that is gone must not hold us for minutes.
        for name, value in _PATIENCE.items():
            os.environ.setdefault(name, value)
        import mlflow

        uri = self._request.setting("tracking_uri") or os.environ.get("MLFLOW_TRACKING_URI") or ""
        folder = usual_folder(Path(self._request.var), "mlflow")
        local = not uri
        if local:
            folder.mkdir(parents=True, exist_ok=True)
            uri = f"sqlite:///{folder / 'mlflow.db'}"
        self._shown = uri if local else without_user(uri)
        project = self._request.setting("experiment_name") or os.environ.get("MLFLOW_EXPERIMENT_NAME")
        project = project or DEFAULT_EXPERIMENT
        with self._problems("begin the run"):
            with _alone(folder) if local else nullcontext():
                # A new database makes its tables here, which two processes must not do at once.
                self._client = mlflow.MlflowClient(uri)
                experiment = self._experiment(project, (folder / "artifacts").as_uri() if local else None)
            self._begin(experiment, kept)
        command = shlex.join([program("mlflow"), "ui", "--backend-store-uri", uri]) if local else ""
        served = self._shown.startswith("http")
        page = f"{self._shown.rstrip('/')}/#/experiments/{experiment}/runs/{self._run}"
        details = {
            "project": project,
            "run_name": self._request.title,
            "tags": self._request.all_tags,
            **({"notes": self._notes} if self._notes else {}),
        }
        self._link = TrackerLink(
            "mlflow",
            ONLINE if served else LOCAL,
            url=page if served else "",
            folder=str(folder) if local else "",
            command=command,
            details=details,
        )
        return self._link

    @property
    def _notes(self) -> str:
        return self._request.setting("notes") or self._request.notes

    def _experiment(self, name: str, artifacts: str | None) -> str:
        found = self._client.get_experiment_by_name(name)
        if found is None:
            return str(self._client.create_experiment(name, artifact_location=artifacts))
        if found.lifecycle_stage == "deleted":
            raise TrackerProblem(
                f"The experiment '{name}' is deleted in MLflow: restore it, or name another."
            )
        return str(found.experiment_id)

    def _begin(self, experiment: str, kept: dict[str, Any]) -> None:
        from mlflow.entities import Param, RunTag

        if kept.get("run"):
            self._run = str(kept["run"])
            self._client.update_run(self._run, status="RUNNING")
            return
        named = {
            _RUN_TAG: self._request.run_id,
            "mlflow.source.name": "mosaic",
            **({"mlflow.note.content": self._notes} if self._notes else {}),
            # MLflow's tags have values; a run's have none.
            **{_NOT_IN_NAMES.sub("_", tag): "true" for tag in self._request.all_tags},
        }
        self._run = self._client.create_run(experiment, run_name=self._request.title).info.run_id
        kept["run"] = self._run
        self._client.log_batch(self._run, tags=[RunTag(*one) for one in named.items()])
        params = [
            Param(_NOT_IN_NAMES.sub("_", name), str(value)[:_LONGEST_PARAMETER])
            for name, value in self._request.parameters.items()
        ]
        for at in range(0, len(params), _MOST_PARAMETERS):
            self._client.log_batch(self._run, params=params[at : at + _MOST_PARAMETERS])

    def log(self, points: Sequence[Point]) -> None:
        from mlflow.entities import Metric

        metrics = [
            Metric(_NOT_IN_NAMES.sub("_", point.tag), point.value, round(point.wall_time * 1000), point.step)
            for point in points
        ]
        with self._problems("take the run's numbers"):
            for at in range(0, len(metrics), _MOST_POINTS):
                self._client.log_batch(self._run, metrics=metrics[at : at + _MOST_POINTS])

    def has(self) -> int | None:
        return None

    def add_video(self, path: Path, name: str, step: int) -> None:
        with self._problems(f"take the video {path.name}"):
            self._client.log_artifact(self._run, str(path), "videos")

    def add_model(self, files: Sequence[Path]) -> None:
        with self._problems("take the model"):
            for file in files:
                self._client.log_artifact(self._run, str(file), "model")

    def close(self, outcome: str) -> TrackerLink:
        with self._problems("take the end of the run"):
            self._client.set_tag(self._run, "mosaic.outcome", outcome)
            self._client.set_terminated(self._run, _STATUS.get(outcome, "FAILED"))
        return replace(self._link, finished=True)

    @contextmanager
    def _problems(self, what: str) -> Iterator[None]:
        """What goes wrong with MLflow, as a sentence; a server that is away may come back."""
        from mlflow.exceptions import MlflowException

        try:
            yield
        except MlflowException as error:
            raise TrackerProblem(
                f"MLflow at {self._shown} cannot {what}: {_reason(error)}", passing=True
            ) from error
        except OSError as error:
            raise TrackerProblem(f"MLflow cannot {what}: {first_line(error)}") from error


def _reason(error: BaseException) -> str:
    """Why, without what the client repeats of its own calls."""
    line = first_line(error)
    if "Max retries exceeded" in line or "Failed to establish" in line or "Connection" in line:
        return "it cannot be reached; check the address and the network."
    return line


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
