"""A script that only defines `main()` and never calls it."""

import sys
from pathlib import Path


def main():
    Path("ran.txt").write_text(" ".join(sys.argv[1:]))
