"""Whether a curriculum pays: environment steps until DoorKey 8×8 is solved, with smaller rooms first or not.

python benchmarks/curriculum.py [--keep FOLDER] [--jobs 2] [--seeds 1 2 3] [--steps 500000]

Runs that are finished in FOLDER are not trained again, so that a call that was broken off goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from curriculum_figure import draw
from learning_pages import END
from tables import Table, write_tables

from mosaic.analytics.event_files import EventReader
from mosaic.contract.atomic import write_atomic

PAGE = Path(__file__).parents[1] / "docs" / "curriculum.md"
BEGIN = "<!-- results: written by benchmarks/curriculum.py -->"
FIGURE = "figures/curriculum.png"
FIVE, SIX, EIGHT = (f"MiniGrid-DoorKey-{size}-v0" for size in ("5x5", "6x6", "8x8"))
TARGET, EPISODES = 0.9, 100
SOLVED = f"episodes>={EPISODES}&episode_return>={TARGET}"
STAGES = [{"env_id": FIVE, "condition": SOLVED}, {"env_id": SIX, "condition": SOLVED}, {"env_id": EIGHT}]
WAYS = {"curriculum": STAGES, "alone": STAGES[-1:]}
FLAGS = [
    *("--num-envs=16", "--num-steps=128", "--num-minibatches=8", "--update-epochs=4"),
    *("--learning-rate=1e-3", "--no-anneal-lr", "--ent-coef=0.01", "--gamma=0.99", "--gae-lambda=0.95"),
]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
LOOK_SECONDS = 2.0
HEADER = ["seed", "on 5×5", "on 6×6", "on 8×8", "in all", "8×8 alone", "saved"]
TEXT = f"""\
Environment steps until the mean return of the last {EPISODES} training episodes on `{EIGHT}` is {TARGET}. The
curriculum plays `{FIVE}`, then `{SIX}`, each until `{SOLVED}` holds,
and then 8×8; its steps on all three count. Alone, all steps are on 8×8. Both are `ppo` with the same flags,
one CPU thread each:

    {" ".join(FLAGS)}"""


@dataclass(frozen=True)
class Outcome:
    """How one run went: steps in all when it had solved 8×8, if it did, and where its stages began."""

    budget: int
    solved_at: int | None
    began: list[int]
    steps: list[int]
    returns: list[float]
    """Return of each episode on 8×8, and the step at which it ended."""


def main() -> int:
    options = parse_options()
    with tempfile.TemporaryDirectory() as scratch:
        keep = (options.keep or Path(scratch)).absolute()
        jobs = [(way, seed, keep / f"{way}-{seed}") for seed in options.seeds for way in WAYS]
        with ThreadPoolExecutor(options.jobs) as pool:
            found = list(pool.map(lambda job: measure(job[0], job[1], job[2], options.steps), jobs))
    outcomes = {(way, seed): outcome for (way, seed, _), outcome in zip(jobs, found, strict=True)}
    with_stages = [outcomes["curriculum", seed] for seed in options.seeds]
    alone = [outcomes["alone", seed] for seed in options.seeds]
    # A folder's name tells others nothing.
    del sys.argv[1:]
    rows = [cells(str(seed), *pair) for seed, *pair in zip(options.seeds, with_stages, alone, strict=True)]
    table = Table(HEADER, [*rows, mean_row(with_stages, alone)])
    write_tables("curriculum", "Curriculum", TEXT, [table], ("torch", "gymnasium", "minigrid", "numpy"))
    draw(PAGE.parent / FIGURE, with_stages, alone, TARGET)
    write_page(table)
    return 0


def measure(way: str, seed: int, folder: Path, budget: int) -> Outcome:
    """Train one run until it has solved 8×8 or used its budget, unless that was done before."""
    done = folder / "outcome.json"
    if done.exists():
        return Outcome(**json.loads(done.read_text("utf-8")))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "cleanrl_worker.algorithms.ppo", f"--env-id={EIGHT}", f"--seed={seed}"]
    command += [f"--total-timesteps={budget}", f"--curriculum={json.dumps(WAYS[way])}", *FLAGS]
    command += ["--checkpoint-every=0", "--eval-episodes=0"]
    with open(folder / "out.log", "wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=os.environ | ONE_THREAD, stdout=log, stderr=subprocess.STDOUT
        )
    outcome = Outcome(budget, None, [], [], [])
    while True:
        ended = process.poll() is not None
        outcome = read(folder, len(WAYS[way]), budget)
        if outcome.solved_at is not None or ended:
            break
        time.sleep(LOOK_SECONDS)
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    code = process.wait()
    if code not in (0, 128 + signal.SIGTERM):
        raise SystemExit(f"{way} with seed {seed} failed; see {folder / 'out.log'}.")
    print(f"{way}, seed {seed}: {outcome.solved_at or 'not solved'}", flush=True)
    write_atomic(done, json.dumps(asdict(outcome)).encode())
    return outcome


def read(folder: Path, last: int, budget: int) -> Outcome:
    """What a run's event files say so far."""
    chunks = EventReader(folder / "runs").poll(10_000_000) if (folder / "runs").is_dir() else []
    series = chunks[0].series if chunks else {}
    began = list(series["curriculum/stage"].steps) if "curriculum/stage" in series else []
    tag = f"curriculum/stage_{last}_return"
    steps, returns = (list(series[tag].steps), list(series[tag].values)) if tag in series else ([], [])
    solved = solved_at(steps, returns)
    return Outcome(budget, solved, began, steps, returns)


def solved_at(steps: Sequence[int], returns: Sequence[float]) -> int | None:
    """The first step at which the last episodes are as good as they should be."""
    total = 0.0
    for number, value in enumerate(returns):
        total += value - (returns[number - EPISODES] if number >= EPISODES else 0.0)
        if number + 1 >= EPISODES and total / EPISODES >= TARGET:
            return steps[number]
    return None


def cells(name: str, staged: Outcome, alone: Outcome) -> list[str]:
    """A line of the table."""
    ends = [*staged.began[1:], staged.solved_at]
    parts = [None if end is None else end - start for start, end in zip(staged.began, ends, strict=True)]
    least = "" if alone.solved_at else "≥ "
    end = alone.solved_at or alone.budget
    saved = f"{least}{1 - staged.solved_at / end:.0%}" if staged.solved_at else "–"
    told = [count(part, "–") for part in (parts + [None] * 3)[:3]]
    return [name, *told, told_steps(staged), told_steps(alone), saved]


def mean_row(staged: Sequence[Outcome], alone: Sequence[Outcome]) -> list[str]:
    """The last line: means over the seeds, of runs that never got there at least their budget."""
    first, second = (fmean(one.solved_at or one.budget for one in runs) for runs in (staged, alone))
    sure = all(one.solved_at for one in alone)
    return [
        "mean",
        "",
        "",
        "",
        f"{first:,.0f}",
        f"{'' if sure else '≥ '}{second:,.0f}",
        f"{'' if sure else '≥ '}{1 - first / second:.0%}",
    ]


def told_steps(outcome: Outcome) -> str:
    return count(outcome.solved_at, f"not in {outcome.budget:,}")


def count(number: int | None, otherwise: str) -> str:
    return otherwise if number is None else f"{number:,}"


def write_page(table: Table) -> None:
    """Put table and picture between the marks on the page."""
    before, begin, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    picture = f"![Returns on DoorKey 8×8, with the curriculum and alone]({FIGURE})"
    PAGE.write_text(before + "\n".join([begin, "", *table.lines(), "", picture, "", end]) + after, "utf-8")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the runs, and go on with them")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="runs at a time (2)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], metavar="N")
    parser.add_argument("--steps", type=int, default=500_000, metavar="N", help="the most steps of a run")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
