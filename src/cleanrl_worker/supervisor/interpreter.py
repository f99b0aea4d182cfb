"""Questions to the training interpreter about environments and modules that no catalog knows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cleanrl_worker.schemas.environments import EnvironmentEntry
from mosaic.contract.errors import UserError
from mosaic.worker.environment import FOLDER_VARIABLE

_PROBE = Path(__file__).parents[1] / "portable" / "probe.py"
_SECONDS = 60.0


class Prober:
    """Asks one interpreter, with the user's folder on its path."""

    def __init__(self, python: str | None, folder: Path | None) -> None:
        self._python = python or sys.executable
        self._folder = folder or Path.cwd()

    def environment(
        self, env_id: str, env_kwargs: Mapping[str, Any] | None = None, backend: str = "python"
    ) -> EnvironmentEntry:
        """The spaces of an environment as a backend has it, or a UserError with the interpreter's reason."""
        kwargs = json.dumps(dict(env_kwargs or {}))
        answer = self._ask(env_id, str(_PROBE), "env", env_id, "--kwargs", kwargs, "--backend", backend)
        return EnvironmentEntry.from_json(env_id, answer)

    def check_module(self, name: str) -> None:
        """Raise UserError when the interpreter cannot find the module."""
        if not self.has_module(name):
            raise UserError(
                f"{self._python} has no module '{name}': install it there, or give a file's path."
            )

    def check_model(
        self, path: Path, algo: str, env_id: str, env_kwargs: Mapping[str, Any] | None = None
    ) -> None:
        """Raise UserError when a model file does not fit an algorithm and an environment."""
        kwargs = json.dumps(dict(env_kwargs or {}))
        self._ask(str(path), "-P", "-m", "cleanrl_worker.evaluation.models", str(path), algo, env_id, kwargs)

    def has_module(self, name: str) -> bool:
        """Whether the interpreter finds a module."""
        return bool(self._ask(name, str(_PROBE), "module", name).get("found"))

    def _ask(self, what: str, *question: str) -> dict[str, Any]:
        environment = {**os.environ, FOLDER_VARIABLE: str(self._folder)}
        try:
            done = subprocess.run(
                [self._python, *question],
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                cwd=self._folder,
                env=environment,
            )
            answer = json.loads(done.stdout.strip().splitlines()[-1])
        except OSError as error:
            raise UserError(f"The interpreter {self._python} cannot be started: {error.strerror}.") from error
        except subprocess.TimeoutExpired as error:
            raise UserError(f"{self._python} did not answer about '{what}' in {_SECONDS:.0f} s.") from error
        except (ValueError, IndexError) as error:
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise UserError(f"{self._python} cannot tell about '{what}': {last}") from error
        if "error" in answer:
            raise UserError(str(answer["error"]))
        return dict(answer)
