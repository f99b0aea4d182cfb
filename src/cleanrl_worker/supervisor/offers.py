"""What this worker can train, and whether a config of it can run: the same for CLI, daemon and dry run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cleanrl_worker.config.checkpoint_files import find_origin, locate
from cleanrl_worker.config.policy_files import each_policy, find_policy
from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY
from cleanrl_worker.config.resuming import explain, require_trusted_algorithm
from cleanrl_worker.config.script_flags import ENV_NAMES, looks_foreign
from cleanrl_worker.config.scripts import flags_of
from cleanrl_worker.config.shell_scripts import describe_script, is_shell_script, list_scripts
from cleanrl_worker.config.worker_config import parse_worker_config
from cleanrl_worker.curriculum.schedule import PRESETS
from cleanrl_worker.schemas import ParamSchema, algorithms, load_schema
from cleanrl_worker.schemas.environments import check_fit, find_environment, load_environments
from cleanrl_worker.schemas.spaces import describe_for_people
from cleanrl_worker.supervisor.inspection import inspect
from mosaic.contract.capabilities import CheckpointFacts, EnvironmentFacts, PolicyFacts
from mosaic.contract.errors import UntrustedModuleError, UserError

_FIELD_FLAGS = ("total_timesteps", "seed", "cuda", "track", "wandb_project_name", "wandb_entity")
"""What a run says itself, by options of its own."""
_PAGES = Path(__file__).parents[1] / "algorithms" / "pages"


class CleanRLCatalog:
    """The `WorkerCatalog` of this package."""

    def algorithms(self) -> list[str]:
        return list(algorithms())

    def knows(self, algo: str) -> bool:
        # Not by its schema: one that is broken is known too, and tells what is wrong with it.
        return algo in DEFAULT_ALGO_REGISTRY or looks_foreign(algo)

    def parameters(self, algo: str) -> Sequence[ParamSchema]:
        """Those of an algorithm; of somebody's script the flags that its source tells."""
        schema = load_schema(algo)
        if schema is not None:
            return schema.parameters
        flags = (
            flags_of(algo, None, Path.cwd()) if looks_foreign(algo) and not is_shell_script(algo) else None
        )
        found = flags.flags.items() if flags else ()
        own = (*ENV_NAMES, *_FIELD_FLAGS)
        return [replace(one.schema, name=name, runtime_only=name in own) for name, one in found if one.schema]

    def scripts(self) -> list[dict[str, Any]]:
        return [script.as_json() for script in list_scripts()]

    def is_script(self, algo: str) -> bool:
        return is_shell_script(algo)

    def script(self, name: str, folder: Path) -> dict[str, Any]:
        """What one script's head says, by the script's name or path."""
        return describe_script(name, folder).as_json()

    def default_timesteps(self, algo: str) -> int | None:
        schema = load_schema(algo)
        parameter = schema.parameter("total_timesteps") if schema else None
        return int(parameter.default or 0) if parameter else None

    def environments(self) -> Sequence[str]:
        return list(load_environments())

    def environment_facts(self) -> Sequence[EnvironmentFacts]:
        """Family, optional set and spaces of every environment."""
        return [
            EnvironmentFacts(
                one.env_id, one.family, one.extra, describe_for_people(one.observation, one.action)
            )
            for one in load_environments().values()
        ]

    def summary(self, algo: str) -> str:
        """One line about an algorithm; of one that is broken, what is wrong with it."""
        try:
            schema = load_schema(algo)
        except UserError as error:
            return str(error)
        return schema.help if schema else ""

    def page(self, algo: str) -> Path | None:
        """The page about an algorithm."""
        path = _PAGES / f"{algo}.md"
        return path if algo in DEFAULT_ALGO_REGISTRY and path.is_file() else None

    def misfit(self, algo: str, env_id: str) -> str:
        """Why an algorithm cannot train on an environment."""
        entry = find_environment(env_id)
        if entry is None:
            return ""
        try:
            check_fit(algo, entry)
        except UserError as error:
            return str(error)
        return ""

    def curricula(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The presets."""
        return PRESETS

    def checkpoint(self, name: str, folder: Path) -> CheckpointFacts:
        """What a run can go on from, by the path of a file or folder or by a run's id."""
        origin = find_origin(locate(name, folder))
        try:
            require_trusted_algorithm(origin)
        except UntrustedModuleError:
            # Whoever says yes to its file names it.
            origin = replace(origin, algo=None)
        total = origin.args.get("total_timesteps") if origin.step is not None else None
        env_id = origin.args.get("env_id")
        return CheckpointFacts(str(origin.path), origin.algo, env_id, origin.step, total, {**origin.args})

    def policies(self, var: Path, run: str = "") -> Iterator[PolicyFacts]:
        """Every policy under a var folder, of the newest run first; with `run` of runs whose id begins so."""
        return each_policy(var, run)

    def policy(self, name: str, folder: Path, var: Path | None = None) -> PolicyFacts:
        """The policy that a path or a run's id means."""
        return find_policy(name, folder, var)

    def explain_resume(self, config: Mapping[str, Any]) -> str:
        """One line about what a checked config restores and what it does not."""
        parsed = parse_worker_config(config)
        return explain(find_origin(Path(parsed.extras["checkpoint_path"])), parsed)

    def check(self, config: Mapping[str, Any], python: str | None, folder: Path | None) -> dict[str, Any]:
        """The config with typed values; with `folder`, the training interpreter may be asked too."""
        found = inspect(config, python, folder)
        found.require_extras()
        return found.config.as_json()

    def warning(self, config: Mapping[str, Any]) -> str:
        """What will come of a config that is right, but hardly meant."""
        return inspect(config, None, None).warning

    def describe(
        self, config: Mapping[str, Any], python: str | None, folder: Path, typed: Collection[str]
    ) -> dict[str, Any]:
        """Everything about a run that can be told without starting it."""
        # The daemon, which checks every run, describes none.
        from cleanrl_worker.supervisor.dry_run import describe

        return describe(config, python, folder, typed)


CATALOG = CleanRLCatalog()
