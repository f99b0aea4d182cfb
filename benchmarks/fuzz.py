"""What the doors make of strange input: configs, events, event files, checkpoints, cards, models, every call.

python benchmarks/fuzz.py [--examples N] [--seed N] [--only NAME …]

Good is an answer, or a refusal in one sentence. Bad is any other exception, INTERNAL, an answer that does not
come, a write outside the var folder, and an import that a file asks for. Without a seed the examples are
always the same.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from fuzz_doors.calls import Town, call_doors
from fuzz_doors.configs import config_doors, make_user_folder
from fuzz_doors.files import file_doors
from fuzz_doors.knocking import Door, Tally, knock
from tables import write_table

from mosaic.contract.paths import VAR_VARIABLE

HEADER = ["door", "what is thrown", "tried", "refused", "bad", "seconds"]
PATIENCE_SECONDS = 20.0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--examples", type=int, default=10_000, metavar="N", help="for each door (10,000)")
    parser.add_argument("--seed", type=int, metavar="N", help="other examples than the usual ones")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="doors whose names begin so")
    args = parser.parse_args()
    rows: list[list[str]] = []
    bad: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mosaic-fuzz-") as place:
        root = Path(place)
        folder, var, user = root / "inside", root / "inside" / "var", root / "user"
        var.mkdir(parents=True)
        make_user_folder(user)
        os.environ[VAR_VARIABLE] = str(var)
        with Town(root / "town") as town:
            doors = [*config_doors(folder, var, user), *file_doors(folder, var), *call_doors(town, user)]
            for door in doors:
                if args.only is None or door.name.startswith(tuple(args.only)):
                    rows.append(_try(door, args.examples, args.seed, bad))
    if args.only is None:
        write_table(
            "fuzz", "Strange input at the doors", __doc__.split("\n\n")[2].replace("\n", " "), HEADER, rows
        )
    print("\n\n".join(bad))
    return 1 if bad else 0


def _try(door: Door, examples: int, number: int | None, bad: list[str]) -> list[str]:
    began = time.monotonic()
    tally: Tally = knock(door, examples, number, PATIENCE_SECONDS)
    took = time.monotonic() - began
    print(
        f"{door.name}: {tally.tried} tried, {tally.refused} refused, {len(tally.faults)} bad, {took:.0f} s",
        flush=True,
    )
    if tally.faults:
        bad.append(f"{door.name}:\n{tally.report()}")
    counts = [f"{tally.tried:,}", f"{tally.refused:,}", str(len(tally.faults)), f"{took:.0f}"]
    return [door.name, door.what, *counts]


if __name__ == "__main__":
    sys.exit(main())
