"""What the commands take that start runs or play policies: `train`, `rerun`, `eval` and `play`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from mosaic.cli import values
from mosaic.cli.parser import RUN, Parser, add, flag, general, group, number, option, page, repeated
from mosaic.contract.capabilities import ParamSchema, WorkerCatalog, discover_workers
from mosaic.tracking import TITLES

_NAMES = (
    option("--name", "TEXT", "the run's name"),
    repeated("--tag", "TAG", "a tag to find the run by"),
)
_SECRETS = (
    repeated(
        "--secret",
        "NAME",
        "treat the setting or variable NAME as a secret, which is in no file once the run has ended; a "
        "value of @env:VARIABLE is also a secret and is read from your environment",
        dest="secrets",
    ),
    repeated("--plain", "NAME", "the setting NAME only looks like a key and may be stored"),
)
"""How secrets among the settings of a run are told from what may be stored."""
_TRUST = repeated(
    "--trust", "MODULE", "allow the import of a module that only a policy or checkpoint file names"
)
"""The yes to what a checkpoint or a policy from elsewhere would have imported."""
_MANNER = (
    flag("--detach", "start and return at once"),
    flag("--dry-run", "check everything and show what would run; --json prints the run config"),
    flag("--emit-summary", "with --dry-run: print the result as JSON"),
)
_STOCHASTIC = flag("--stochastic", "sample actions as in training, instead of taking the best ones")
_POLICY = (
    option("--env", "ID", "an environment other than that of the training"),
    option(
        "--env-kwargs",
        "JSON",
        "keyword arguments of the environment, instead of those of the training",
        type=values.json_object,
    ),
    option("--algo", "NAME", "the algorithm, for a file that does not name its own"),
    _TRUST,
)
_TRACKING = (
    repeated(
        "--track",
        "TRACKER",
        "also track the run with wandb, mlflow or trackio",
        choices=tuple(TITLES),
        dest="trackers",
    ),
    flag("--wandb", "the same as --track wandb", action="append_const", dest="trackers", const="wandb"),
    option("--track-project", "NAME", "the tracker's project (MLflow: experiment)"),
    option("--track-name", "NAME", "the run's name in the tracker"),
    option("--track-group", "NAME", "the run's group in the tracker (W&B and trackio)"),
    flag("--track-offline", "W&B: store the run locally, to upload it later with `wandb sync`"),
)
"""Where else a run is shown. Their other settings are extras, such as wandb_entity: see docs/tracking.md."""
_WHAT = group(
    "What is trained",
    number(
        "--total-timesteps --steps",
        values.count,
        ("the number of environment steps, such as 50000, 500k or 1e6"),
    ),
    number("--seed", values.natural, "the random seed"),
    option("--seeds", "LIST", "one run per seed: 1-5 or 1,3,7", type=values.seeds),
    repeated(
        "--set",
        "NAME=VALUE",
        "a parameter of the algorithm, checked before anything starts",
        type=values.setting,
    ),
    option("--env-kwargs", "JSON", "keyword arguments of the environment", type=values.json_object),
    option(
        "--curriculum",
        "FILE.json",
        "train on several environments in sequence: a file with a list of stages or with the tasks of a "
        "Syllabus-RL curriculum, the same as JSON text, or the name of a preset, such as "
        "BABYAI_DOORKEY_CURRICULUM; ENV is then the last one",
        type=values.curriculum,
    ),
    repeated(
        "--extra",
        "KEY=VALUE",
        "a setting of the worker, such as notes=... or eval_episodes=10",
        type=values.setting,
    ),
    *_NAMES,
)
_WITH = group(
    "With what",
    number("--cpus", values.count, "CPUs to reserve (1)"),
    number("--memory-mb", values.count, "memory to reserve, in megabytes (none)"),
    number("--gpus", values.natural, "GPUs to reserve if they are free (0)"),
    flag("--gpus-mandatory", "wait for the GPUs instead of training on the CPU"),
    flag("--cuda", "train on a GPU: reserves one, or as many as --gpus says"),
    option("--python", "PATH", "the interpreter of the training process, such as that of another venv"),
    repeated(
        "--env",
        "NAME[=VALUE]",
        "an environment variable for the run; without a value, yours is used (WANDB_*, HF_*, "
        "CUDA_VISIBLE_DEVICES, MUJOCO_GL and proxies are always passed on)",
        type=values.variable,
        dest="variables",
    ),
    *_SECRETS,
    _TRUST,
    *_TRACKING,
    flag(
        "--upload-model", ("upload the model to the Hugging Face Hub when the run has completed (see `push`)")
    ),
    option("--hf-entity", "NAME", "the user or organization on the Hub (the token's own)"),
    number("--max-minutes", values.positive, "end the run after this many minutes of work"),
    number("--max-restarts", values.natural, "restart the run after a fault, at most this many times"),
    number(
        "--priority",
        values.priority,
        "from -1000 to 1000, the highest starts first (0)",
    ),
)
_RUN = (_WHAT, _WITH, group("How", *_MANNER))
"""Everything about the runs to start, but not what they train."""
_RUNS_JSON = "at the end, an object with run_id, status, outcome, run_dir"


def train_parser(argv: Sequence[str]) -> Parser:
    """With an algorithm among the words, its own parameters are options too."""
    catalogs = [worker.load_catalog() for worker in discover_workers().values() if worker.catalog]
    known = [name for catalog in catalogs for name in catalog.algorithms()]
    parser = Parser(
        "train",
        "ALGO ENV [options] | --resume CHECKPOINT",
        "Train an algorithm on an environment and watch it learn. The results are in the run's folder.\n"
        "Ctrl-C asks whether to detach or to cancel the run.",
        (
            "ppo CartPole-v1",
            "ppo CartPole-v1 --steps 50k --seeds 1-5 --tag baseline",
            "ppo Acrobot-v1 --learning-rate 1e-3 --set num_envs=8",
            "my_script.py CartPole-v1 --python ~/other-venv/bin/python",
            "--config run.json --seed 7",
            "--resume last --extend 200k",
            "ppo --curriculum BABYAI_DOORKEY_CURRICULUM --steps 2M --set num_envs=16",
        ),
    )
    algos = f"{', '.join(known)}; or the path of a script, or a dotted module"
    add(
        parser,
        option("algo", "ALGO", algos, nargs="?"),
        option("env", "ENV", "an environment id; module:EnvId for your own", nargs="?"),
        option("--env-id", "ID", "the same as ENV"),
        option("--config", "FILE.json", "a complete run config instead of ALGO and ENV", type=Path),
        option(
            "--resume",
            "CHECKPOINT",
            "start a new run from a full checkpoint, the newest checkpoint of a run (its id, its folder, "
            "'last'), or the weights of a .cleanrl_model file, with its algorithm, environment and "
            "parameters",
        ),
        number(
            "--extend",
            values.count,
            "with --resume: train N steps beyond the old budget instead of finishing it",
        ),
    )
    place = parser.add_argument_group("Parameters")
    add(parser, *_RUN, general(_RUNS_JSON))
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


PAGES = {
    "rerun": page(
        "RUN [options]",
        "Train again with the settings of an earlier run, except for those that you change here.",
        ("last --set learning_rate=1e-3", "01K9ZW --seeds 2-5 --tag repeat"),
        RUN,
        *_RUN,
        json=_RUNS_JSON,
    ),
    "eval": page(
        "POLICY [options]",
        "Evaluate a trained policy over many episodes, as a separate run.\n"
        "Algorithm, environment and seed default to the policy's own. Episodes always start from the "
        "same seeds, so two evaluations with the same --seed can be compared.",
        (
            "last",
            "last:best --episodes 1000",
            "ppo.cleanrl_model --stochastic --seed 7 --json",
            "01K9ZW --repeat --video",
        ),
        option(
            "policy",
            "POLICY",
            "a .cleanrl_model file, a full checkpoint, or a run: its id, the beginning of one, or "
            "'last', for its newest policy; append ':best' for its best one",
        ),
        group(
            "How it is played",
            number("--episodes", values.count, "the number of episodes (50)"),
            number("--batch-size", values.count, "write results after this many episodes (50)"),
            flag("--repeat", "play batches until the run is cancelled"),
            _STOCHASTIC,
            number("--seed", values.natural, "episode n starts from 1,000,000 + N + n"),
            number("--gamma", values.fraction, "the discount factor of the discounted return"),
            number("--num-envs", values.count, "environments played in parallel"),
            number("--max-episode-steps", values.count, "truncate episodes after this many steps (30,000)"),
            number("--max-seconds", values.positive, "truncate running episodes after this time"),
            flag("--video", "record videos of some episodes"),
        ),
        group("What is played", *_POLICY),
        group("The run", *_NAMES, *_SECRETS, *_MANNER),
        # What the dry run asks of every command that starts runs.
        lambda parser: parser.set_defaults(config=None, run=None, seeds=None, set=[], extra=[]),
        json="at the end, the run with all its scores as 'evaluation'",
    ),
    "play": page(
        "POLICY | ENVIRONMENT [options]",
        "Step through a trained policy by key: see what it observes and expects, and override its "
        "actions.\n"
        "With an environment instead of a policy, play it by hand. Nothing is trained; only --record "
        "writes files.",
        (
            "last",
            "01K9ZW --seed 7",
            "ppo.cleanrl_model --env CartPole-v1 --stochastic",
            "LunarLander-v3 --record episodes",
            "--env ALE/Pong-v5 --seed 7",
        ),
        option(
            "policy",
            "POLICY",
            "a .cleanrl_model file, a full checkpoint, or a run (its id, the beginning of one, 'last'); "
            "or the environment to play by hand",
            nargs="?",
        ),
        number("--seed", values.natural, "the seed of the first episode"),
        option(
            "--record",
            "FOLDER",
            "by hand: save each episode there as a trajectory (.npz) and a video (.mp4)",
        ),
        _STOCHASTIC,
        *_POLICY,
    ),
}
"""What makes the parsers of the others, by their names."""


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
