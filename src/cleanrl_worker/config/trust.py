"""Modules and algorithms that are named by a file: importing one runs its code, so somebody has to have asked
for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.contract.errors import UntrustedModuleError, UserError
from mosaic.contract.paths import VarPaths, resolve_var

if TYPE_CHECKING:
    from cleanrl_worker.config.checkpoint_files import Origin

TRUSTED = "trust_modules"
"""The extra that lists what the user has said yes to."""
_NAMES_IN_KWARGS = ("env_id", "env", "id", "entry_point")


def module_of(env_id: object) -> str:
    """The module in `module:EnvId`, which is imported to make the environment; empty for none."""
    return env_id.rpartition(":")[0] if isinstance(env_id, str) else ""


def require_trust(
    path: Path, named: Iterable[object], kwargs: object = None, trusted: Iterable[str] = ()
) -> None:
    """Refuse to import what only a file names: `named` are environments, `kwargs` what they are made with.

    What the user submitted with the run that the file is of, by our own record of it, may be imported.
    """
    inner = [kwargs.get(name) for name in _NAMES_IN_KWARGS] if isinstance(kwargs, Mapping) else []
    modules = dict.fromkeys(filter(None, map(module_of, (*named, *inner))))
    foreign = [module for module in modules if module not in set(trusted)]
    if foreign and (foreign := [module for module in foreign if module not in set(_submitted(path))]):
        raise UntrustedModuleError(
            f"{path} names the module '{foreign[0]}', whose code would be run: name the environment "
            f"yourself, or add --trust {foreign[0]} ('{TRUSTED}' in a config) if you know it.",
            foreign[0],
        )


def require_trusted_algorithm(origin: Origin, trusted: Iterable[str] = ()) -> None:
    """Refuse to import the file of an algorithm that only a checkpoint or a policy names."""
    if origin.file is None or origin.algo in set(trusted) or origin.file.path in set(_submitted(origin.path)):
        return
    raise UntrustedModuleError(
        f"{origin.path} names the algorithm {origin.algo}, whose code would be run: name the algorithm "
        f"yourself, or add --trust {origin.algo} ('{TRUSTED}' in a config) if you know it.",
        str(origin.algo),
    )


def trusted_in(extras: Mapping[str, Any]) -> list[str]:
    """The modules that a config allows a file to name."""
    given = extras.get(TRUSTED) or []
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise UserError(f"'extras.{TRUSTED}' is {given!r:.80}, but it must be a list of modules.")
    return given


def _submitted(path: Path) -> Iterator[str]:
    """The modules that the run to which a file belongs was submitted with."""
    paths = VarPaths(resolve_var())
    try:
        run_id = path.resolve().relative_to(paths.runs.resolve()).parts[0]
        config = json.loads(paths.run_config(run_id).read_bytes())["metadata"]["worker"]["config"]
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return
    extras = config.get("extras") or {}
    yield str(config.get("algo"))
    yield module_of(config.get("env_id"))
    yield from map(module_of, environments_in(extras.get("curriculum_schedule")))
    yield from map(module_of, (extras.get("env_kwargs") or {}).values())
    yield from extras.get(TRUSTED) or []


def environments_in(curriculum: Any) -> list[object]:
    """The environments of a curriculum in whatever form it is written."""
    from cleanrl_worker.curriculum.schedule import parse_schedule

    schedule = parse_schedule(curriculum)
    return [] if schedule is None else [stage.env_id for stage in schedule.stages]
