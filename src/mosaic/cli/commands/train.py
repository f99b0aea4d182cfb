"""`train`, `rerun` and `eval`: from what the options say to the configs of the runs that they start."""

from __future__ import annotations

import argparse
import os
import shutil
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mosaic.cli import values
from mosaic.cli.launch import launch
from mosaic.cli.live.summary import evaluation_json, print_evaluation
from mosaic.cli.output import note, program
from mosaic.cli.runs import connect, find_run
from mosaic.client.configs import (
    RunSettings,
    again_config,
    check_config,
    eval_config,
    resume_config,
    resuming_worker,
    takes_no_env,
    train_config,
    worker_for,
)
from mosaic.contract.capabilities import WorkerCatalog, find_worker
from mosaic.contract.errors import NotFoundError, UserError
from mosaic.contract.outside import parse_json
from mosaic.contract.paths import choose_var, named_path
from mosaic.contract.run_config import validate_train_run_config
from mosaic.contract.secrets import set_secrets_apart
from mosaic.hub.models import find_model

Config = dict[str, Any]

_SAME = (
    *("episodes", "batch_size", "repeat", "gamma", "seed", "env_kwargs", "algo", "num_envs"),
    *("max_episode_steps", "max_seconds", "var", "secrets", "plain"),
)
"""Options of `eval` that the client calls alike."""
_JSON_WORDS = {"true": True, "false": False, "null": None}


def run_train(args: argparse.Namespace) -> int:
    """Check everything, then start."""
    return launch(train_configs(args), args)


def run_rerun(args: argparse.Namespace) -> int:
    with connect(args) as client:
        earlier = find_run(client, args.run)
    config = again_config(earlier.config, earlier.run_id)
    return launch(_for_seeds(changed(config, args), args), args)


def run_eval(args: argparse.Namespace) -> int:
    """Check everything, play, and tell how it went."""
    config = eval_config(
        args.policy,
        deterministic=not args.stochastic,
        env_id=args.env,
        capture_video=args.video,
        tags=args.tag,
        run_name=args.name,
        extras={"trust_modules": args.trust} if args.trust else None,
        **{name: getattr(args, name) for name in _SAME},
    )
    return launch([config], args, print_evaluation, evaluation_json)


def train_configs(args: argparse.Namespace) -> list[Config]:
    """What `mosaic train` was asked for: a config for each seed."""
    _check_combination(args)
    if args.emit_summary and not args.dry_run:
        raise UserError("--emit-summary describes a run without starting it: add --dry-run.")
    if args.resume is not None:
        return [_resumed(args)]
    if args.config is not None:
        return _for_seeds(changed(_load(args.config), args), args)
    config = train_config(
        args.algo,
        args.env,
        total_timesteps=args.total_timesteps,
        seed=greatest_seed(args, default=1),
        params=params_of(args, worker_for(args.algo).load_catalog(), args.algo),
        **_settings(args),
    )
    return _for_seeds(_with_limits(config, args), args)


def _resumed(args: argparse.Namespace) -> Config:
    """A new run that goes on from the checkpoint, model or run that --resume names."""
    checkpoint = args.resume
    if not named_path(checkpoint).exists():
        pulled = find_model(checkpoint, choose_var(args.var))
        try:
            if "/" in checkpoint and pulled is None:
                raise NotFoundError(checkpoint)
            if pulled is None:
                with connect(args) as client:
                    checkpoint = find_run(client, checkpoint).run_dir
            else:
                checkpoint = str(pulled)
        except NotFoundError as error:
            raise NotFoundError(
                f"There is no file, folder, run or pulled model '{checkpoint}': `{program()} runs` lists the "
                "runs."
            ) from error
    config = resume_config(
        checkpoint,
        total_timesteps=args.total_timesteps,
        extend=args.extend,
        algo=args.algo,
        env_id=args.env,
        params=values.settings(args.set),
        seed=args.seed,
        **_settings(args),
    )
    config = _with_limits(config, args)
    note(resuming_worker()[1].explain_resume(config["metadata"]["worker"]["config"]))
    return config


def _settings(args: argparse.Namespace) -> RunSettings:
    return {
        "extras": extras_of(args),
        "tags": args.tag,
        "run_name": args.name,
        "python": interpreter_of(args),
        "environment": dict(args.variables),
        "secrets": args.secrets,
        "plain": args.plain,
    }


def _check_combination(args: argparse.Namespace) -> None:
    if args.env_id is not None:
        if args.env not in (None, args.env_id):
            raise UserError(f"ENV is {args.env} and --env-id is {args.env_id}: name one environment.")
        args.env = args.env_id
    if args.resume is not None and (args.config is not None or args.seeds is not None):
        raise UserError(
            "--resume starts one run with the settings of its checkpoint: leave --config and --seeds out."
        )
    if args.extend is not None and args.resume is None:
        raise UserError("--extend adds steps to a run that is resumed: add --resume RUN.")
    if args.resume is not None:
        return
    if args.config is not None and args.algo is not None:
        raise UserError("--config names algorithm and environment itself: leave ALGO and ENV out.")
    needs_env = args.curriculum is None or args.algo is None
    if args.config is None and args.env is None and needs_env and not (args.algo and takes_no_env(args.algo)):
        missing = "ENV" if args.algo else "ALGO and ENV"
        example = f"{program()} train {args.algo or 'ppo'} CartPole-v1"
        raise UserError(f"train needs {missing}, such as in `{example}`.")


def _load(path: Path) -> Config:
    try:
        payload = parse_json(values.read_given(path))
    except OSError as error:
        raise UserError(f"The run config {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise UserError(f"The run config {path} is not valid JSON: {error}.") from error
    if isinstance(payload, dict):
        # What is told of a mistake tells no secret.
        payload = set_secrets_apart(payload)
    return validate_train_run_config(payload).as_json()


def _for_seeds(config: Config, args: argparse.Namespace) -> list[Config]:
    configs = []
    for seed in args.seeds or [config["metadata"]["worker"]["config"].get("seed")]:
        one = deepcopy(config)
        one["metadata"]["worker"]["config"]["seed"] = seed
        configs.append(one)
    return configs


def changed(config: Config, args: argparse.Namespace) -> Config:
    """A config with what the options say on top, checked by its worker."""
    request = config["metadata"]["worker"]
    worker = find_worker(request["type"])
    catalog = worker.load_catalog() if worker.catalog else None
    asked = _changed_worker(request["config"], args, catalog)
    if ((config.get("artifacts") or {}).get("wandb") or {}).get("enabled"):
        asked = worker.told_to_track(asked)
    request["config"] = asked
    request["python"] = interpreter_of(args) or request.get("python")
    config["environment"] = {**(config.get("environment") or {}), **dict(args.variables)}
    for name, said in (("secrets", args.secrets), ("plain", args.plain)):
        config[name] = list(dict.fromkeys([*(config.get(name) or ()), *said]))
    config = set_secrets_apart(config)
    request = config["metadata"]["worker"]
    config["tags"] = list(dict.fromkeys([*config["tags"], *args.tag]))
    config["run_name"] = args.name or config["run_name"]
    search_path = config["metadata"]["ui"].setdefault("python_path", str(Path.cwd()))
    folder = Path(str(search_path).partition(os.pathsep)[0])
    if catalog:
        check_config(config, catalog, folder)
    return _with_limits(config, args)


def _changed_worker(asked: Config, args: argparse.Namespace, catalog: WorkerCatalog | None) -> Config:
    # A new run gets an id of its own, also when the file was left by an earlier one.
    changes: Config = {"run_id": "${RUN_ID}"}
    if args.total_timesteps is not None:
        changes["total_timesteps"] = args.total_timesteps
    seed = greatest_seed(args, default=None)
    if seed is not None:
        changes["seed"] = seed
    params = params_of(args, catalog, str(asked.get("algo", "")))
    extras = extras_of(args)
    old = asked.get("extras") or {}
    if params and isinstance(old, dict):
        extras["algo_params"] = _merged(old.get("algo_params"), params)
    return {**asked, **changes, "extras": _merged(old, extras)}


def _merged(old: Any, new: Config) -> Any:
    """Both together; what is not an object stays as it is, for the worker to refuse."""
    return {**(old or {}), **new} if isinstance(old or {}, dict) else old


def _with_limits(config: Config, args: argparse.Namespace) -> Config:
    """The config with what is reserved for the run, its limits, priority and tracking, validated."""
    resources, schedule = config["resources"], config.setdefault("schedule", {})
    for place, name, value in (
        (resources, "cpus", args.cpus),
        (resources, "memory_mb", args.memory_mb),
        (schedule, "max_wallclock_minutes", args.max_minutes),
        (schedule, "max_restarts", args.max_restarts),
        (schedule, "priority", args.priority),
    ):
        if value is not None:
            place[name] = value
    gpus = resources.get("gpus") or {"requested": 0}
    # A run sees only the GPUs that are reserved for it, so to train on one it needs one.
    wanted = max(1, gpus["requested"]) if args.cuda and args.gpus is None else args.gpus
    if wanted is not None:
        gpus = {**gpus, "requested": wanted}
    if args.gpus_mandatory:
        if not gpus["requested"]:
            raise UserError("--gpus-mandatory says how GPUs are reserved: add --gpus N.")
        gpus = {**gpus, "mandatory": True}
    if gpus["requested"] or "gpus" in resources:
        resources["gpus"] = gpus
    if "wandb" in args.trackers:
        config.setdefault("artifacts", {})["wandb"] = {"enabled": True}
    validate_train_run_config(config)
    return config


def params_of(args: argparse.Namespace, catalog: WorkerCatalog | None, algo: str) -> Config:
    """The algorithm's parameters. The worker types those that it knows; of others JSON's words are taken."""
    known = {parameter.name for parameter in catalog.parameters(algo)} if catalog is not None else set()
    pairs = [(name, text if name in known else _JSON_WORDS.get(text, text)) for name, text in args.set]
    return values.settings(pairs)


def extras_of(args: argparse.Namespace) -> Config:
    """The worker's settings."""
    extras = values.settings((name, values.literal(text)) for name, text in args.extra)
    if args.env_kwargs is not None:
        extras["env_kwargs"] = args.env_kwargs
    if args.curriculum is not None:
        extras["curriculum_schedule"] = args.curriculum
    if args.cuda:
        extras["cuda"] = True
    if args.trust:
        extras["trust_modules"] = args.trust
    if args.upload_model:
        extras["upload_model"] = True
    if args.hf_entity is not None:
        extras["hf_entity"] = args.hf_entity
    return {**extras, **_tracking(args)}


def _tracking(args: argparse.Namespace) -> Config:
    """What the options of trackers say, by the settings of each that was asked for."""
    said = {
        "project": args.track_project,
        "run_name": args.track_name,
        "group": args.track_group,
        "mode": "offline" if args.track_offline else None,
    }
    given = {name: value for name, value in said.items() if value is not None}
    if not args.trackers:
        if given:
            raise UserError("--track-project and similar options are for tracked runs: add --track wandb.")
        return {}
    # Only here: a run that is not tracked knows nothing of trackers.
    from mosaic.tracking.settings import PROJECT_SETTING, SETTINGS

    extras: Config = {}
    for name in dict.fromkeys(args.trackers):
        if args.python is None and find_spec(name) is None:
            raise UserError(f"{name} is not installed: `{program()} extras install {name}`.")
        extras[f"track_{name}"] = True
        named = {PROJECT_SETTING[name] if key == "project" else key: value for key, value in given.items()}
        extras |= {f"{name}_{key}": value for key, value in named.items() if key in SETTINGS[name]}
    return extras


def interpreter_of(args: argparse.Namespace) -> str | None:
    """An absolute path that is not resolved further: a venv's interpreter is a link, and must stay one."""
    if args.python is None:
        return None
    found = shutil.which(os.path.expanduser(args.python))
    if found is None:
        raise UserError(f"--python: '{args.python}' is not a program that can be run.")
    return str(Path(found).absolute())


def greatest_seed(args: argparse.Namespace, default: int | None) -> int | None:
    """The seed to check a config with: where this one fits, those of the other runs do."""
    if args.seed is not None and args.seeds is not None:
        raise UserError("Give --seed or --seeds, not both.")
    if args.seeds is not None:
        return int(max(args.seeds))
    return default if args.seed is None else int(args.seed)
