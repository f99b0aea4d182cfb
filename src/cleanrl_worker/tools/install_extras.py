"""Install optional sets: `python -m cleanrl_worker.tools.install_extras --set atari,procgen`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from mosaic.contract.errors import MosaicError
from mosaic.contract.extras import extra_sets, install_extras


def main(argv: Sequence[str] | None = None) -> int:
    """The same as `mosaic extras install`."""
    parser = argparse.ArgumentParser(
        prog="python -m cleanrl_worker.tools.install_extras", description=__doc__
    )
    names = ", ".join(one.name for one in extra_sets())
    parser.add_argument("--set", required=True, metavar="NAMES", help=f"separated by commas, of: {names}")
    args = parser.parse_args(argv)
    try:
        install_extras([name.strip() for name in args.set.split(",") if name.strip()])
    except MosaicError as error:
        print(f"install_extras: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
