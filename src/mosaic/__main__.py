"""`python -m mosaic`: the command line."""

import sys

from mosaic.cli import main

if __name__ == "__main__":
    sys.exit(main())
