"""The options that describe a run, shared by `train` and `rerun`."""

from __future__ import annotations

import argparse

from mosaic.cli import values
from mosaic.cli.parser import Parser


def add_run_options(parser: Parser) -> None:
    """Everything about the runs to start, but not what they train."""
    _add_budget(parser)
    _add_place(parser)
    _add_manner(parser)


def _add_budget(parser: Parser) -> None:
    group = parser.add_argument_group("What is trained")
    group.add_argument(
        "--total-timesteps",
        "--steps",
        type=values.count,
        metavar="N",
        help="how many environment steps, such as 50000, 500k or 1e6",
    )
    group.add_argument("--seed", type=values.natural, metavar="N", help="the random seed")
    group.add_argument("--seeds", type=values.seeds, metavar="LIST", help="one run for each: 1-5 or 1,3,7")
    group.add_argument(
        "--set",
        action="append",
        default=[],
        type=values.setting,
        metavar="NAME=VALUE",
        help="a parameter of the algorithm, checked before anything starts; may be repeated",
    )
    group.add_argument(
        "--env-kwargs", type=values.json_object, metavar="JSON", help="keyword arguments of the environment"
    )
    group.add_argument(
        "--curriculum",
        type=values.curriculum,
        metavar="FILE.json",
        help="train on several environments in turn: a file with a list of stages or with the tasks of a "
        "Syllabus-RL curriculum, the same as text, or the name of a preset, such as "
        "BABYAI_DOORKEY_CURRICULUM; ENV is then the last of them",
    )
    group.add_argument(
        "--extra",
        action="append",
        default=[],
        type=values.setting,
        metavar="KEY=VALUE",
        help="a setting of the worker, such as notes=... or eval_episodes=10; may be repeated",
    )
    group.add_argument("--name", metavar="TEXT", help="the run's name")
    group.add_argument(
        "--tag",
        action="append",
        default=[],
        metavar="TAG",
        help="a word to find the run by; may be repeated",
    )


def _add_place(parser: Parser) -> None:
    group = parser.add_argument_group("With what")
    group.add_argument("--cpus", type=values.count, metavar="N", help="CPUs to reserve (1)")
    group.add_argument(
        "--memory-mb", type=values.count, metavar="N", help="memory to reserve, in megabytes (none)"
    )
    group.add_argument(
        "--gpus", type=values.natural, metavar="N", help="GPUs to reserve when they are free (0)"
    )
    group.add_argument(
        "--gpus-mandatory", action="store_true", help="wait for the GPUs instead of training on the CPU"
    )
    group.add_argument(
        "--cuda", action="store_true", help="train on a GPU: reserves one, or what --gpus says"
    )
    group.add_argument(
        "--python", metavar="PATH", help="another interpreter for the training process, such as a venv's"
    )
    group.add_argument(
        "--env",
        action="append",
        default=[],
        type=values.variable,
        dest="variables",
        metavar="NAME[=VALUE]",
        help="a variable for the run's environment; without a value the one that it has here; may be "
        "repeated (WANDB_*, HF_*, CUDA_VISIBLE_DEVICES, MUJOCO_GL and proxies are taken from here anyway)",
    )
    add_secret_options(group)
    add_trust_option(group)
    group.add_argument("--wandb", action="store_true", help="track with Weights & Biases as well")
    group.add_argument(
        "--max-minutes", type=values.positive, metavar="N", help="end the run after so many minutes of work"
    )
    group.add_argument(
        "--max-restarts", type=values.natural, metavar="N", help="start again after a fault, at most so often"
    )
    group.add_argument(
        "--priority",
        type=values.priority,
        metavar="N",
        help="the place in the queue: the higher starts first, from -1000 to 1000 (0)",
    )


def add_secret_options(group: argparse._ArgumentGroup) -> None:
    """How secrets among the settings of a run are told from what may be stored."""
    group.add_argument(
        "--secret",
        action="append",
        default=[],
        dest="secrets",
        metavar="NAME",
        help="the setting or variable NAME is a secret, kept in no file once its run has ended; the value "
        "@env:VARIABLE says the same and is taken from the environment here; may be repeated",
    )
    group.add_argument(
        "--plain",
        action="append",
        default=[],
        metavar="NAME",
        help="the setting NAME only looks like a key, and may be stored; may be repeated",
    )


def add_trust_option(group: argparse._ArgumentGroup | Parser) -> None:
    """The yes to what a checkpoint or a policy from elsewhere would have imported."""
    group.add_argument(
        "--trust",
        action="append",
        default=[],
        metavar="MODULE",
        help="a module that only the file of a policy or checkpoint names may be imported; may be repeated",
    )


def _add_manner(parser: Parser) -> None:
    group = parser.add_argument_group("How")
    group.add_argument("--detach", action="store_true", help="start and return at once")
    group.add_argument(
        "--dry-run",
        action="store_true",
        help="check all and tell what would run; --json prints the run config",
    )
    group.add_argument(
        "--emit-summary", action="store_true", help="with --dry-run: all that is told of the run, as JSON"
    )


class ParameterAction(argparse.Action):
    """`--learning-rate 1e-3` as a short way to say `--set learning_rate=1e-3`."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        value: object,
        option: str | None = None,
    ) -> None:
        name = self.option_strings[0].removeprefix("--").replace("-", "_")
        if self.nargs == 0:
            value = "true" if option == self.option_strings[0] else "false"
        namespace.set = [*namespace.set, (name, value)]
