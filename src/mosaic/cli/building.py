"""From options to checked run configs."""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Iterable
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.cli import values
from mosaic.cli.program import program
from mosaic.client.configs import train_config, worker_for
from mosaic.contract.errors import UserError
from mosaic.contract.run_config import validate_train_run_config
from mosaic.contract.workers import WorkerCatalog, find_worker

if TYPE_CHECKING:
    from mosaic.client import RunRecord

Config = dict[str, Any]

_JSON_WORDS = {"true": True, "false": False, "null": None}


def train_configs(args: argparse.Namespace) -> list[Config]:
    """What `mosaic train` was asked for: a config for each seed."""
    _check_combination(args)
    if args.config is not None:
        return _for_seeds(_changed(_load(args.config), args), args)
    config = train_config(
        args.algo,
        args.env,
        total_timesteps=args.total_timesteps,
        seed=_first_seed(args, default=1),
        params=_params(args, worker_for(args.algo).load_catalog(), args.algo),
        extras=_extras(args),
        tags=args.tag,
        run_name=args.name,
        cpus=args.cpus or 1,
        python=_interpreter(args.python),
    )
    _limit(config, args)
    validate_train_run_config(config)
    return _for_seeds(config, args)


def rerun_configs(run: RunRecord, args: argparse.Namespace) -> list[Config]:
    """The config of an earlier run with changes: a config for each seed."""
    return _for_seeds(_changed(_forget(run.config, run.run_id), args), args)


def _check_combination(args: argparse.Namespace) -> None:
    if args.config is not None and args.algo is not None:
        raise UserError("--config names algorithm and environment itself: leave ALGO and ENV out.")
    if args.config is None and args.env is None:
        missing = "ENV" if args.algo else "ALGO and ENV"
        example = f"{program()} train {args.algo or 'ppo'} CartPole-v1"
        raise UserError(f"train needs {missing}, such as in `{example}`.")


def _load(path: Path) -> Config:
    try:
        payload = json.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"The run config {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise UserError(f"The run config {path} is not valid JSON: {error}.") from error
    return validate_train_run_config(payload).as_json()


def _forget(value: Any, run_id: str) -> Any:
    """The config as it was before the run's id was filled in."""
    if isinstance(value, str):
        return value.replace(run_id, "${RUN_ID}")
    if isinstance(value, dict):
        return {key: _forget(item, run_id) for key, item in value.items()}
    if isinstance(value, list):
        return [_forget(item, run_id) for item in value]
    return value


def _changed(config: Config, args: argparse.Namespace) -> Config:
    """A config with what the options say on top, checked by its worker."""
    request = config["metadata"]["worker"]
    asked = request["config"]
    catalog = find_worker(request["type"]).load_catalog()
    if args.total_timesteps is not None:
        asked["total_timesteps"] = args.total_timesteps
    seed = _first_seed(args, default=None)
    if seed is not None:
        asked["seed"] = seed
    extras = {**(asked.get("extras") or {}), **_extras(args)}
    params = _params(args, catalog, str(asked.get("algo", "")))
    if params:
        extras["algo_params"] = {**(extras.get("algo_params") or {}), **params}
    asked["extras"] = extras
    request["python"] = _interpreter(args.python) or request.get("python")
    config["tags"] = list(dict.fromkeys([*config["tags"], *args.tag]))
    config["run_name"] = args.name or config["run_name"]
    if args.cpus is not None:
        config["resources"]["cpus"] = args.cpus
    _limit(config, args)
    search_path = config["metadata"]["ui"].setdefault("python_path", str(Path.cwd()))
    folder = Path(search_path.partition(os.pathsep)[0])
    request["config"] = catalog.check(asked, request["python"], folder)
    validate_train_run_config(config)
    return config


def _limit(config: Config, args: argparse.Namespace) -> None:
    """Limits and tracking, which stand beside the worker's config."""
    schedule = config.setdefault("schedule", {})
    if args.max_minutes is not None:
        schedule["max_wallclock_minutes"] = args.max_minutes
    if args.max_restarts is not None:
        schedule["max_restarts"] = args.max_restarts
    if args.wandb:
        config.setdefault("artifacts", {})["wandb"] = {"enabled": True}


def _params(args: argparse.Namespace, catalog: WorkerCatalog, algo: str) -> Config:
    """The algorithm's parameters. The worker types them by its schema; a foreign script has none."""
    pairs: Iterable[tuple[str, Any]] = args.set
    if not catalog.parameters(algo):
        pairs = [(name, _JSON_WORDS.get(text, text)) for name, text in pairs]
    return values.settings(pairs)


def _extras(args: argparse.Namespace) -> Config:
    extras = values.settings((name, values.literal(text)) for name, text in args.extra)
    if args.env_kwargs is not None:
        extras["env_kwargs"] = args.env_kwargs
    if args.cuda:
        extras["cuda"] = True
    if args.wandb:
        if args.python is None and find_spec("wandb") is None:
            raise UserError(f"Weights & Biases is not installed: `{program()} extras install wandb`.")
        extras["track_wandb"] = True
    return extras


def _interpreter(python: str | None) -> str | None:
    """An absolute path that is not resolved further: a venv's interpreter is a link, and must stay one."""
    if python is None:
        return None
    found = shutil.which(str(Path(python).expanduser()))
    if found is None:
        raise UserError(f"--python: '{python}' is no program that can be run.")
    return str(Path(found).absolute())


def _first_seed(args: argparse.Namespace, default: int | None) -> int | None:
    if args.seed is not None and args.seeds is not None:
        raise UserError("Give --seed or --seeds, not both.")
    if args.seeds is not None:
        return int(args.seeds[0])
    return default if args.seed is None else int(args.seed)


def _for_seeds(config: Config, args: argparse.Namespace) -> list[Config]:
    configs = []
    for seed in args.seeds or [config["metadata"]["worker"]["config"].get("seed")]:
        one = deepcopy(config)
        one["metadata"]["worker"]["config"]["seed"] = seed
        configs.append(one)
    return configs
