"""`python -m mosaic.trainer`: run the daemon. Clients start it by themselves."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

from mosaic.contract.connection import LAST_PORT, LOCKED_EXIT_CODE, START_ERROR_MARK
from mosaic.contract.errors import MosaicError, UserError
from mosaic.contract.paths import VAR_VARIABLE, VarPaths, resolve_var
from mosaic.contract.process import open_closed_streams, wear_mark
from mosaic.trainer import log
from mosaic.trainer.daemon import IDLE_SECONDS, Daemon, single_daemon, who_holds
from mosaic.trainer.log import Code


def main() -> int:
    open_closed_streams()
    parser = argparse.ArgumentParser(
        prog="python -m mosaic.trainer", description="The MOSAIC trainer daemon."
    )
    parser.add_argument(
        "--var", type=Path, default=None, help="the var folder (default: $MOSAIC_VAR or the usual one)"
    )
    parser.add_argument(
        "--port", type=int, default=None, help="this port on 127.0.0.1 only; 0 for any free one"
    )
    parser.add_argument(
        "--idle-seconds", type=float, default=IDLE_SECONDS, help="exit after this time without work"
    )
    arguments = parser.parse_args()
    paths = VarPaths((arguments.var or resolve_var()).resolve())
    # What checks a config may look for the files of a run.
    os.environ[VAR_VARIABLE] = str(paths.root)
    try:
        if arguments.port is not None and not 0 <= arguments.port <= LAST_PORT:
            raise UserError(
                f"--port: '{arguments.port}' is not a port: give 1 to {LAST_PORT}, or 0 for any that is free."
            )
        paths.make()
        with single_daemon(paths) as lock:
            if lock is None:
                print(f"{START_ERROR_MARK}{who_holds(paths)}", file=sys.stderr)
                return LOCKED_EXIT_CODE
            log.set_up(paths.daemon_log)
            # Files of runs are for their owner.
            os.umask(0o077)
            # Started from within a run, it is not a part of that run.
            wear_mark(None)
            asyncio.run(Daemon(paths, lock, arguments.port, arguments.idle_seconds).serve())
    except MosaicError as error:
        print(f"{START_ERROR_MARK}{error}", file=sys.stderr)
        return error.exit_code
    except Exception as error:
        log.exception(Code.DAEMON_ERROR, "the daemon ends")
        print(f"{START_ERROR_MARK}The daemon ended by an error of its own: {error!r}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
