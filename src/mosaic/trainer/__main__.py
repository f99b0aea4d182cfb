"""`python -m mosaic.trainer`: run the daemon. Clients start it by themselves."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

from mosaic.contract.connection import START_ERROR_MARK
from mosaic.contract.errors import MosaicError
from mosaic.contract.paths import VarPaths, resolve_var
from mosaic.trainer import log
from mosaic.trainer.daemon import IDLE_SECONDS, Daemon, single_daemon
from mosaic.trainer.log import Code


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m mosaic.trainer", description="The MOSAIC trainer daemon."
    )
    parser.add_argument(
        "--var", type=Path, default=None, help="the var folder (default: $MOSAIC_VAR or the usual one)"
    )
    parser.add_argument("--port", type=int, default=None, help="a port of your own on 127.0.0.1")
    parser.add_argument(
        "--idle-seconds", type=float, default=IDLE_SECONDS, help="end after so long with nothing to do"
    )
    arguments = parser.parse_args()
    paths = VarPaths((arguments.var or resolve_var()).resolve())
    try:
        paths.make()
        with single_daemon(paths) as alone:
            if not alone:
                return 0
            log.set_up(paths.daemon_log)
            # Files of runs are for their owner.
            os.umask(0o077)
            asyncio.run(Daemon(paths, arguments.port, arguments.idle_seconds).serve())
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
