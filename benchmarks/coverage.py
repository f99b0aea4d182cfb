"""What each algorithm can do: tests every one through the daemon and writes docs/coverage.md.

python benchmarks/coverage.py [--algos ppo …] [--tests FILE]

The tests are those of tests/worker/test_algorithms.py; FILE is what
`./mosaic test -m "" --junitxml=FILE` reported. Learning results come from the algorithm's page, and speeds
from results/speed.md. Rows of other algorithms keep their test results.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from learning_pages import BEGIN, END, PAGES
from tables import Table, kept_rows

from cleanrl_worker.kit.loading import load_spec
from cleanrl_worker.schemas.model import shipped_algorithms

TESTS = "tests/worker/test_algorithms.py"
COLUMNS = {
    "trains": "test_the_daemon_trains_it_without_a_word_and_it_logs_the_known_names",
    "live view": "test_its_environments_are_seen_while_it_trains",
    "resumes": "test_it_resumes_from_a_checkpoint_and_ends_with_the_same_bytes",
    "evaluates": "test_a_run_evaluates_its_policy",
    "plays": "test_its_policy_is_played_step_by_step",
}
"""A column for each of these tests."""
HEADER = ["algorithm", *COLUMNS, "proven on", "speed"]
PAGE = PAGES.with_name("coverage.md")
TEXT = """\
# Algorithm coverage

What each algorithm has been tested to do, written by `python benchmarks/coverage.py`. The columns up to
*plays* come from tests with real runs of a few hundred steps (`tests/worker/test_algorithms.py`), which every
algorithm must pass:

- **trains**: it starts, connects to the daemon, trains, writes its curves and checkpoints, and completes.
- **live view**: a picture of its environments appears while it trains.
- **resumes**: a new run continues from a checkpoint in the middle. *exact*: it ends with the same model file,
  byte for byte. *new episodes*: its environment backend cannot continue within an episode.
- **evaluates**: a separate run plays the policy and writes a summary.
- **plays**: the policy is played step by step. *refused*: its environments exist only in EnvPool, which
  cannot do that, and a message says so.
- **proven on**: the environments on which it reached the required return, with three seeds unless stated
  otherwise; the figures are on its page. *not yet*: not all seeds have been trained.
- **speed**: training speed relative to Stable-Baselines3 on one core, from `benchmarks/results/speed.md`;
  *–*: not measured.
"""
_SEEDS = 3


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    algorithms = list(shipped_algorithms())
    parser.add_argument("--algos", nargs="+", default=algorithms, choices=algorithms)
    parser.add_argument("--tests", type=Path, metavar="FILE", help="existing results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = read_tests(options.tests or run_tests(options.algos, Path(folder) / "tests.xml"))
    earlier = {row[0]: row for row in kept_rows(str(PAGE.with_suffix("")), HEADER)}
    speeds = read_speeds()
    rows = []
    for algo in algorithms:
        seen = found.get(algo)
        if seen is not None:
            cells = [told(algo, column, seen.get(test)) for column, test in COLUMNS.items()]
        elif f"`{algo}`" in earlier:
            cells = earlier[f"`{algo}`"][1 : len(COLUMNS) + 1]
        else:
            cells = ["not tested"] * len(COLUMNS)
        rows.append([f"`{algo}`", *cells, proven_on(algo), speeds.get(algo, "–")])
    PAGE.write_text(TEXT + "\n" + "\n".join(Table(HEADER, rows).lines()) + "\n", "utf-8")
    print(PAGE.read_text("utf-8"))
    return 0


def run_tests(algos: list[str], path: Path) -> Path:
    """Test some algorithms; gives the file of results."""
    names = " or ".join(f"[{algo}]" for algo in algos)
    command = [sys.executable, "-m", "pytest", TESTS, "-q", "-m", "", "-k", names, f"--junitxml={path}"]
    subprocess.run(command, cwd=Path(__file__).parents[1], check=False)
    return path


def read_tests(path: Path) -> Mapping[str, Mapping[str, str]]:
    """How each test of each algorithm ended, from a file of results."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for case in ElementTree.parse(path).iter("testcase"):
        named = re.fullmatch(r"(\w+)\[(\w+)\](@\w+)?", case.get("name", ""))
        if named is not None and named[1] in COLUMNS.values():
            ends = {child.tag for child in case} & {"failure", "error", "skipped"}
            found[named[2]][named[1]] = next(iter(ends), "passed")
    return found


def told(algo: str, column: str, how: str | None) -> str:
    """How a test of an algorithm ended, in the words of its column."""
    if how is None or how == "skipped":
        return "not tested"
    if how != "passed":
        return "**no**"
    if column == "plays" and "procgen" in algo:
        return "refused"
    if column != "resumes":
        return "yes"
    return "exact" if load_spec(algo).exact else "new episodes"


def proven_on(algo: str) -> str:
    """The environments on which an algorithm reached its bound, from the table on its page."""
    page = (PAGES / f"{algo}.md").read_text("utf-8")
    lines = [line for line in page[page.index(BEGIN) : page.index(END)].splitlines() if line.startswith("|")]
    table = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    proofs = []
    for row in table[2:]:
        cells = dict(zip(table[0], row, strict=True))
        reached, seeds = cells.get("reached", ""), len(cells.get("each seed", "").split(";")[0].split(","))
        if reached == "yes" and not cells.get("bound", "").startswith("at most"):
            some = "" if seeds >= _SEEDS else f" ({seeds} seed{'s' if seeds > 1 else ''})"
            proofs.append(cells["environment"] + some)
        elif reached == "not yet":
            proofs.append(f"not yet: {cells['environment']} ({seeds} of {_SEEDS} seeds)")
    return ", ".join(proofs) or "not proven yet"


def read_speeds() -> dict[str, str]:
    """How many times as fast as Stable-Baselines3 each algorithm is, from results/speed.md."""
    page = (Path(__file__).with_name("results") / "speed.md").read_text("utf-8")
    header = next(line for line in page.splitlines() if line.startswith("| algorithm"))
    names = [cell.strip() for cell in header.strip("|").split(" | ")]
    found = {}
    for row in kept_rows("speed", names):
        cells = dict(zip(names, row, strict=True))
        factor = cells["ours ÷ Stable-Baselines3"]
        algo = cells["algorithm"]
        if not (PAGES / f"{algo}.md").exists():
            algo = f"{algo}_continuous_action"
        if factor != "–":
            found[algo] = f"{factor} on {cells['environment']}"
    return found


if __name__ == "__main__":
    sys.exit(main())
