"""What the doors make of strange input: configs, events, event files, checkpoints, cards, models, every call.

python benchmarks/fuzz.py [--examples N] [--seed N] [--only NAME …]

Good is an answer, or a refusal in one sentence. Bad is any other exception, INTERNAL, an answer that does not
come, a write outside the var folder, and an import that a file asks for. Without a seed the examples are
always the same.

Results of doors that are not tried again stay in the table.
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
from tables import kept_rows, write_table

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
    # The table is of all doors, however many calls it took.
    del sys.argv[1:]
    bad = 0
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
                    row, faults = _try(door, args.examples, args.seed)
                    _write(row, [one.name for one in doors])
                    bad += faults
    return 1 if bad else 0


def _write(row: list[str], names: list[str]) -> None:
    rows = {kept[0]: kept for kept in kept_rows("fuzz", HEADER)} | {row[0]: row}
    text = (__doc__ or "").split("\n\n")[2].replace("\n", " ")
    write_table(
        "fuzz", "Strange input at the doors", text, HEADER, [rows[one] for one in names if one in rows]
    )


def _try(door: Door, examples: int, number: int | None) -> tuple[list[str], int]:
    began = time.monotonic()
    tally: Tally = knock(door, examples, number, PATIENCE_SECONDS)
    took = time.monotonic() - began
    print(
        f"{door.name}: {tally.tried} tried, {tally.refused} refused, {len(tally.faults)} bad, {took:.0f} s",
        flush=True,
    )
    if tally.faults:
        print(tally.report(), flush=True)
    counts = [f"{tally.tried:,}", f"{tally.refused:,}", str(len(tally.faults)), f"{took:.0f}"]
    return [door.name, door.what, *counts], len(tally.faults)


if __name__ == "__main__":
    sys.exit(main())
