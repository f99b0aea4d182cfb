"""What a supervisor's environment tells, and what of it a training process may see."""

from __future__ import annotations

import os
from pathlib import Path

from mosaic.contract.connection import SECRET_VARIABLE
from mosaic.contract.paths import RunPaths
from mosaic.contract.secrets import HIDDEN_VARIABLE, mask, reference, worth_hiding

PYTHON_VARIABLE = "MOSAIC_TRAINING_PYTHON"
USER_PATH_VARIABLE = "MOSAIC_USER_PATH"
FOLDER_VARIABLE = "MOSAIC_USER_FOLDER"
"""The user's own folder, for a training process: it comes last on its path, so that it hides nothing."""

# Ours: they would lead another interpreter, or the script, to what is not theirs.
_NOT_FOR_TRAINING = (
    *(SECRET_VARIABLE, HIDDEN_VARIABLE, USER_PATH_VARIABLE, PYTHON_VARIABLE),
    *("PYTHONHOME", "PYTHONSTARTUP"),
)


def user_places() -> list[Path]:
    """Where the user's own modules lie: the folder from which the run was submitted, then PYTHONPATH."""
    named = os.environ.get(USER_PATH_VARIABLE)
    if not named:
        named = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    return [Path(place) for place in named.split(os.pathsep) if place]


def user_folder() -> Path:
    """The folder from which the run was submitted, or in which its worker was started by hand."""
    return user_places()[0]


def surroundings() -> dict[str, str]:
    """The user's surroundings for a training process, with the user's own PYTHONPATH; no secret of ours."""
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_TRAINING}
    folder, *others = map(str, user_places())
    return environment | {FOLDER_VARIABLE: folder, "PYTHONPATH": os.pathsep.join(others)}


def without_secrets(text: str) -> str:
    """A text that may be kept: the run's secrets in it are named only."""
    for name, value in worth_hiding(_secrets()):
        text = text.replace(value, reference(name))
    return text


def mask_logs(paths: RunPaths) -> None:
    """Put stars over the run's secrets in what its script has printed."""
    # Clients of trackers have logs of their own, in which a user may have asked for everything.
    trackers = (*paths.logs.glob("tracking-*.log"), *paths.run_dir.glob("wandb/*run-*/logs/*.log"))
    for log in (paths.stdout, paths.stderr, *trackers):
        mask(log, _secrets())


def _secrets() -> dict[str, str]:
    names = os.environ.get(HIDDEN_VARIABLE, "").split(",")
    return {name: os.environ[name] for name in names if name in os.environ}
