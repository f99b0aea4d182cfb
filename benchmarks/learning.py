"""Whether algorithms learn as well as published: trains them, writes a table, the results pages and curves.

python benchmarks/learning.py [--keep FOLDER] [--jobs 2] [--missing]
                             [--algos ppo …] [--envs CartPole-v1 …] [--seeds 1 …]

Runs that are finished in FOLDER are not trained again, so that a call that was broken off goes on. The curve
of each finished run is kept in results/curves, from which later calls take it while its flags are the same.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
from pathlib import Path

from learning_figures import draw
from learning_pages import HEADER, PAGES, cells, judged_anew, seeds_of, write_page
from learning_plan import CATCH, PLAN, RECALL, SEEDS, SMALL_TRXL, Row
from learning_runs import Curve, read_run, train_all
from tables import Table, kept_rows, write_tables

from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY

TEXT = """\
The return is the mean over all episodes that end in the last tenth of training, as they are trained, with
exploration; of a run of 50,000 steps that is from step 45,001 on. Mean ± standard deviation over seeds. Every
hyperparameter has its default, except on the pixel tasks, so that a run takes about ten minutes on one core:
`{catch}` on `mosaic/Catch-v0`,
`{recall}` on `mosaic/Recall-v0`.
`ppo_trxl` has a network that a CPU trains in minutes: `{trxl}`.
Each of the two processes of `ppo_atari_multigpu` has half of the environments.

A bound of the form m − 2 × s is the published mean less twice s, which is the greater of the published
standard deviation and 5 % of the environment's range of returns (CartPole-v1 0 to 500, Acrobot-v1 -500 to 0,
MountainCar-v0 -200 to 0). Where that is not above the worst return there is, which every run reaches, the
bound is the published mean itself. Where that is the worst return too, there is no bound, and a row that has
it is "not solved here". The other bounds are fixed figures.

On the pixel tasks the return is the share of episodes that went well: 1 at best; for random actions about
0.2 on `mosaic/Catch-v0` and 0.25 on `mosaic/Recall-v0`. What must be recalled there is older than the four
frames that `ppo_atari` sees: that it fails there is the point. The vector tasks count in the same way; the
best policy opens `mosaic/Dial-v0` in 0.94 of all episodes, and `ppo`, which no mask reaches, must fail.

The published figures are those of CleanRL's documentation. They come from older versions of the environments
and may average over another part of training. Stable-Baselines3 was trained here, for as many steps, with the
hyperparameters in `benchmarks/sb3_run.py`.

With `--keep FOLDER` the runs stay, and a second call makes this page from them. The curve of each run is in
`benchmarks/results/curves`; of the rows without one there, the table and the pictures are what is left."""


def main() -> int:
    options = parse_options()
    chosen = [row for row in PLAN if row.algo in options.algos and row.env_id in options.envs]
    with tempfile.TemporaryDirectory() as scratch:
        keep = options.keep or Path(scratch)
        trained = [dataclasses.replace(row, seeds=seeds) for row in chosen if (seeds := wanted(row, options))]
        failed = [] if options.no_train else train_all(trained, keep, options.jobs, options.missing)
        curves = {row: read_row(row, keep) for row in PLAN}
        peers = {row: read_peer(row, keep) for row in PLAN}
    # The table is of the whole plan, however many calls it took; a folder's name tells others nothing.
    del sys.argv[1:]
    kept = {(row[0], row[1]): row for row in kept_rows("learning", HEADER)}
    rows = {}
    for row, found in curves.items():
        line = kept.get((row.algo, row.env_id))
        # What was measured before curves were kept stands until as many seeds are trained again.
        if found and (line is None or len(found) >= seeds_of(line)):
            rows[row] = cells(row, found, peers[row])
        elif line is not None:
            rows[row] = judged_anew(row, line)
    text = TEXT.format(catch=" ".join(CATCH), recall=" ".join(RECALL), trxl=" ".join(SMALL_TRXL))
    write_tables("learning", "Learning", text, [Table(HEADER, rows.values())])
    for algo in dict.fromkeys(row.algo for row in rows):
        told = {row: line for row, line in rows.items() if row.algo == algo}
        # A picture has a panel for each line of the table, so one that lacks some curves stays as it is.
        if all(len(curves[row]) >= seeds_of(line) for row, line in told.items()):
            draw(PAGES / "figures" / f"{algo}.png", {row: curves[row] for row in told}, peers)
        write_page(algo, list(told.values()))
    for name in failed:
        print(f"{name} failed; see out.log in its folder.", file=sys.stderr)
    return 1 if failed else 0


def wanted(row: Row, options: argparse.Namespace) -> tuple[int, ...]:
    """The seeds of the row that are asked for."""
    return tuple(seed for seed in row.seeds if seed in options.seeds)


def read_row(row: Row, keep: Path) -> list[Curve]:
    """The curves of the seeds that are finished."""
    return [curve for job in row.jobs() if (curve := read_run(job, keep))]


def read_peer(row: Row, keep: Path) -> Curve | None:
    """The curve of Stable-Baselines3 beside this row, if the plan has one and it is finished."""
    job = row.peer_job()
    return read_run(job, keep) if job else None


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    algorithms = list(DEFAULT_ALGO_REGISTRY)
    environments = sorted({row.env_id for row in PLAN})
    parser.add_argument("--algos", nargs="+", default=algorithms, choices=algorithms)
    parser.add_argument("--envs", nargs="+", default=environments, choices=environments)
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, choices=SEEDS)
    parser.add_argument("--missing", action="store_true", help="train only what results/curves lacks")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where runs stay and are found again")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many runs train at once")
    parser.add_argument("--no-train", action="store_true", help="only read what is finished in FOLDER")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
