"""`mosaic eval POLICY`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from mosaic.cli import values
from mosaic.cli.parser import Parser
from mosaic.cli.run_options import add_secret_options, add_trust_option


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "eval",
        "POLICY [options]",
        "Play a trained policy for many episodes and tell how good it is: a run of its own.\n"
        "Algorithm, environment and seed are the policy's own unless named here. Episodes start from the "
        "same seeds each time, so that two evaluations with one --seed can be compared.",
        examples=(
            "last",
            "last:best --episodes 1000",
            "ppo.cleanrl_model --stochastic --seed 7 --json",
            "01K9ZW --repeat --video",
        ),
    )
    parser.add_argument(
        "policy",
        metavar="POLICY",
        help="a .cleanrl_model file, a full checkpoint, or a run: its id, the beginning of one, 'last'; "
        "of a run the newest policy is played, with ':best' after its name the best one",
    )
    _add_how(parser)
    _add_what(parser)
    group = parser.add_argument_group("The run")
    group.add_argument("--name", metavar="TEXT", help="the run's name")
    group.add_argument(
        "--tag", action="append", default=[], metavar="TAG", help="a word to find it by; may be repeated"
    )
    add_secret_options(group)
    group.add_argument("--detach", action="store_true", help="start and return at once")
    group.add_argument("--dry-run", action="store_true", help="check all, tell what would run, start nothing")
    group.add_argument(
        "--emit-summary", action="store_true", help="with --dry-run: all that is told of the run, as JSON"
    )
    parser.add_general(json="at the end the run with all its scores as 'evaluation'")
    # What the dry run asks of every command that starts runs.
    parser.set_defaults(config=None, run=None, seeds=None, set=[], extra=[])
    return parser


def _add_how(parser: Parser) -> None:
    group = parser.add_argument_group("How it is played")
    group.add_argument("--episodes", type=values.count, metavar="N", help="how many episodes (50)")
    group.add_argument(
        "--batch-size", type=values.count, metavar="N", help="results are written after so many (50)"
    )
    group.add_argument("--repeat", action="store_true", help="play batches until the run is cancelled")
    group.add_argument(
        "--stochastic", action="store_true", help="draw actions as in training, instead of the best ones"
    )
    group.add_argument(
        "--seed", type=values.natural, metavar="N", help="episode n starts from 1,000,000 + N + n"
    )
    group.add_argument(
        "--gamma", type=values.fraction, metavar="G", help="the discount of the discounted return"
    )
    group.add_argument("--num-envs", type=values.count, metavar="N", help="environments played together")
    group.add_argument(
        "--max-episode-steps",
        type=values.count,
        metavar="N",
        help="cut an episode off after so many (30,000)",
    )
    group.add_argument(
        "--max-seconds", type=values.positive, metavar="N", help="cut off what is played after so long"
    )
    group.add_argument("--video", action="store_true", help="record videos of some episodes")


def _add_what(parser: Parser) -> None:
    group = parser.add_argument_group("What is played")
    group.add_argument("--env", metavar="ID", help="another environment than it was trained on")
    group.add_argument(
        "--env-kwargs",
        type=values.json_object,
        metavar="JSON",
        help="keyword arguments for the environment, in place of those of training",
    )
    group.add_argument("--algo", metavar="NAME", help="the algorithm, for a file that does not say its own")
    add_trust_option(group)


def run(args: argparse.Namespace) -> int:
    """Check everything, play, and tell how it went."""
    from mosaic.cli.evaluated import evaluation_json, print_evaluation
    from mosaic.cli.launch import launch
    from mosaic.client.configs import eval_config

    config = eval_config(
        args.policy,
        episodes=args.episodes,
        batch_size=args.batch_size,
        repeat=args.repeat,
        deterministic=not args.stochastic,
        gamma=args.gamma,
        seed=args.seed,
        env_id=args.env,
        env_kwargs=args.env_kwargs,
        algo=args.algo,
        capture_video=args.video,
        num_envs=args.num_envs,
        max_episode_steps=args.max_episode_steps,
        max_seconds=args.max_seconds,
        tags=args.tag,
        run_name=args.name,
        var=args.var,
        secrets=args.secrets,
        plain=args.plain,
        extras={"trust_modules": args.trust} if args.trust else None,
    )
    return launch([config], args, print_evaluation, evaluation_json)
