"""`mosaic rerun RUN --set …`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from mosaic.cli.finding import RUN_HELP
from mosaic.cli.parser import Parser
from mosaic.cli.run_options import add_run_options


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "rerun",
        "RUN [options]",
        "Train again with the settings of an earlier run; what you name here is changed.",
        examples=("last --set learning_rate=1e-3", "01K9ZW --seeds 2-5 --tag repeat"),
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    add_run_options(parser)
    parser.add_general(json="at the end an object with run_id, status, outcome, run_dir")
    return parser


def run(args: argparse.Namespace) -> int:
    from mosaic.cli.building import rerun_configs
    from mosaic.cli.connecting import connect
    from mosaic.cli.finding import find_run
    from mosaic.cli.launch import launch

    with connect(args) as client:
        earlier = find_run(client, args.run)
    return launch(rerun_configs(earlier, args), args)
