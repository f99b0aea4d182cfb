"""Whether a config can run, found out without running it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cleanrl_worker.config.checkpoint_files import Origin, find_origin
from cleanrl_worker.config.footprint import check_memory
from cleanrl_worker.config.modes import MODE_TARGETS, POLICY_EVAL, RESUME, TRAIN
from cleanrl_worker.config.resuming import check_policy, check_resume, trusted_in, with_origin
from cleanrl_worker.config.scripts import Script, require_python, resolve_script
from cleanrl_worker.config.shell_scripts import check_shell_script
from cleanrl_worker.config.teachers import PARAMETER as TEACHER
from cleanrl_worker.config.teachers import find_teacher
from cleanrl_worker.config.worker_config import RESERVED_EXTRAS, CleanRLWorkerConfig, parse_worker_config
from cleanrl_worker.curriculum.schedule import check_budget, check_stages
from cleanrl_worker.curriculum.task_sampler import EXTRA as SYLLABUS
from cleanrl_worker.schemas.check import check_params, check_together, warn_together
from cleanrl_worker.schemas.environments import (
    EXTRAS,
    PYTHON,
    EnvironmentEntry,
    check_backend,
    check_environment,
    check_fit,
    check_seats,
    choose_backend,
    find_environment,
    gymnasium_id,
    load_environments,
)
from cleanrl_worker.schemas.model import known_schema, load_schema
from cleanrl_worker.supervisor.arguments import foreign_fields, platform_flags
from mosaic.contract.errors import UserError, closest
from mosaic.contract.extras import is_installed
from mosaic.contract.secrets import references_in
from mosaic.hub.account import require_account
from mosaic.worker.environment import FOLDER_VARIABLE, user_folder

_PROBE = Path(__file__).parents[1] / "portable" / "probe.py"
_SECONDS = 60.0


class Prober:
    """Asks one interpreter, with the user's folder on its path."""

    def __init__(self, python: str | None, folder: Path) -> None:
        self.other = python
        """The interpreter, if it is not ours."""
        self._python = python or sys.executable
        self._folder = folder

    def environment(
        self, env_id: str, env_kwargs: Mapping[str, Any] | None = None, backend: str = "python"
    ) -> EnvironmentEntry:
        """The spaces of an environment as a backend has it, or a UserError with the interpreter's reason."""
        kwargs = json.dumps(dict(env_kwargs or {}))
        answer = self._ask(env_id, str(_PROBE), "env", env_id, "--kwargs", kwargs, "--backend", backend)
        return EnvironmentEntry(env_id, **answer)

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

    def check_teacher(self, algo: str, values: Mapping[str, Any]) -> None:
        """Raise UserError when the teacher that these arguments name does not fit the student."""
        self._ask(
            str(values[TEACHER]), "-P", "-m", "cleanrl_worker.evaluation.teachers", algo, json.dumps(values)
        )

    def check_masks(self, algo: str, env_id: str, env_kwargs: Mapping[str, Any] | None, seed: int) -> None:
        """Raise UserError when the action mask that an episode begins with is none."""
        kwargs = json.dumps(dict(env_kwargs or {}))
        self._ask(env_id, "-P", "-m", "cleanrl_worker.kit.masks", algo, env_id, kwargs, str(seed))

    def has_module(self, name: str) -> bool:
        """Whether the interpreter finds a module."""
        return bool(self._ask(name, str(_PROBE), "module", name).get("found"))

    def _ask(self, what: str, *question: str) -> dict[str, Any]:
        command = [self._python, *question]
        environment = {**os.environ, FOLDER_VARIABLE: str(self._folder)}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_SECONDS, cwd=self._folder, env=environment
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
            raise (_Lacking if answer.get("lacking") else UserError)(str(answer["error"]))
        return dict(answer)


class _Lacking(UserError):
    """A backend does not have an environment."""


_OF_THE_RUN = ("track", "cuda", "wandb_project_name", "wandb_entity")
"""Parameters of our algorithms that a run may say among the others, and that are extras."""
_MAY_BE_SECRET = (
    "env_kwargs",
    "wandb_api_key",
    "wandb_http_proxy",
    "wandb_https_proxy",
    "mlflow_tracking_uri",
    "trackio_server_url",
    "optuna_db",
    "notes",
)
"""Extras that may be secrets with our own algorithms too."""
_LONGEST_NAME = 255
_LONGEST_PATH = 3000
"""The run's own folder comes before it."""
_LONGEST_EXPERIMENT = 200
"""Of a name's 255 bytes, what seed, time and the endings of files leave."""
_OPTIONS = {
    "seed": "--seed, or in the config's 'seed'",
    "env_id": "ENV or --env-id, or in the config's 'env_id'",
    "env_kwargs": "--env-kwargs, or in the config's 'extras.env_kwargs'",
    "curriculum": "--curriculum, or in the config's 'extras.curriculum_schedule'",
    "total_timesteps": "--total-timesteps, or in the config's 'total_timesteps'",
    "resume_from": "--resume, or in the config's 'extras.checkpoint_path'",
}
"""How what a run fills in itself is said."""


@dataclass(frozen=True)
class Inspection:
    """A config that was found right, and what was found out on the way."""

    config: CleanRLWorkerConfig
    """With typed values."""
    script: Script
    entry: EnvironmentEntry | None
    """What is known of the environment."""
    origin: Origin | None
    """The checkpoint or model that the run goes on from or plays."""
    missing: tuple[tuple[str, str], ...]
    """Optional sets that are not installed, each with what needs it."""
    warning: str = ""
    """What will come of the parameters, if that is hardly meant."""


def inspect(config: Mapping[str, Any], python: str | None, folder: Path | None) -> Inspection:
    """Check a config; a UserError says what is wrong. With `folder` the training interpreter may be asked."""
    parsed = parse_worker_config(config, folder)
    script = resolve_script(parsed, folder, python)
    if script.ours and folder is None and known_schema(parsed.algo) is None:
        # Only its own code can tell what it takes, and nobody is asked here: the training process checks it.
        return Inspection(parsed, script, None, None, ())
    prober = Prober(python, folder) if folder is not None else None
    origin = _find_origin(parsed)
    _check_secrets(parsed, script)
    _check_names(parsed, script)
    checked = _check_script(parsed, script, prober)
    backend = _find_backend(checked, script, origin)
    checked = replace(checked, env_id=gymnasium_id(checked.env_id, backend))
    stages = _find_stages(checked, script, prober)
    entry = _find_entry(checked, script, prober, backend)
    if script.has_main and entry is not None:
        check_fit(checked.algo, entry)
    warning = _check_values(checked, origin, entry) if script.ours else ""
    student = values_of(checked, origin) if script.ours and checked.mode in (TRAIN, RESUME) else {}
    if TEACHER in student:
        teacher = find_teacher(
            checked.algo, student, folder or user_folder(), entry, trusted_in(checked.extras)
        )
        student[TEACHER] = str(teacher.path)
        params = {**(checked.extras.get("algo_params") or {}), TEACHER: student[TEACHER]}
        checked = replace(checked, extras={**checked.extras, "algo_params": params})
    if origin is not None and checked.mode in MODE_TARGETS:
        check_policy(checked, origin, entry)
    if checked.extras.get("upload_model"):
        _check_upload(checked, student, asked=prober is not None)
    # Another interpreter has packages of its own.
    asks = prober is not None and python is None
    needed = dict(_needed(checked, script, [entry, *stages], backend)) if asks else {}
    missing = tuple((name, what) for name, what in needed.items() if not is_installed(name))
    if prober is not None and origin is not None and not origin.told and not missing:
        # Nobody has said what is in it, so only a look at its weights can tell whether it fits.
        prober.check_model(origin.path, checked.algo, checked.env_id, checked.extras.get("env_kwargs"))
    if prober is not None and TEACHER in student and asks and not missing:
        # Only a look at its network tells whether it fits.
        kwargs = json.dumps(checked.extras.get("env_kwargs") or {})
        prober.check_teacher(checked.algo, {**student, "env_id": checked.env_id, "env_kwargs": kwargs})
    schema = load_schema(checked.algo) if student and entry is not None else None
    seed = checked.effective_seed or 1
    if prober is not None and schema is not None and schema.masks and asks and not missing:
        prober.check_masks(checked.algo, checked.env_id, checked.extras.get("env_kwargs"), seed)
    return Inspection(checked, script, entry, origin, missing, warning)


def _find_backend(config: CleanRLWorkerConfig, script: Script, origin: Origin | None) -> str:
    """What steps the environments; UserError when it cannot do what else the run asks for."""
    schema = load_schema(config.algo)
    if not script.has_main or schema is None:
        return PYTHON
    known = origin.args if origin is not None else {}
    params = {**known, **(config.extras.get("algo_params") or {})}
    backend = choose_backend(str(params.get("env_backend", "auto")), schema.env_backend)
    if script.ours:
        curriculum = config.schedule() is not None
        check_backend(config.algo, backend, config.env_id, curriculum, bool(params.get("capture_video")))
    return backend


def _check_values(config: CleanRLWorkerConfig, origin: Origin | None, entry: EnvironmentEntry | None) -> str:
    """Raise UserError when parameters do not fit each other or this machine; gives a warning."""
    values = values_of(config, origin)
    check_together(values)
    if entry is not None:
        check_seats(int(values["num_envs"]), config.schedule() is not None, entry)
    check_memory(values, entry)
    return warn_together(values)


def values_of(config: CleanRLWorkerConfig, origin: Origin | None) -> dict[str, Any]:
    """All parameters of an algorithm of ours as a run of this config would have them."""
    schema = load_schema(config.algo)
    values = {one.name: one.default for one in schema.parameters} if schema is not None else {}
    whole = with_origin(config, origin) if origin is not None else config
    values |= whole.extras.get("algo_params") or {}
    return values | {"env_id": config.env_id, "total_timesteps": config.total_timesteps}


def _find_origin(config: CleanRLWorkerConfig) -> Origin | None:
    if config.mode in MODE_TARGETS:
        return find_origin(Path(config.extras["policy_path"]))
    if config.mode != RESUME:
        return None
    origin = find_origin(Path(config.extras["checkpoint_path"]))
    check_resume(config, origin)
    return origin


def _check_upload(config: CleanRLWorkerConfig, values: Mapping[str, Any], asked: bool) -> None:
    """Raise UserError when the run's model could not be uploaded; `asked` by who has the token."""
    if config.mode in MODE_TARGETS:
        raise UserError(f"'extras.upload_model' is for training: leave it out of mode {config.mode}.")
    if values.get("save_model") is False:
        raise UserError("The model is to be uploaded, but save_model is off: leave one of the two out.")
    if asked:
        require_account(config.extras.get("hf_entity"))


def _check_secrets(config: CleanRLWorkerConfig, script: Script) -> None:
    """Refuse a secret where nobody would look it up, and its reference would be taken for the value."""
    flags = ("algo_params", *config.flags()) if not script.has_main else ()
    for path, _ in references_in(config.as_json()):
        if path[0] != "extras" or path[1] not in (*_MAY_BE_SECRET, *flags):
            raise UserError(f"'{'.'.join(path)}' cannot be a secret for {config.algo}: give its value.")


def _check_names(config: CleanRLWorkerConfig, script: Script) -> None:
    """Refuse what no file system takes as the name of a file."""
    for name in ("tensorboard_dir", "checkpoints_dir", "optuna_db"):
        path = config.extras.get(name)
        parts = [part.encode() for part in path.split("/")] if isinstance(path, str) else []
        if (
            any(len(part) > _LONGEST_NAME for part in parts)
            or len(parts) + sum(map(len, parts)) > _LONGEST_PATH
        ):
            raise UserError(f"'extras.{name}' is too long to be a path: give a shorter one.")
    own = (config.extras.get("algo_params") or {}).get("exp_name", config.flags().get("exp_name"))
    if script.ours and isinstance(own, str) and len(own.encode()) + len(config.env_id) > _LONGEST_EXPERIMENT:
        raise UserError("'exp_name' is too long to be the name of a folder: give a shorter one.")


def _check_script(config: CleanRLWorkerConfig, script: Script, prober: Prober | None) -> CleanRLWorkerConfig:
    """The config with typed parameters and the script's own path."""
    extras = dict(config.extras)
    more = () if script.ours else ("eval_episodes",)
    for name in ("eval_batch_size", "eval_repeat", "eval_capture_video", *more):
        # What only an evaluation reads would be dropped in silence by a training.
        if script.kind != "mode" and extras.get(name):
            raise UserError(
                f"'extras.{name}' is a setting of mode {POLICY_EVAL}: leave it out of a training, or use "
                "`mosaic eval`."
            )
    if script.ours:
        extras = _typed_extras(config)
        schedule = config.schedule()
        # A preset may change with a release: the run keeps the stages that it begins with.
        extras |= {"curriculum_schedule": schedule.as_json()} if schedule is not None else {}
    elif extras.get("env_kwargs") and not script.has_main:
        raise UserError("'extras.env_kwargs' needs a built-in algorithm: a script takes only flags.")
    needed = "cleanrl_worker" if script.is_file else script.target.partition(":")[0]
    other = prober.other if prober is not None else None
    if script.has_main and prober is not None and other is not None and not prober.has_module(needed):
        raise UserError(
            f"{other} does not have MOSAIC, which '{config.algo}' is a part of: leave --python out, "
            "which is for scripts of your own."
        )
    if script.kind == "shell":
        check_shell_script(Path(script.target), script.head)
    if script.kind == "foreign":
        if script.target.endswith(".py") and other is None:
            require_python(Path(script.target))
        elif prober is not None and not script.is_file:
            prober.check_module(script.target)
        extras = _checked_flags(config, script)
    return replace(config, algo=script.target if script.is_file else config.algo, extras=extras)


def _typed_extras(config: CleanRLWorkerConfig) -> dict[str, Any]:
    """The extras of an algorithm of ours: all that it takes are parameters with their right types."""
    params = {**(config.extras.get("algo_params") or {})}
    own = config.extras.get("eval_episodes")
    if own is not None:
        params.setdefault("eval_episodes", own)
    for name, value in config.flags().items():
        schema = load_schema(config.algo)
        if schema is not None and schema.parameter(name) is None:
            hint = closest(name, [*RESERVED_EXTRAS, *(one.name for one in schema.parameters)])
            raise UserError(
                f"'extras.{name}' is neither a setting of the worker nor a parameter of {schema.name}"
                f"{hint or '; `mosaic train ' + config.algo + ' --help` lists them.'}"
            )
        params[name] = value
    # CleanRL's scripts have these as flags.
    said = {name: params.pop(name) for name in ("upload_model", "hf_entity") if name in params}
    taken = {"algo_params", "eval_episodes", *config.flags()}
    extras = said | {name: value for name, value in config.extras.items() if name not in taken}
    checked = check_params(config.algo, params)
    for name in _OF_THE_RUN:
        # The platform needs to know of these too.
        if name in checked:
            extras["track_wandb" if name == "track" else name] = checked.pop(name)
    for name in checked:
        # What the run fills in itself would be said twice, and one of the two would be wrong.
        if name in _OPTIONS:
            raise UserError(
                f"'{name}' is not a parameter of {Path(config.algo).name} but a property of the run: give "
                f"it as {_OPTIONS[name]}."
            )
    return extras | ({"algo_params": checked} if checked else {})


def _checked_flags(config: CleanRLWorkerConfig, script: Script) -> dict[str, Any]:
    """The extras of somebody's script, once each flag that it would be told was found among its own."""
    extras, name = dict(config.extras), Path(script.target).name
    for key, value in {**foreign_fields(config, script.flags), **platform_flags(extras, script)}.items():
        script.flags.check(name, key, value)
    params = extras.get("algo_params") or {}
    if params:
        extras["algo_params"] = {key: script.flags.check(name, key, value) for key, value in params.items()}
    for key, value in config.flags().items():
        extras[key] = script.flags.check(name, key, value)
    return extras


def _find_entry(
    config: CleanRLWorkerConfig, script: Script, prober: Prober | None, backend: str = PYTHON
) -> EnvironmentEntry | None:
    """What is known of the environment; UserError when nobody knows it, or its backend does not have it."""
    kwargs = config.extras.get("env_kwargs")
    if any(name not in os.environ for _, name in references_in(kwargs)):
        # Its secrets wait for the run, and without them nothing can be told.
        return None
    known = None if kwargs else find_environment(config.env_id)
    if not script.has_main or prober is None or prober.other is not None:
        # Another script or interpreter may know other environments, and keyword arguments may change the
        # spaces of a known one: only it can tell.
        return known
    if backend != PYTHON:
        if known is not None:
            check_fit(config.algo, known)
        if not is_installed(EXTRAS[backend]):
            return known
        if script.ours or known is None:
            try:
                found = prober.environment(config.env_id, kwargs, backend)
            except _Lacking:
                # Where Python does not have it either, its name is wrong, not the backend.
                if known is None:
                    check_environment(config.env_id, prober.environment)
                raise
            return known or found
    if kwargs:
        return prober.environment(config.env_id, kwargs)
    return check_environment(config.env_id, prober.environment)


def _find_stages(
    config: CleanRLWorkerConfig, script: Script, prober: Prober | None
) -> list[EnvironmentEntry]:
    """What is known of the environments of a curriculum; UserError when one cannot follow the first."""
    schedule = config.schedule()
    if schedule is None:
        return []
    if not script.ours:
        raise UserError("'extras.curriculum_schedule' is for training a built-in algorithm: leave it out.")

    def find(env_id: str) -> EnvironmentEntry | None:
        return _find_entry(replace(config, env_id=env_id), script, prober)

    known = check_stages(schedule, config.algo, find)
    if config.mode == TRAIN:
        check_budget(schedule, config.total_timesteps)
    return known


def _needed(
    config: CleanRLWorkerConfig, script: Script, entries: Sequence[EnvironmentEntry | None], backend: str
) -> Iterator[tuple[str, str]]:
    """The optional sets that a run uses, each with what uses it."""
    extras = config.extras
    for entry in entries:
        if entry is not None and entry.extra is not None:
            yield entry.extra, entry.env_id
    schema = load_schema(config.algo) if script.has_main else None
    if schema is not None:
        yield from ((name, schema.name) for name in schema.requires)
    if backend in EXTRAS:
        yield EXTRAS[backend], f"env_backend {backend}"
    family = script.head.env_family
    sets = {one.extra for one in load_environments().values() if one.family == family} if family else set()
    # A family whose environments need different sets, or none, says nothing of what the script needs.
    if len(sets) == 1 and (only := sets.pop()) is not None:
        yield only, Path(script.target).name
    for name in extras.get("requirements") or []:
        if name != "base":
            yield name, "This run"
    if (extras.get("algo_params") or {}).get("capture_video"):
        yield "video", "capture_video"
    if extras.get("eval_capture_video") and config.mode in MODE_TARGETS:
        yield "video", "eval_capture_video"
    schedule = config.schedule()
    if schedule is not None and schedule.sampler is not None:
        yield SYLLABUS, f"The curriculum {schedule.sampler.name}"
    # A run that is not tracked need not know of trackers.
    if any(name.startswith("track_") for name in extras):
        from mosaic.tracking import TITLES
        from mosaic.tracking.settings import wanted

        for name in wanted(extras):
            yield name, f"Tracking with {TITLES[name]}"
