"""Runs a script with the processor time of its process as its clock: other work on the machine hardly shows.

python benchmarks/cpu_clock.py MODULE [its flags]
"""

from __future__ import annotations

import runpy
import sys
import time


def main() -> None:
    started = time.time()
    # Event files take their times from here, and speeds are read from these.
    time.time = lambda: started + time.process_time()
    # Files that lie beside this one are no part of what is run.
    del sys.argv[0], sys.path[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
