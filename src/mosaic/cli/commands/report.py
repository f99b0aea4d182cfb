"""`report`: what runs came to as one page."""

from __future__ import annotations

import argparse

from mosaic.analytics.report import check_report_path, evaluations_of, write_report
from mosaic.cli.commands.export import shown_progress
from mosaic.cli.output import place_text, print_json, say
from mosaic.cli.runs import choose_runs, connect
from mosaic.client.groups import defaults_for
from mosaic.contract import words
from mosaic.contract.outside import bytes_text


def run_report(args: argparse.Namespace) -> int:
    check_report_path(args.output)
    with connect(args) as client, shown_progress() as progress:
        runs = choose_runs(client, args.wanted, args)
        evaluations = evaluations_of(client, runs)
        write_report(
            runs,
            args.output,
            title=args.title,
            metric=args.metric,
            by=args.group_by,
            evaluations=evaluations,
            defaults=defaults_for(runs),
            progress=progress,
        )
    size = args.output.stat().st_size
    if args.json:
        print_json({"path": str(args.output), "run_ids": [run.run_id for run in runs], "size": size})
    else:
        say(f"{place_text(args.output)}: {words.count(len(runs), 'run')}, {bytes_text(size)}")
    return 0
