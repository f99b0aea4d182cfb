"""What this worker can train, and whether a config of it can run: the same for CLI, daemon and dry run."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cleanrl_worker.config.checkpoint_files import Origin, find_origin, locate
from cleanrl_worker.config.footprint import device, estimated_memory
from cleanrl_worker.config.live import LiveSettings
from cleanrl_worker.config.modes import MODE_SETTINGS, MODE_TARGETS, RESUME
from cleanrl_worker.config.policy_files import each_policy, find_policy
from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY
from cleanrl_worker.config.resuming import TUNABLE, explain, require_trusted_algorithm
from cleanrl_worker.config.scripts import ENV_NAMES, flags_of, looks_foreign
from cleanrl_worker.config.shell_scripts import (
    describe_script,
    is_shell_script,
    list_scripts,
    names_environment,
)
from cleanrl_worker.config.worker_config import CleanRLWorkerConfig, parse_worker_config
from cleanrl_worker.curriculum.schedule import PRESETS
from cleanrl_worker.schemas.environments import (
    EXTRAS,
    FAMILIES,
    check_fit,
    choose_backend,
    find_environment,
    find_takers,
    load_environments,
)
from cleanrl_worker.schemas.model import known_schema, load_schema
from cleanrl_worker.schemas.spaces import describe_for_people
from cleanrl_worker.supervisor.arguments import RuntimeSummary, make_plan
from cleanrl_worker.supervisor.inspection import Inspection, inspect, values_of
from cleanrl_worker.supervisor.manifest import versions
from mosaic.contract import words
from mosaic.contract.capabilities import CheckpointFacts, EnvironmentFacts, EnvironmentFamily, ParamSchema
from mosaic.contract.errors import UntrustedModuleError, UserError
from mosaic.contract.extras import is_installed, require_extra

_TOLD_VERSIONS = ("mosaic", "python", "torch", "gymnasium", "numpy")
_WITH_OPENGL = ("mujoco", "dm_control")


def _environment(found: Inspection) -> dict[str, Any]:
    entry = found.entry
    if entry is None:
        return {"env_id": found.config.env_id, "known": False}
    facts = ("family", "extra", "observation", "action", "max_episode_steps")
    return {"env_id": entry.env_id, "known": True, **{name: getattr(entry, name) for name in facts}}


def _pictures(found: Inspection, python: str | None) -> dict[str, Any]:
    """Whether live pictures will come (None where that is not known), and why not with what to do."""
    entry = found.entry
    if LiveSettings.from_extras(found.config.extras).mode == "off":
        return _no_pictures("they are off for this run")
    if entry is None or python is not None:
        who = "the script" if entry is None else python
        return {"come": None, "reason": f"that depends on what {who} can draw", "install": None}
    if not entry.draws:
        return _no_pictures(f"{entry.env_id} has no render mode 'rgb_array'")
    name = entry.drawn_by
    # Of two packages with the same module the set asks for one, and either draws.
    drawn = find_spec("pygame") is not None if name == "classic" else name is None or is_installed(name)
    if not drawn:
        install = f"mosaic extras install {name}"
        return _no_pictures(f"drawing {entry.env_id} needs the optional set '{name}'", install)
    if name in _WITH_OPENGL and not _has_opengl():
        return _no_pictures(
            f"{entry.env_id} is drawn with libEGL.so.1 or on a screen", "apt-get install libegl1"
        )
    return {"come": True, "reason": "", "install": None}


def _no_pictures(reason: str, install: str | None = None) -> dict[str, Any]:
    return {"come": False, "reason": reason, "install": install}


def _has_opengl() -> bool:
    """Whether MuJoCo finds something to draw with: a screen, or the library that needs none."""
    if any(os.environ.get(name) for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY")):
        return True
    try:
        ctypes.CDLL("libEGL.so.1")
    except OSError:
        return False
    return True


def _policy(origin: Origin) -> dict[str, Any]:
    return {
        "path": str(origin.path),
        "algo": origin.algo,
        "env_id": origin.args.get("env_id"),
        "step": origin.step,
    }


def _findings(found: Inspection, python: str | None) -> dict[str, Any]:
    """What a check has found, to be kept with the run."""
    config, script, origin = found.config, found.script, found.origin
    environment, pictures = _environment(found), _pictures(found, python)
    params, played = config.extras.get("algo_params") or {}, config.mode in MODE_TARGETS
    schema = load_schema(config.algo) if script.ours and not played else None
    rows: list[tuple[str, object]] = [
        ("script", None if script.has_main else script.target),
        ("parameters", schema and f"{len(params)} of the {len(schema.parameters)} of {schema.name} given"),
        ("plays" if played else "goes on from", origin and origin.path),
        ("environment", environment["env_id"]),
    ]
    if found.entry is not None:
        entry = found.entry
        limit = f", up to {entry.max_episode_steps:,} steps" if entry.max_episode_steps else ""
        rows.append(("spaces", describe_for_people(entry.observation, entry.action, entry.players) + limit))
    # A policy is played with settings of its own, not with parameters of its algorithm.
    if script.has_main and not played:
        values = values_of(config, origin) | _values(config)
        where, memory = device(values, script.ours), estimated_memory(values, found.entry)
        rows += [
            ("device", f"{where['name']} ({where['reason']})"),
            ("memory", memory and f"about {memory['total']:,} MB"),
        ]
    installed = versions()
    told = python or ", ".join(f"{name} {installed[name]}" for name in _TOLD_VERSIONS if name in installed)
    rows += [("pictures", words.pictures_text(pictures)), ("with", told), ("mind", found.warning)]
    return {
        "python": python,
        "versions": installed,
        "environment": environment,
        "warning": found.warning,
        "rows": [[name, str(told)] for name, told in rows if told],
    }


def _list_parameters(
    plan: RuntimeSummary, asked: CleanRLWorkerConfig, typed: Collection[str]
) -> list[dict[str, Any]]:
    """All parameters of what would run, each with its source: `default`, `config`, `cli`, or `checkpoint` if
    a resumed run has it from there. `asked` is the config as it was given."""
    used, given = _values(plan.config), _values(asked)
    sources = {name: "cli" if name in typed else "config" for name in given}
    found = {}
    for schema in _schemas(plan):
        usual = "checkpoint" if schema.name in used else "default"
        found[schema.name] = used.get(schema.name, schema.default), sources.get(schema.name, usual)
    unnamed = plan.script.kind == "shell" and not names_environment(plan.script.head, asked.env_id)
    for name in given:
        if not (unnamed and name == "env_id"):
            found.setdefault(name, (given[name], sources[name]))
    return [{"name": name, "value": value, "source": source} for name, (value, source) in found.items()]


def _schemas(plan: RuntimeSummary) -> tuple[ParamSchema, ...]:
    if plan.script.kind == "mode":
        return MODE_SETTINGS[plan.config.mode]
    schema = load_schema(plan.config.algo) if plan.script.ours else None
    # The plan has a checkpoint of its own place: it stands beside the parameters.
    return tuple(one for one in schema.parameters if one.name != "resume_from") if schema else ()


def _values(config: CleanRLWorkerConfig) -> dict[str, Any]:
    """What a config says, by the names of parameters."""
    extras = config.extras
    said = {
        **config.named_values(),
        "cuda": extras.get("cuda", extras.get("use_cuda")),
        "track": extras.get("track_wandb"),
        "wandb_project_name": extras.get("wandb_project_name") or extras.get("wandb_project"),
        "wandb_entity": extras.get("wandb_entity"),
        "env_kwargs": extras.get("env_kwargs"),
        "curriculum": extras.get("curriculum_schedule"),
    }
    settings = {
        one.name: extras[one.name] for one in MODE_SETTINGS.get(config.mode, ()) if one.name in extras
    }
    params = {name.replace("-", "_"): value for name, value in (extras.get("algo_params") or {}).items()}
    plain = {name: value for name, value in said.items() if value is not None}
    return {**plain, **config.flags(), **settings, **params}


_FIELD_FLAGS = ("total_timesteps", "seed", "cuda", "track", "wandb_project_name", "wandb_entity")
"""What a run says itself, by options of its own."""
_PAGES = Path(__file__).parents[1] / "algorithms" / "pages"


class CleanRLCatalog:
    """The `WorkerCatalog` of this package."""

    scripts = staticmethod(list_scripts)
    is_script = staticmethod(is_shell_script)
    script = staticmethod(describe_script)
    policies = staticmethod(each_policy)
    policy = staticmethod(find_policy)

    def algorithms(self) -> list[str]:
        return list(DEFAULT_ALGO_REGISTRY)

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
        return [replace(one.schema, name=name, runtime_only=name in own) for name, one in found]

    def changeable(self, algo: str) -> Sequence[str]:
        """The parameters that may have other values in a resumed run."""
        schema = load_schema(algo)
        return [one.name for one in schema.parameters if one.name in TUNABLE] if schema else []

    def default_timesteps(self, algo: str) -> int | None:
        schema = load_schema(algo)
        parameter = schema.parameter("total_timesteps") if schema else None
        return int(parameter.default or 0) if parameter else None

    def environments(self) -> Sequence[str]:
        return list(load_environments())

    def environment_families(self) -> Sequence[EnvironmentFamily]:
        return list(FAMILIES.values())

    def environment_facts(self) -> Sequence[EnvironmentFacts]:
        """Family, optional set, spaces, backends and algorithms of every environment."""
        algorithms, order = self.algorithms(), list(FAMILIES)
        return [
            EnvironmentFacts(
                one.env_id,
                one.family,
                FAMILIES[one.family].title,
                one.extra,
                describe_for_people(one.observation, one.action, one.players),
                one.max_episode_steps,
                {backend: EXTRAS.get(backend) for backend in one.backends},
                find_takers(algorithms, one),
            )
            for one in sorted(load_environments().values(), key=lambda one: order.index(one.family))
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
        try:
            if entry is not None:
                check_fit(algo, entry)
        except UserError as error:
            return str(error)
        return ""

    def requirements(self, algo: str, env_backend: str) -> Sequence[str]:
        schema = known_schema(algo)
        if schema is None:
            return ()
        compiled = EXTRAS.get(choose_backend(env_backend, schema.env_backend))
        return [*schema.requires, *filter(None, [compiled])]

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

    def explain_resume(self, config: Mapping[str, Any]) -> str:
        """One line about what a checked config restores and what it does not."""
        parsed = parse_worker_config(config)
        return explain(find_origin(Path(parsed.extras["checkpoint_path"])), parsed)

    def check(self, config: Mapping[str, Any], python: str | None, folder: Path | None) -> dict[str, Any]:
        """The config with typed values; with `folder`, the training interpreter may be asked too."""
        return self._checked(config, python, folder).config.as_json()

    def examine(
        self, config: Mapping[str, Any], python: str | None, folder: Path | None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The same, and what was found."""
        found = self._checked(config, python, folder)
        return found.config.as_json(), _findings(found, python)

    def _checked(self, config: Mapping[str, Any], python: str | None, folder: Path | None) -> Inspection:
        found = inspect(config, python, folder)
        for name, for_what in found.missing:
            # Nothing is installed by itself.
            require_extra(name, for_what)
        return found

    def warning(self, config: Mapping[str, Any]) -> str:
        """What will come of a config that is right, but hardly meant."""
        return inspect(config, None, None).warning

    def describe(
        self, config: Mapping[str, Any], python: str | None, folder: Path, typed: Collection[str]
    ) -> dict[str, Any]:
        """Everything about a run that can be told without starting it, as JSON holds it; a UserError when the
        config is wrong. `typed` are the names of parameters that were said on a command line."""
        found = inspect(config, python, folder)
        resumed = found.origin if found.config.mode == RESUME else None
        plan = make_plan(found.config, found.script, resumed, python)
        parameters = _list_parameters(plan, found.config, typed)
        schedule = found.config.schedule()
        by_name = {one["name"]: one["value"] for one in parameters}
        used, shown = plan.config, ("tensorboard_dir", "eval_batch_size", "eval_repeat")
        return {
            "run_id": used.run_id,
            "algo": used.algo,
            "env_id": used.env_id,
            "mode": used.mode,
            "resumed_from": plan.resumed_from(),
            "module": found.script.target,
            "args": plan.arguments,
            "command": plan.command,
            "config": used.as_json(),
            "extras": {name: used.extras.get(name) for name in shown},
            "kind": found.script.kind,
            "environment": _environment(found),
            "parameters": parameters,
            "device": device(by_name, found.script.ours) if found.script.has_main else None,
            "estimated_memory_mb": estimated_memory(by_name, found.entry) if found.script.has_main else None,
            "curriculum": schedule.as_json() if schedule is not None else None,
            "policy": _policy(found.origin) if found.origin is not None and resumed is None else None,
            "script": found.script.head.as_json() if found.script.kind == "shell" else None,
            "pictures": _pictures(found, python),
            "warning": found.warning,
            "missing_extras": [
                {"name": name, "needed_by": what, "install": f"mosaic extras install {name}"}
                for name, what in found.missing
            ],
        }


CATALOG = CleanRLCatalog()
