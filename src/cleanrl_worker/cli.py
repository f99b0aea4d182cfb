"""`python -m cleanrl_worker.cli`: run one config, as the daemon does, or by hand."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from cleanrl_worker.config import CleanRLWorkerConfig, load_worker_config, parse_worker_config
from cleanrl_worker.resuming import RESUME
from cleanrl_worker.runtime import CleanRLWorkerRuntime
from mosaic.contract.connection import DEFAULT_PORT
from mosaic.contract.errors import MosaicError, UserError
from mosaic.contract.paths import VarPaths, resolve_var
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
        f'\'{{"mode": "{RESUME}", "checkpoint_path": "…"}}\'.',
    )
    parser.add_argument(
        "--config", type=Path, metavar="PATH", help="the worker config, flat or inside a run config"
    )
    parser.add_argument(
        "--algo", metavar="NAME", help="algorithm, script or module, in place of the config's"
    )
    parser.add_argument("--env-id", metavar="ENV_ID", help="environment, in place of the config's")
    parser.add_argument("--total-timesteps", type=int, metavar="INT", help="budget, in place of the config's")
    parser.add_argument("--seed", type=int, metavar="INT", help="seed, in place of the config's")
    parser.add_argument("--worker-id", metavar="ID", help="the name under which this worker registers")
    parser.add_argument(
        "--extras", metavar="JSON", help="a JSON object merged into the config's extras; it wins"
    )
    parser.add_argument("--grpc", action="store_true", help="shake hands with the trainer daemon")
    parser.add_argument(
        "--grpc-target",
        metavar="HOST:PORT",
        default=f"127.0.0.1:{DEFAULT_PORT}",
        help="where the daemon listens (default: %(default)s)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="check everything that needs no training, then end"
    )
    parser.add_argument(
        "--emit-summary", action="store_true", help="with --dry-run: print what would run, as JSON"
    )
    return parser


def load_config(options: argparse.Namespace) -> CleanRLWorkerConfig:
    """The config file with the command line's values in place of its own."""
    values = {
        name: getattr(options, name) for name in ("algo", "env_id", "total_timesteps", "seed", "worker_id")
    }
    extras = _extras(options.extras)
    if options.config is not None:
        return load_worker_config(options.config).with_overrides(extras=extras, **values)
    for name in ("algo", "env_id", "total_timesteps"):
        if values[name] is None and extras.get("mode") != RESUME:
            raise UserError(f"Without --config, --{name.replace('_', '-')} must be given.")
    from ulid import ULID

    return parse_worker_config({"run_id": str(ULID()), **values, "extras": extras})


def _extras(text: str | None) -> dict[str, Any]:
    try:
        extras = json.loads(text or "{}")
    except ValueError as error:
        raise UserError(f"--extras is not JSON: {error}.") from error
    if not isinstance(extras, dict):
        raise UserError(f"--extras is {text}, but it must be a JSON object.")
    return extras


def main(argv: Sequence[str] | None = None) -> int:
    try:
        options = build_parser().parse_args(argv)
        config = load_config(options)
        target = options.grpc_target if options.grpc else None
        if options.dry_run:
            return dry_run(config, options.emit_summary)
        return CleanRLWorkerRuntime(config, VarPaths(resolve_var()), grpc_target=target).run()
    except MosaicError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"The run's folder under {resolve_var()} cannot be used: {error}", file=sys.stderr)
        return 1


def dry_run(config: CleanRLWorkerConfig, emit_summary: bool) -> int:
    """Check module, flags, environment, spaces and checkpoint; train nothing."""
    from cleanrl_worker.catalog import CATALOG

    python, folder = os.environ.get(PYTHON_VARIABLE), user_folder() or Path.cwd()
    checked = parse_worker_config(CATALOG.check(config.as_json(), python, folder))
    if emit_summary:
        summary = CleanRLWorkerRuntime(checked, VarPaths(resolve_var())).summary()
        print(json.dumps(summary.as_json(), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
