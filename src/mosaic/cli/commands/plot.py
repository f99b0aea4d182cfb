"""`plot`: learning curves as a figure for a paper."""

from __future__ import annotations

import argparse

from mosaic.analytics.figures import check_figure_path, write_figure
from mosaic.analytics.report_data import compare_runs
from mosaic.cli.commands.export import shown_progress
from mosaic.cli.output import note, place_text, print_json, say
from mosaic.cli.runs import choose_runs, connect
from mosaic.client.groups import defaults_for
from mosaic.contract import words
from mosaic.contract.extras import require_extra


def run_plot(args: argparse.Namespace) -> int:
    check_figure_path(args.output)
    require_extra("plots", "plot")
    with connect(args) as client:
        runs = choose_runs(client, args.wanted, args)
    with shown_progress() as progress:
        compared = compare_runs(runs, args.metric, args.group_by, defaults_for(runs), progress)
    write_figure(
        compared,
        args.output,
        axis=args.x,
        statistic=args.statistic,
        smooth=args.smooth,
        size=args.size,
        title=args.title,
        style=args.style,
    )
    for problem in compared.notices:
        note(f"mosaic: {problem}")
    labels = [group.label for group in compared.groups]
    if args.json:
        print_json(
            {
                "path": str(args.output),
                "metric": compared.metric,
                "groups": labels,
                "run_ids": [run.run_id for run in runs],
            }
        )
    else:
        what = f"{compared.metric}, {words.count(len(labels), 'line')}, {words.count(len(runs), 'run')}"
        say(f"{place_text(args.output)}: {what}")
    return 0
