"""What this worker can train, and whether a config of it can run: the same for CLI, daemon and dry run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cleanrl_worker.checkpoint_files import find_origin, locate
from cleanrl_worker.config import CleanRLWorkerConfig, parse_worker_config
from cleanrl_worker.probing import Prober
from cleanrl_worker.resuming import RESUME, check_resume, explain
from cleanrl_worker.schemas import ParamSchema, algorithms, check_params, load_schema
from cleanrl_worker.schemas.catalog import (
    EnvironmentEntry,
    check_environment,
    check_fit,
    find_environment,
    load_environments,
)
from cleanrl_worker.scripts import Script, looks_foreign, resolve_script
from mosaic.contract.capabilities import CheckpointFacts
from mosaic.contract.errors import UserError
from mosaic.contract.extras import require_extra

_FOREIGN_TIMESTEPS = 500_000


class CleanRLCatalog:
    """The `WorkerCatalog` of this package."""

    def algorithms(self) -> list[str]:
        return list(algorithms())

    def knows(self, algo: str) -> bool:
        return load_schema(algo) is not None or looks_foreign(algo)

    def parameters(self, algo: str) -> Sequence[ParamSchema]:
        schema = load_schema(algo)
        return schema.parameters if schema else ()

    def default_timesteps(self, algo: str) -> int:
        schema = load_schema(algo)
        parameter = schema.parameter("total_timesteps") if schema else None
        return int(parameter.default or 0) if parameter else _FOREIGN_TIMESTEPS

    def environments(self) -> Sequence[str]:
        return list(load_environments())

    def checkpoint(self, name: str, folder: Path) -> CheckpointFacts:
        """What a run can go on from, by the path of a file or folder or by a run's id."""
        origin = find_origin(locate(name, folder))
        total = origin.args.get("total_timesteps") if origin.step is not None else None
        return CheckpointFacts(str(origin.path), origin.algo, origin.args.get("env_id"), origin.step, total)

    def explain_resume(self, config: Mapping[str, Any]) -> str:
        """One line about what a checked config restores and what it does not."""
        parsed = parse_worker_config(config)
        return explain(find_origin(Path(parsed.extras["checkpoint_path"])), parsed)

    def check(self, config: Mapping[str, Any], python: str | None, folder: Path | None) -> dict[str, Any]:
        """The config with typed values; with `folder`, the training interpreter may be asked too."""
        parsed = parse_worker_config(config, folder)
        script = resolve_script(parsed, folder)
        if parsed.mode == RESUME:
            check_resume(parsed, find_origin(Path(parsed.extras["checkpoint_path"])))
        extras = dict(parsed.extras)
        if script.ours:
            params = check_params(parsed.algo, extras.pop("algo_params", None) or {})
            _refuse_runtime_only(parsed.algo, params)
            if params:
                extras["algo_params"] = params
        elif extras.get("env_kwargs"):
            raise UserError(
                "'extras.env_kwargs' needs one of our algorithms: a foreign script takes flags only."
            )
        target = script.target if script.is_file else parsed.algo
        checked = replace(parsed, algo=target, extras=extras)
        prober = Prober(python, folder) if folder is not None else None
        entry = self.environment(checked, script, prober, python)
        if entry is not None and script.ours:
            check_fit(checked.algo, entry)
        if prober is not None and python is None:
            _check_extras(checked, entry)
        if prober is not None and not script.ours and not script.is_file:
            prober.check_module(script.target)
        return checked.as_json()

    def environment(
        self, config: CleanRLWorkerConfig, script: Script, prober: Prober | None, python: str | None
    ) -> EnvironmentEntry | None:
        """What is known of the environment; UserError when nobody knows it."""
        if not script.ours or python is not None:
            # Another script or interpreter may know other environments: only it can tell.
            return find_environment(config.env_id)
        kwargs = config.extras.get("env_kwargs")
        if prober is None:
            return find_environment(config.env_id)
        if kwargs:
            return prober.environment(config.env_id, kwargs)
        return check_environment(config.env_id, probe=prober.environment)


def _refuse_runtime_only(algo: str, params: Mapping[str, Any]) -> None:
    """What the run fills in itself would be said twice, and one of the two would be wrong."""
    schema = load_schema(algo)
    for name in params:
        parameter = schema.parameter(name) if schema else None
        if parameter is not None and parameter.runtime_only:
            raise UserError(
                f"'{name}' is no parameter of {algo} but a property of the run: "
                f"say it as an option of its own (--{name.replace('_', '-')}) or in the config's '{name}'."
            )


def _check_extras(config: CleanRLWorkerConfig, entry: EnvironmentEntry | None) -> None:
    """Refuse a run that needs packages which are not there; nothing is installed by itself."""
    if entry is not None and entry.extra is not None:
        require_extra(entry.extra, entry.env_id)
    for name in config.extras.get("requirements") or []:
        if name != "base":
            require_extra(name, "This run")
    if (config.extras.get("algo_params") or {}).get("capture_video"):
        require_extra("video", "capture_video")
    if config.extras.get("track_wandb"):
        require_extra("wandb", "Tracking with Weights & Biases")


CATALOG = CleanRLCatalog()
