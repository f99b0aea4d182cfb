"""`mosaic train ALGO ENV`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from mosaic.cli import values
from mosaic.cli.parser import Parser
from mosaic.cli.run_options import ParameterAction, add_run_options
from mosaic.contract.capabilities import Parameter, WorkerCatalog
from mosaic.contract.workers import discover_workers


def parser(argv: Sequence[str]) -> Parser:
    """With an algorithm among the words, its own parameters are options too."""
    catalogs = [worker.load_catalog() for worker in discover_workers().values() if worker.catalog]
    known = [name for catalog in catalogs for name in catalog.algorithms()]
    parser = Parser(
        "train",
        "ALGO ENV [options] | --resume CHECKPOINT",
        "Train an algorithm on an environment, watch it learn, find the results in the run's folder.\n"
        "Ctrl-C asks whether to leave the run going or to cancel it.",
        examples=(
            "ppo CartPole-v1",
            "ppo CartPole-v1 --steps 50k --seeds 1-5 --tag baseline",
            "ppo Acrobot-v1 --learning-rate 1e-3 --set num_envs=8",
            "my_script.py CartPole-v1 --python ~/other-venv/bin/python",
            "--config run.json --seed 7",
            "--resume last --extend 200k",
            "ppo --curriculum BABYAI_DOORKEY_CURRICULUM --steps 2M --set num_envs=16",
        ),
    )
    parser.add_argument(
        "algo", metavar="ALGO", nargs="?", help=f"{', '.join(known)}; or a script's path, or a dotted module"
    )
    parser.add_argument("env", metavar="ENV", nargs="?", help="an environment id; your own as module:EnvId")
    parser.add_argument("--env-id", metavar="ID", help="another way to say ENV")
    parser.add_argument(
        "--config", type=Path, metavar="FILE.json", help="a whole run config instead of ALGO and ENV"
    )
    parser.add_argument(
        "--resume",
        metavar="CHECKPOINT",
        help="a new run that goes on from a full checkpoint, the newest one of a run (its id, its folder, "
        "'last') or the weights of a .cleanrl_model file; algorithm, environment and parameters are its own",
    )
    parser.add_argument(
        "--extend",
        type=values.count,
        metavar="N",
        help="with --resume: so many steps more than the budget was; else the run finishes its old budget",
    )
    place = parser.add_argument_group("Parameters")
    add_run_options(parser)
    parser.add_general(json="at the end an object with run_id, status, outcome, run_dir")
    algo = _typed_algorithm(parser, argv)
    if algo is not None and not any(catalog.knows(algo) for catalog in catalogs):
        from mosaic.client.configs import worker_for

        worker_for(algo)
    if algo is None:
        place.description = f"`{parser.prog} ALGO --help` lists the parameters of an algorithm."
    else:
        place.title = f"Parameters of {algo}"
        catalog = next(catalog for catalog in catalogs if catalog.knows(algo))
        _add_parameters(parser, place, catalog, algo)
        if algo not in known:
            _add_typed(parser, place, argv[list(argv).index(algo) + 1 :])
    return parser


def _typed_algorithm(parser: Parser, argv: Sequence[str]) -> str | None:
    """The first word that is neither an option nor the value of one; none after an unknown option."""
    for before, word in zip(["", *argv], argv, strict=False):
        if parser.takes_value(before):
            continue
        if not word.startswith("-"):
            return word
        if not parser.has_option(word.partition("=")[0]):
            return None
    return None


def _add_parameters(
    parser: Parser, group: argparse._ArgumentGroup, catalog: WorkerCatalog, algo: str
) -> None:
    for parameter in catalog.parameters(algo):
        flag = f"--{parameter.name.replace('_', '-')}"
        if parameter.runtime_only or parser.has_option(flag):
            continue
        text = _explain(parameter).replace("%", "%%")
        if parameter.type == "bool":
            off = f"--no-{flag.removeprefix('--')}"
            group.add_argument(flag, off, dest="set", action=ParameterAction, nargs=0, help=text)
        else:
            group.add_argument(
                flag, dest="set", action=ParameterAction, metavar=parameter.type.upper(), help=text
            )


def _add_typed(parser: Parser, group: argparse._ArgumentGroup, words: Sequence[str]) -> None:
    """Options after a script's name that nobody knows: they are its own, and what checks it checks them."""
    for word, after in zip(words, [*words[1:], ""], strict=False):
        name, equals, _ = word.partition("=")
        if word == "--":
            break
        if not re.match(r"--[A-Za-z]", word) or parser.has_option(parser.spelled([name])[0]):
            continue
        if equals or re.match(r"[^-]|-[\d.]", after):
            group.add_argument(name, dest="set", action=ParameterAction, help=argparse.SUPPRESS)
        else:
            names = [f"--{name.removeprefix('--').removeprefix('no-')}"]
            names += [name] if name not in names else [f"--no-{name[2:]}"]
            group.add_argument(*names, dest="set", action=ParameterAction, nargs=0, help=argparse.SUPPRESS)


def _explain(parameter: Parameter) -> str:
    default = parameter.default
    if isinstance(default, bool):
        default = "on" if default else "off"
    shown = "none" if default is None else default if default != "" else "empty"
    return f"{parameter.help} (default {shown})"


def run(args: argparse.Namespace) -> int:
    """Check everything, then start."""
    from mosaic.cli.building import train_configs
    from mosaic.cli.launch import launch

    return launch(train_configs(args), args)
