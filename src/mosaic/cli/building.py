"""The run configs that `train` and `rerun` submit."""

from __future__ import annotations

import argparse
import json
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.cli import values
from mosaic.cli.changes import (
    Config,
    add_limits,
    add_resources,
    changed,
    declared_of,
    extras_of,
    greatest_seed,
    interpreter_of,
    params_of,
)
from mosaic.cli.connecting import connect
from mosaic.cli.finding import find_run
from mosaic.cli.output import note
from mosaic.cli.program import program
from mosaic.client.configs import (
    again_config,
    resume_config,
    resuming_worker,
    takes_no_env,
    train_config,
    worker_for,
)
from mosaic.contract.errors import NotFoundError, UserError
from mosaic.contract.paths import named_path
from mosaic.contract.run_config import validate_train_run_config
from mosaic.contract.secrets import set_secrets_apart

if TYPE_CHECKING:
    from mosaic.client import RunRecord


def train_configs(args: argparse.Namespace) -> list[Config]:
    """What `mosaic train` was asked for: a config for each seed."""
    _check_combination(args)
    if args.emit_summary and not args.dry_run:
        raise UserError("--emit-summary tells of a run that is not started: add --dry-run.")
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
        extras=extras_of(args),
        tags=args.tag,
        run_name=args.name,
        python=interpreter_of(args),
        **declared_of(args),
    )
    add_resources(config, args)
    add_limits(config, args)
    validate_train_run_config(config)
    return _for_seeds(config, args)


def _resumed(args: argparse.Namespace) -> Config:
    """A new run that goes on from the checkpoint, model or run that --resume names."""
    checkpoint = args.resume
    if not named_path(checkpoint).exists():
        try:
            with connect(args) as client:
                checkpoint = find_run(client, checkpoint).run_dir
        except NotFoundError as error:
            raise NotFoundError(
                f"There is no file, folder or run '{checkpoint}': `{program()} runs` lists the runs."
            ) from error
    config = resume_config(
        checkpoint,
        total_timesteps=args.total_timesteps,
        extend=args.extend,
        algo=args.algo,
        env_id=args.env,
        params=values.settings(args.set),
        seed=args.seed,
        extras=extras_of(args),
        tags=args.tag,
        run_name=args.name,
        python=interpreter_of(args),
        **declared_of(args),
    )
    add_resources(config, args)
    add_limits(config, args)
    validate_train_run_config(config)
    note(resuming_worker()[1].explain_resume(config["metadata"]["worker"]["config"]))
    return config


def rerun_configs(run: RunRecord, args: argparse.Namespace) -> list[Config]:
    """The config of an earlier run with changes: a config for each seed."""
    return _for_seeds(changed(again_config(run.config, run.run_id), args), args)


def _check_combination(args: argparse.Namespace) -> None:
    if args.env_id is not None:
        if args.env not in (None, args.env_id):
            raise UserError(f"ENV is {args.env} and --env-id is {args.env_id}: name one environment.")
        args.env = args.env_id
    if args.resume is not None and (args.config is not None or args.seeds is not None):
        raise UserError(
            "--resume is one run with the settings of its checkpoint: leave --config and --seeds out."
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
        payload = json.loads(values.read_given(path))
    except OSError as error:
        raise UserError(f"The run config {path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
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
