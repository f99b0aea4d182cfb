"""The shape of a schema: an algorithm, its parameters, the spaces it takes."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY, find_algorithm_file, is_path
from mosaic.contract.atomic import write_json
from mosaic.contract.capabilities import ParamSchema
from mosaic.contract.errors import UserError
from mosaic.contract.outside import read_json
from mosaic.contract.paths import resolve_var
from mosaic.worker.environment import surroundings


@dataclass(frozen=True)
class AlgoSchema:
    """One algorithm's parameters in the order of its file, and the kinds of spaces it can train on."""

    name: str
    help: str
    action_spaces: tuple[str, ...]
    observation_spaces: tuple[str, ...]
    parameters: tuple[ParamSchema, ...]
    requires: tuple[str, ...] = ()
    """The optional sets that it needs installed."""
    exact: bool = True
    """Whether a resumed run goes on to the byte."""
    env_backend: str = "python"
    """What `auto` means among its backends."""
    wraps: bool = False
    """Whether it prepares what environments show, which compiled backends do for Atari games only."""
    several_players: bool = False
    """Whether it trains all players of a game, and not one agent."""
    masks: bool = False
    """Whether it asks environments which actions they allow."""

    def parameter(self, name: str) -> ParamSchema | None:
        """The parameter called `name`, or None; hyphens and underscores are the same."""
        wanted = name.replace("-", "_")
        return next((parameter for parameter in self.parameters if parameter.name == wanted), None)

    @classmethod
    def from_json(cls, name: str, data: Mapping[str, Any]) -> AlgoSchema:
        lists = {key: tuple(value) for key, value in data.items() if isinstance(value, list)}
        parameters = tuple(ParamSchema.from_json(parameter) for parameter in data["parameters"])
        return cls(**{**data, **lists, "name": name, "parameters": parameters})


SCHEMAS_FILE = Path(__file__).with_name("schemas.json")
SECONDS = 60.0
"""How long an algorithm of somebody else's may take to be imported."""
_LOADER = "cleanrl_worker.kit.loading"
_known: dict[str, AlgoSchema] = {}


@functools.cache
def _schemas() -> dict[str, AlgoSchema]:
    data = json.loads(SCHEMAS_FILE.read_text("utf-8"))
    return {name: AlgoSchema.from_json(name, entry) for name, entry in data.items()}


def shipped_algorithms() -> list[str]:
    """The names of those that are known without asking anybody."""
    return [name for name in _schemas() if name in DEFAULT_ALGO_REGISTRY]


def remember(algo: str, schema: AlgoSchema) -> None:
    """Know what an algorithm takes that this process has loaded itself."""
    _known[algo] = schema


def load_schema(algo: str) -> AlgoSchema | None:
    """What `algo` takes, or None for a script that is not an algorithm of ours, of a plug-in or on the kit.

    One that nobody knows yet is imported in a process of its own; a UserError says what is wrong with it.
    """
    found = known_schema(algo)
    if found is None and (target := _target(algo)) is not None:
        found = _make(algo, target)
    return found


def known_schema(algo: str) -> AlgoSchema | None:
    """The same as far as it can be told at once."""
    found = _known.get(algo) or _schemas().get(algo)
    if found is None and (target := _target(algo)) is not None:
        found = _read(target)
    return found


def _target(algo: str) -> str | None:
    """The module or the file of an algorithm that is not described in schemas.json."""
    return find_algorithm_file(algo) if is_path(algo) else DEFAULT_ALGO_REGISTRY.get(algo)


def _place(target: str) -> Path:
    # Our own schemas change when the arguments change that every algorithm has.
    key = hashlib.sha256(SCHEMAS_FILE.read_bytes() + target.encode())
    return resolve_var() / "cache" / "schemas" / f"{key.hexdigest()}.json"


def _read(target: str) -> AlgoSchema | None:
    """What was kept, if all files that it was made from are still the same."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = read_json(_place(target))
        if kept["files"] and all(_hash(path) == was for path, was in kept["files"].items()):
            return AlgoSchema.from_json(kept["schema"]["name"], kept["schema"])
    return None


def _make(algo: str, target: str) -> AlgoSchema:
    answer = _ask(target)
    if "error" in answer:
        named = "" if is_path(algo) else f"The algorithm '{algo}' of another package: "
        raise UserError(f"{named}{answer['error']}")
    files = {path: _hash(path) for path in answer["files"]}
    with suppress(OSError):
        _place(target).parent.mkdir(parents=True, exist_ok=True)
        write_json(_place(target), {"schema": answer["schema"], "files": files})
    return AlgoSchema.from_json(answer["schema"]["name"], answer["schema"])


def _hash(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _ask(target: str) -> dict[str, Any]:
    """What a process says that imports an algorithm; it and all that it started end with its answer."""
    name = Path(target).name if is_path(target) else target
    with subprocess.Popen(
        [sys.executable, "-P", "-m", _LOADER, "--schema", target],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=surroundings(),
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return {
                "error": (
                    f"{name} was not imported within {SECONDS:.0f} s: move slow code from its top level "
                    "into `train`."
                )
            }
        finally:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
    try:
        answer: Mapping[str, Any] = json.loads(out.splitlines()[-1])
    except (ValueError, IndexError):
        last = (err.decode(errors="replace").strip().splitlines() or ["it printed no reason"])[-1]
        return {"error": f"{name} ends the process that imports it (exit code {process.returncode}): {last}"}
    return dict(answer)
