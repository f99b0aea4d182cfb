"""`python -m tiny_worker.cli --config FILE [--grpc --grpc-target HOST:PORT]`, as the daemon starts it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mosaic.contract.errors import MosaicError
from mosaic.contract.paths import VarPaths, resolve_var
from tiny_worker.config import load_config
from tiny_worker.supervisor import Supervisor


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tiny_worker.cli", description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--grpc", action="store_true")
    parser.add_argument("--grpc-target", default="127.0.0.1:50055")
    options = parser.parse_args()
    target = options.grpc_target if options.grpc else None
    try:
        return Supervisor(load_config(options.config), VarPaths(resolve_var()), target).run()
    except MosaicError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
