"""What the commands take that start runs or play policies: `train`, `rerun`, `eval` and `play`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from mosaic.cli import values
from mosaic.cli.parser import Parser, flag, number, repeated
from mosaic.contract.capabilities import ParamSchema, WorkerCatalog, discover_workers


def train_parser(argv: Sequence[str]) -> Parser:
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
    number(
        parser,
        "--extend",
        type=values.count,
        help="with --resume: so many steps more than the budget was; else the run finishes its old budget",
    )
    place = parser.add_argument_group("Parameters")
    _add_run_options(parser)
    parser.with_general(json="at the end an object with run_id, status, outcome, run_dir")
    algo = _typed_algorithm(parser, argv)
    if algo is None:
        place.description = f"`{parser.prog} ALGO --help` lists the parameters of an algorithm."
        return parser
    catalog = next((catalog for catalog in catalogs if catalog.knows(algo)), None)
    if catalog is None:
        from mosaic.client.configs import worker_for

        catalog = worker_for(algo).load_catalog()
    place.title = f"Parameters of {algo}"
    _add_parameters(parser, place, catalog, algo)
    if algo not in known:
        _add_typed(parser, place, argv[list(argv).index(algo) + 1 :])
    return parser


def rerun_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "rerun",
        "RUN [options]",
        "Train again with the settings of an earlier run; what you name here is changed.",
        examples=("last --set learning_rate=1e-3", "01K9ZW --seeds 2-5 --tag repeat"),
    )
    parser.add_runs("run", nargs=None)
    _add_run_options(parser)
    return parser.with_general(json="at the end an object with run_id, status, outcome, run_dir")


def eval_parser(argv: Sequence[str]) -> Parser:
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
    group = parser.add_argument_group("How it is played")
    number(group, "--episodes", type=values.count, help="how many episodes (50)")
    number(group, "--batch-size", type=values.count, help="results are written after so many (50)")
    flag(group, "--repeat", help="play batches until the run is cancelled")
    flag(group, "--stochastic", help="draw actions as in training, instead of the best ones")
    number(group, "--seed", type=values.natural, help="episode n starts from 1,000,000 + N + n")
    number(group, "--gamma", type=values.fraction, help="the discount of the discounted return")
    number(group, "--num-envs", type=values.count, help="environments played together")
    number(group, "--max-episode-steps", type=values.count, help="cut an episode off after so many (30,000)")
    number(group, "--max-seconds", type=values.positive, help="cut off what is played after so long")
    flag(group, "--video", help="record videos of some episodes")
    _add_policy_options(parser.add_argument_group("What is played"))
    group = parser.add_argument_group("The run")
    _add_names(group)
    _add_secret_options(group)
    _add_manner(group)
    # What the dry run asks of every command that starts runs.
    parser.set_defaults(config=None, run=None, seeds=None, set=[], extra=[])
    return parser.with_general(json="at the end the run with all its scores as 'evaluation'")


def play_parser(argv: Sequence[str]) -> Parser:
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
    number(parser, "--seed", type=values.natural, help="the seed of the first episode")
    flag(parser, "--stochastic", help="draw actions as in training, instead of the best ones")
    _add_policy_options(parser)
    return parser.with_general()


def _add_policy_options(group: argparse._ActionsContainer) -> None:
    group.add_argument("--env", metavar="ID", help="another environment than it was trained on")
    group.add_argument(
        "--env-kwargs",
        type=values.json_object,
        metavar="JSON",
        help="keyword arguments for the environment, in place of those of training",
    )
    group.add_argument("--algo", metavar="NAME", help="the algorithm, for a file that does not say its own")
    _add_trust_option(group)


def _add_run_options(parser: Parser) -> None:
    """Everything about the runs to start, but not what they train."""
    group = parser.add_argument_group("What is trained")
    steps = "how many environment steps, such as 50000, 500k or 1e6"
    number(group, "--total-timesteps", "--steps", type=values.count, help=steps)
    number(group, "--seed", type=values.natural, help="the random seed")
    group.add_argument("--seeds", type=values.seeds, metavar="LIST", help="one run for each: 1-5 or 1,3,7")
    checked = "a parameter of the algorithm, checked before anything starts"
    repeated(group, "--set", "NAME=VALUE", checked, type=values.setting)
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
    settings = "a setting of the worker, such as notes=... or eval_episodes=10"
    repeated(group, "--extra", "KEY=VALUE", settings, type=values.setting)
    _add_names(group)
    group = parser.add_argument_group("With what")
    number(group, "--cpus", type=values.count, help="CPUs to reserve (1)")
    number(group, "--memory-mb", type=values.count, help="memory to reserve, in megabytes (none)")
    number(group, "--gpus", type=values.natural, help="GPUs to reserve when they are free (0)")
    flag(group, "--gpus-mandatory", help="wait for the GPUs instead of training on the CPU")
    flag(group, "--cuda", help="train on a GPU: reserves one, or what --gpus says")
    group.add_argument(
        "--python", metavar="PATH", help="another interpreter for the training process, such as a venv's"
    )
    repeated(
        group,
        "--env",
        "NAME[=VALUE]",
        "a variable for the run's environment; without a value the one that it has here (WANDB_*, HF_*, "
        "CUDA_VISIBLE_DEVICES, MUJOCO_GL and proxies are taken from here anyway)",
        type=values.variable,
        dest="variables",
    )
    _add_secret_options(group)
    _add_trust_option(group)
    flag(group, "--wandb", help="track with Weights & Biases as well")
    number(group, "--max-minutes", type=values.positive, help="end the run after so many minutes of work")
    number(group, "--max-restarts", type=values.natural, help="start again after a fault, at most so often")
    place = "the place in the queue: the higher starts first, from -1000 to 1000 (0)"
    number(group, "--priority", type=values.priority, help=place)
    _add_manner(parser.add_argument_group("How"))


def _add_names(group: argparse._ActionsContainer) -> None:
    group.add_argument("--name", metavar="TEXT", help="the run's name")
    repeated(group, "--tag", "TAG", "a word to find the run by")


def _add_secret_options(group: argparse._ActionsContainer) -> None:
    """How secrets among the settings of a run are told from what may be stored."""
    repeated(
        group,
        "--secret",
        "NAME",
        "the setting or variable NAME is a secret, kept in no file once its run has ended; the value "
        "@env:VARIABLE says the same and is taken from the environment here",
        dest="secrets",
    )
    repeated(group, "--plain", "NAME", "the setting NAME only looks like a key, and may be stored")


def _add_trust_option(group: argparse._ActionsContainer) -> None:
    """The yes to what a checkpoint or a policy from elsewhere would have imported."""
    allowed = "a module that only the file of a policy or checkpoint names may be imported"
    repeated(group, "--trust", "MODULE", allowed)


def _add_manner(group: argparse._ActionsContainer) -> None:
    flag(group, "--detach", help="start and return at once")
    flag(group, "--dry-run", help="check all and tell what would run; --json prints the run config")
    flag(group, "--emit-summary", help="with --dry-run: all that is told of the run, as JSON")


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
        name = parameter.name.replace("_", "-")
        if parameter.runtime_only or parser.has_option(f"--{name}"):
            continue
        text, metavar = _explain(parameter).replace("%", "%%"), parameter.type.upper()
        if parameter.type == "bool":
            names = (f"--{name}", f"--no-{name}")
            group.add_argument(*names, dest="set", action=ParameterAction, nargs=0, help=text)
        else:
            group.add_argument(f"--{name}", dest="set", action=ParameterAction, metavar=metavar, help=text)


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


def _explain(parameter: ParamSchema) -> str:
    default = parameter.default
    if isinstance(default, bool):
        default = "on" if default else "off"
    shown = "none" if default is None else default if default != "" else "empty"
    return f"{parameter.help} (default {shown})"
