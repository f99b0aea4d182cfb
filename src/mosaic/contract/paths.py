"""Where everything lies: one place that knows the layout of the var folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mosaic.contract.errors import StorageError, UserError, is_text

VAR_VARIABLE = "MOSAIC_VAR"
_SHOWN = 80


def named_path(named: str, folder: Path | None = None) -> Path:
    """The path that somebody wrote, counted from `folder`; UserError when nothing can be there."""
    try:
        path = (folder or Path.cwd()) / Path(named).expanduser()
        path.exists()
    except (OSError, RuntimeError) as error:
        # An OSError repeats the whole name, which may be the trouble; the other is about a home folder.
        reason = error.strerror if isinstance(error, OSError) else "there is no such user"
        shown = named if len(named) <= _SHOWN else f"{named[:_SHOWN]}…"
        raise UserError(f"There can be no file '{shown}' ({reason}): correct the path.") from error
    return path


def resolve_var(environ: Mapping[str, str] | None = None) -> Path:
    """The absolute var folder: `$MOSAIC_VAR`, else `var/` of the checkout, else the user's data folder."""
    environ = os.environ if environ is None else environ
    named = environ.get(VAR_VARIABLE)
    if named:
        return named_path(named).resolve()
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "pyproject.toml").is_file() and (checkout / "mosaic").is_file():
        return checkout / "var"
    data = environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data).resolve() / "mosaic"


def choose_var(var: Path | None) -> Path:
    """`var`, else the usual folder, as an absolute path; UserError when something else lies there."""
    place = (var or resolve_var()).resolve()
    if place.exists() and not place.is_dir():
        raise UserError(
            f"{place} is a file, but the folder of the runs is wanted: name that, or set {VAR_VARIABLE}."
        )
    return place


class _Inside:
    """A path inside the folder that its owner is about."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __get__(self, owner: RunPaths | VarPaths, kind: type) -> Path:
        return (owner.run_dir if isinstance(owner, RunPaths) else owner.root) / self._path


@dataclass(frozen=True)
class RunPaths:
    """The files of one run."""

    run_dir: Path

    manifest = _Inside("analytics.json")
    provenance = _Inside("provenance.json")
    lock = _Inside("supervisor.lock")
    logs = _Inside("logs")
    events = _Inside("logs/events.jsonl")
    stdout = _Inside("logs/cleanrl.stdout.log")
    stderr = _Inside("logs/cleanrl.stderr.log")
    event_files = _Inside("runs")
    evaluation_curves = _Inside("tensorboard_eval")
    checkpoints = _Inside("checkpoints")

    def full_checkpoints(self) -> list[Path]:
        """The checkpoints from which the run can go on exactly, oldest first."""
        return sorted(self.checkpoints.glob("step-*.npz"))


@dataclass(frozen=True)
class StagedRun:
    """The files of a run from elsewhere, which lie apart until all of them are there.

    Without the mark they are those of an import that goes on or was interrupted; its lock tells which.
    """

    folder: Path

    @property
    def lock(self) -> Path:
        return self.folder / "import.lock"

    @property
    def mark(self) -> Path:
        return self.folder / "complete"

    @property
    def has_folder(self) -> bool:
        """Whether the run's folder still lies here."""
        return (self.folder / "folder").is_dir()

    def pieces(self, paths: VarPaths) -> tuple[tuple[Path, Path], ...]:
        """Each piece, and where it belongs. The config is the last: only with it the run is known."""
        run_id = self.folder.name
        return (
            (self.folder / "folder", paths.run(run_id).run_dir),
            (self.folder / "logs", paths.kept_logs(run_id)),
            (self.folder / "worker.json", paths.worker_config(run_id)),
            (self.folder / "record.json", paths.run_record(run_id)),
            (self.folder / "config.json", paths.run_config(run_id)),
        )


@dataclass(frozen=True)
class VarPaths:
    """The files of one installation; `root` is absolute."""

    root: Path
    trainer = _Inside("trainer")
    database = _Inside("trainer/trainer.sqlite")
    daemon_file = _Inside("trainer/daemon.json")
    daemon_lock = _Inside("trainer/daemon.lock")
    configs = _Inside("trainer/configs")
    secrets = _Inside("trainer/secrets")
    runs = _Inside("trainer/runs")
    imports = _Inside("trainer/imports")
    """Runs that come from archives, until the daemon has taken them in: see `StagedRun`."""
    models = _Inside("models")
    """Those that were pulled from the hub, as USER/MODEL."""
    tensorboard = _Inside("tensorboard")
    logs = _Inside("logs")
    daemon_log = _Inside("logs/trainer.log")

    def __post_init__(self) -> None:
        if not is_text(str(self.root)):
            # Everything that is stored or sent of a run has its folder's path in it.
            raise UserError(
                f"The folder {str(self.root)!r} is not named in UTF-8: rename it, or choose another."
            )

    def run(self, run_id: str) -> RunPaths:
        return RunPaths(self.runs / run_id)

    def run_config(self, run_id: str) -> Path:
        return self.configs / f"config-{run_id}.json"

    def worker_config(self, run_id: str) -> Path:
        return self.configs / f"worker-{run_id}.json"

    def run_record(self, run_id: str) -> Path:
        """The run's row and state changes, for the day on which the database is lost."""
        return self.configs / f"record-{run_id}.json"

    def staged(self, run_id: str) -> StagedRun:
        return StagedRun(self.imports / run_id)

    def run_secrets(self, run_id: str) -> Path:
        return self.secrets / f"{run_id}.json"

    def kept_logs(self, run_id: str) -> Path:
        """The supervisor's stderr, and of an ended run its events and what it printed: stays when the
        run's folder goes."""
        return self.logs / "trainer" / run_id

    def run_logs(self, run_id: str) -> dict[str, Path]:
        """The logs of a run by their names; where its folder is gone, what was kept of them."""
        run, kept = self.run(run_id), self.kept_logs(run_id)
        own = {"stdout": run.stdout, "stderr": run.stderr, "events": run.events}
        for name, file in own.items():
            if not file.exists() and (kept / file.name).exists():
                own[name] = kept / file.name
        return {**own, "supervisor": kept / "supervisor.stderr.log"}

    @property
    def used(self) -> bool:
        """Whether a daemon has ever worked here."""
        return self.trainer.is_dir()

    def make(self) -> None:
        """Create the folders that must exist, or say which one cannot be used."""
        for folder in (self.configs, self.runs, self.logs / "trainer", self.tensorboard):
            make_folder(folder)
        make_folder(self.secrets, mode=0o700)


def make_folder(folder: Path, mode: int = 0o755) -> None:
    """Create `folder` and check that it can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=mode)
    except OSError as error:
        raise StorageError(
            f"The folder {folder} cannot be made ({error.strerror}): "
            f"correct that, or set {VAR_VARIABLE} to another folder."
        ) from error
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise StorageError(
            f"The folder {folder} cannot be written: "
            f"change its permissions, or set {VAR_VARIABLE} to another folder."
        )
