"""What a supervisor's environment tells, and what of it a training process may see."""

from __future__ import annotations

import os
from pathlib import Path

from mosaic.contract.connection import SECRET_VARIABLE

PYTHON_VARIABLE = "MOSAIC_TRAINING_PYTHON"
USER_PATH_VARIABLE = "MOSAIC_USER_PATH"

# Ours: they would lead another interpreter, or the script, to what is not theirs.
_NOT_FOR_TRAINING = (SECRET_VARIABLE, USER_PATH_VARIABLE, PYTHON_VARIABLE, "PYTHONHOME", "PYTHONSTARTUP")


def user_places() -> list[Path]:
    """Where the user's own modules lie: the folder from which the run was submitted, then PYTHONPATH."""
    named = os.environ.get(USER_PATH_VARIABLE) or os.environ.get("PYTHONPATH", "")
    return [Path(place) for place in named.split(os.pathsep) if place]


def user_folder() -> Path | None:
    """The folder from which the run was submitted, when that is known."""
    return user_places()[0] if os.environ.get(USER_PATH_VARIABLE) else None


def surroundings() -> dict[str, str]:
    """The user's surroundings for a training process, with the user's own PYTHONPATH; no secret of ours."""
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_TRAINING}
    user_path = os.environ.get(USER_PATH_VARIABLE)
    return environment | ({"PYTHONPATH": user_path} if user_path else {})
