"""`mosaic play POLICY`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mosaic.cli import values, words
from mosaic.cli.output import say
from mosaic.cli.parser import Parser
from mosaic.cli.run_options import add_trust_option
from mosaic.contract.errors import UserError

if TYPE_CHECKING:
    from mosaic.client.playing import PlaySession


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "play",
        "POLICY [options]",
        "Step through a trained policy by key: see what it sees and expects, take over its actions.\n"
        "Nothing is trained, and nothing is written.",
        examples=("last", "01K9ZW --seed 7", "ppo.cleanrl_model --env CartPole-v1 --stochastic"),
    )
    parser.add_argument(
        "policy",
        metavar="POLICY",
        help="a .cleanrl_model file, a full checkpoint, or a run (its id, the beginning of one, 'last')",
    )
    parser.add_argument("--seed", type=values.natural, metavar="N", help="the seed of the first episode")
    parser.add_argument("--env", metavar="ID", help="another environment than it was trained on")
    parser.add_argument("--algo", metavar="NAME", help="the algorithm, for a file that does not say its own")
    parser.add_argument(
        "--env-kwargs",
        type=values.json_object,
        metavar="JSON",
        help="keyword arguments for the environment, in place of those of training",
    )
    parser.add_argument(
        "--stochastic", action="store_true", help="draw actions as in training, instead of the best ones"
    )
    add_trust_option(parser)
    parser.add_general()
    return parser


def run(args: argparse.Namespace) -> int:
    """Ends with 0 when the user leaves."""
    if args.var is not None and not args.var.is_dir():
        raise UserError(f"There is no folder {args.var}: give --var the one that holds your runs.")
    _require_terminal()
    from mosaic.cli.failures import TERMINATED
    from mosaic.cli.interrupt import Terminated, termination_raises
    from mosaic.client.playing import PlaySession

    try:
        with (
            termination_raises(),
            PlaySession.start(
                args.policy,
                algo=args.algo,
                env_id=args.env,
                env_kwargs=args.env_kwargs,
                seed=args.seed,
                deterministic=not args.stochastic,
                frames=True,
                trust=args.trust,
                var=args.var,
            ) as session,
        ):
            _play(session)
    except Terminated:
        return TERMINATED
    return 0


def _require_terminal() -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "dumb") == "dumb":
        raise UserError(
            "play needs a terminal for its keys and pictures; "
            "docs/interactive.md says how a program plays a policy."
        )


def _play(session: PlaySession) -> None:
    from mosaic.cli.play.screen import play

    player = play(session)
    if player.ended is not None:
        say(f"The last episode had a return of {words.short(player.ended['return'])}.")
