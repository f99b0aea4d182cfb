"""`python -m cleanrl_worker.cli`: run one config, as the daemon does, or by hand."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from cleanrl_worker import get_worker_metadata
from cleanrl_worker.config.modes import INTERACTIVE, POLICY_EVAL, RESUME, TRAIN
from cleanrl_worker.config.scripts import looks_foreign
from cleanrl_worker.config.shell_scripts import is_shell_script
from cleanrl_worker.config.worker_config import CleanRLWorkerConfig, load_worker_config, parse_worker_config
from cleanrl_worker.supervisor.runtime import CleanRLWorkerRuntime
from mosaic.contract.connection import DEFAULT_PORT
from mosaic.contract.errors import MosaicError, UserError
from mosaic.contract.outside import parse_json
from mosaic.contract.paths import VarPaths, resolve_var
from mosaic.contract.plain import plain_line
from mosaic.contract.process import open_closed_streams
from mosaic.contract.secrets import HIDDEN_VARIABLE, lift_secrets
from mosaic.worker.environment import PYTHON_VARIABLE, user_folder


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(
            f"{message[:1].upper()}{message[1:]}; `python -m cleanrl_worker.cli --help` lists all."
        )


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m cleanrl_worker.cli",
        description="Run one training config under a supervisor. Without --config, --algo, --env-id and "
        "--total-timesteps are enough; a resumed run needs only --extras "
        f'\'{{"mode": "{RESUME}", "checkpoint_path": "…"}}\', one that plays a policy '
        f'\'{{"mode": "{POLICY_EVAL}", "policy_path": "…"}}\', a shell script only --algo.',
    )
    for option, kind, metavar, text in (
        ("--config", Path, "PATH", "the worker config, flat or inside a run config"),
        ("--algo", str, "NAME", "algorithm, script or module, in place of the config's"),
        ("--env-id", str, "ENV_ID", "environment, in place of the config's"),
        ("--total-timesteps", int, "INT", "budget, in place of the config's"),
        ("--seed", int, "INT", "seed, in place of the config's"),
        ("--worker-id", str, "ID", "the name under which this worker registers"),
        ("--extras", str, "JSON", "a JSON object merged into the config's extras; it wins"),
        ("--grpc", bool, "", "connect to the trainer daemon"),
        ("--grpc-target", str, "HOST:PORT", "where the daemon listens (default: %(default)s)"),
        ("--dry-run", bool, "", "check everything that needs no training, then end"),
        ("--emit-summary", bool, "", "with --dry-run: print what would run, as JSON"),
        ("--interactive", bool, "", "play a saved policy step by step, by JSON lines on stdin and stdout"),
    ):
        if kind is bool:
            parser.add_argument(option, action="store_true", help=text)
        else:
            parser.add_argument(option, type=kind, metavar=metavar, help=text)
    parser.set_defaults(grpc_target=f"127.0.0.1:{DEFAULT_PORT}")
    return parser


def load_config(options: argparse.Namespace) -> CleanRLWorkerConfig:
    """The config file with the command line's values in place of its own."""
    values = {
        name: getattr(options, name) for name in ("algo", "env_id", "total_timesteps", "seed", "worker_id")
    }
    extras = _extras(options.extras) | ({"mode": INTERACTIVE} if options.interactive else {})
    if options.config is not None:
        loaded = load_worker_config(options.config)
        config = loaded.with_overrides(extras=extras, **values)
        # What the daemon hands over has no secrets in it.
        return config if options.grpc else _lifted(config, loaded.raw)
    algo = options.algo or ""
    trains = extras.get("mode", TRAIN) == TRAIN and not is_shell_script(algo)
    # The last stage of a curriculum is the environment of its run.
    named = ("algo",) if extras.get("curriculum_schedule") else ("algo", "env_id")
    # Somebody's script has a budget of its own.
    foreign = looks_foreign(algo) or extras.get("module_source") == "upstream"
    for name in (*named, *(() if foreign else ("total_timesteps",))) if trains else ():
        if values[name] is None:
            raise UserError(f"Without --config, --{name.replace('_', '-')} must be given.")
    from ulid import ULID

    return _lifted(parse_worker_config({"run_id": str(ULID()), **values, "extras": extras}), {})


def _lifted(config: CleanRLWorkerConfig, given: Mapping[str, Any]) -> CleanRLWorkerConfig:
    """The config without its secrets, which are variables of this process from now on."""
    worker = {"type": get_worker_metadata().worker_type, "config": config.as_json()}
    declared = {name: given[name] for name in ("secrets", "plain") if "metadata" in given and name in given}
    lifted = lift_secrets({**declared, "metadata": {"worker": worker}}, os.environ)
    os.environ.update(lifted.values)
    os.environ[HIDDEN_VARIABLE] = ",".join(lifted.values)
    return replace(config, **lifted.config["metadata"]["worker"]["config"])


def _extras(text: str | None) -> dict[str, Any]:
    try:
        extras = parse_json(text or "{}")
    except ValueError as error:
        raise UserError(f"--extras is not JSON: {error}.") from error
    if not isinstance(extras, dict):
        raise UserError(f"--extras is {text}, but it must be a JSON object.")
    return extras


def main(argv: Sequence[str] | None = None) -> int:
    open_closed_streams()
    try:
        options = build_parser().parse_args(argv)
        config = load_config(options)
        target = options.grpc_target if options.grpc else None
        if options.dry_run:
            return dry_run(config, options.emit_summary, _typed(options))
        if config.mode == INTERACTIVE and (target is not None or sys.stdin.isatty()):
            raise UserError(
                "An interactive session reads JSON lines from a pipe, not from a terminal or in a run of "
                "the daemon: use `mosaic play`."
            )
        return CleanRLWorkerRuntime(config, VarPaths(resolve_var()), target).run()
    except MosaicError as error:
        print(plain_line(str(error)), file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(plain_line(f"The run's folder under {resolve_var()} cannot be used: {error}"), file=sys.stderr)
        return 1


def dry_run(config: CleanRLWorkerConfig, emit_summary: bool, typed: Collection[str]) -> int:
    """Check module, flags, environment, spaces and checkpoint; train nothing."""
    from cleanrl_worker.supervisor.offers import CATALOG

    python, folder = os.environ.get(PYTHON_VARIABLE), user_folder()
    if emit_summary:
        print(json.dumps(CATALOG.describe(config.as_json(), python, folder, typed), indent=2), flush=True)
    CATALOG.check(config.as_json(), python, folder)
    if warning := CATALOG.warning(config.as_json()):
        print(warning, file=sys.stderr)
    return 0


def _typed(options: argparse.Namespace) -> set[str]:
    """The names of the parameters that the command line says."""
    extras = _extras(options.extras)
    named = {name for name in ("env_id", "total_timesteps", "seed") if getattr(options, name) is not None}
    params = extras.get("algo_params")
    renamed = {"use_cuda": "cuda", "track_wandb": "track", "wandb_project": "wandb_project_name"}
    renamed["curriculum_schedule"] = "curriculum"
    return (
        named | {renamed.get(name, name) for name in extras} | set(params if isinstance(params, dict) else ())
    )


if __name__ == "__main__":
    sys.exit(main())
