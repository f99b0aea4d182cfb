"""What live frames cost and how fast they are, beside what they must reach.

python benchmarks/fastlane.py [--cases NAME …] [--short]

All cases take about ten minutes. The page is written when all cases are measured in full; else it is printed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable

from fastlane_cases import killed, reading, unwatched, waiting, watched
from tables import Row, table_row, write_table

CASES: dict[str, Callable[[bool], list[Row]]] = {
    "unwatched": unwatched.run,
    "watched": watched.run,
    "torn": reading.torn,
    "stopped": reading.stopped,
    "latency": reading.latency,
    "killed": killed.run,
    "waiting": waiting.run,
}
HEADER = ["what was done", "measured", "limit", "held"]
TEXT = """\
Live frames beside what they must reach, one case after the other in one run.

- Steps without a picture: CPU time; an environment made by the patched `gymnasium.make` and one made by the
  original take turns.
- Watched: random actions, each after three products of a 64 × 64 matrix with a vector in place of a policy. A
  viewer in a process of its own looks 60 times a second. The share is that of `Tap.show`, which draws and
  publishes or hands over what another process draws, in wall time over whole periods from one call to
  another. The first pictures, which start the renderer, stand apart. Where a process of its own draws, it has
  what the machine has left beside training and viewer; "all cores are busy" is beside one process for each
  core that never sleeps.
- A frame that is read is compared with the whole frame that was published. A read that finds nothing new does
  not count.
- The segments of killed writers are removed as a supervisor does it; those of killed runs by the supervisor
  or, where that was the victim, by the daemon.
- Publishing: calls within which the kernel gave the CPU to somebody else stand apart; how often that happens
  is the machine's affair. How often the writer itself waited, the kernel counts.

The load average of the machine was {before:.1f} before and {after:.1f} after."""


def main() -> int:
    options = parse_options()
    before = os.getloadavg()[0]
    rows = []
    for name in options.cases:
        began = time.monotonic()
        for row in CASES[name](options.short):
            print(table_row(row.cells()), flush=True)
            rows.append(row)
        print(f"  {name}: {time.monotonic() - began:.0f} s", flush=True)
    if options.short or set(options.cases) != set(CASES):
        return 0 if all(row.held for row in rows) else 1
    text = TEXT.format(before=before, after=os.getloadavg()[0])
    write_table("fastlane", "FastLane", text, HEADER, [row.cells() for row in rows])
    return 0 if all(row.held for row in rows) else 1


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="NAME")
    parser.add_argument("--short", action="store_true", help="small counts; nothing is written")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
