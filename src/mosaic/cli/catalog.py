"""The commands: their names, what they are for, and where their code is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast

from mosaic.cli.words import program
from mosaic.contract.errors import UserError, closest

if TYPE_CHECKING:
    import argparse

    from mosaic.cli.parser import Parser


@dataclass(frozen=True)
class Command:
    """One command. What it takes is imported to parse it, what it does only when it is done."""

    name: str
    group: str
    summary: str
    module: str
    """Of `mosaic.cli.commands`."""

    def parser(self, argv: Sequence[str]) -> Parser:
        """What it takes; `argv` is there for a parser that depends on what was typed."""
        starts = self.name in ("train", "rerun", "eval", "play")
        module = import_module("mosaic.cli.starting" if starts else "mosaic.cli.parsers")
        made = module.train_parser(argv) if self.name == "train" else module.PAGES[self.name](self.name)
        return cast("Parser", made)

    def run(self, args: argparse.Namespace) -> int:
        """Do it; gives the exit code."""
        module = import_module(f"mosaic.cli.commands.{self.module}")
        return int(getattr(module, f"run_{self.name}")(args))


COMMANDS = (
    Command("train", "Train", "train an algorithm on an environment and watch it learn", "train"),
    Command(
        "rerun", "Train", "train again with the settings of an earlier run, changed as you like", "train"
    ),
    Command("scripts", "Train", "list the scripts of several phases that `train` runs by name", "scripts"),
    Command("phase", "Train", "inside such a script: say which phase begins", "scripts"),
    Command("pause", "Train", "stop runs where they are; they keep what they reserve", "control"),
    Command("resume", "Train", "let paused runs go on", "control"),
    Command("cancel", "Train", "end runs that wait or train", "control"),
    Command("eval", "Train", "play a trained policy for many episodes, and tell how good it is", "train"),
    Command("gui", "Look", "open the window: train, watch, compare and play without a command line", "gui"),
    Command("runs", "Look", "list runs, newest first", "lists"),
    Command(
        "queue", "Look", "what runs hold, what waits for what, and in which order; change the order", "daemon"
    ),
    Command("show", "Look", "everything about one run: numbers, history, files", "show"),
    Command("watch", "Look", "follow runs live", "show"),
    Command("snapshot", "Look", "save a picture of the environments of a run, as they are now", "pictures"),
    Command("record", "Look", "save a video of the environments of a run", "pictures"),
    Command("play", "Look", "step through a trained policy by key, and take over its actions", "play"),
    Command("policies", "Look", "list every trained model and checkpoint", "lists"),
    Command("logs", "Look", "what a run has printed", "show"),
    Command("tensorboard", "Look", "open the curves of runs in TensorBoard", "tensorboard"),
    Command("tag", "Keep in order", "change tags, name and notes of runs", "control"),
    Command("rm", "Keep in order", "remove ended runs and their files", "control"),
    Command(
        "gc", "Keep in order", "remove old runs and leftovers by rule, after telling what would go", "gc"
    ),
    Command("extras", "Keep in order", "list or install what some environments and trackers need", "doctor"),
    Command(
        "doctor", "Keep in order", "check the installation, say what is missing and how to get it", "doctor"
    ),
    Command("daemon", "Keep in order", "start, stop or look at the daemon that keeps the runs", "daemon"),
)


def find_command(name: str) -> Command:
    """The command called `name`, or an error with the nearest one."""
    for command in COMMANDS:
        if command.name == name:
            return command
    if name.startswith("-"):
        hint = closest(name, ["--help", "--version", "--debug", "--var"])
        raise UserError(
            f"'{name}' is not an option{hint or '.'} A command comes first: see `{program()} --help`."
        )
    hint = closest(name, [command.name for command in COMMANDS])
    raise UserError(f"'{name}' is not a command{hint or '.'} All of them: `{program()} --help`.")


def overview() -> str:
    """All commands by purpose, and examples to start from."""
    name, width = program(), max(len(command.name) for command in COMMANDS) + 2
    lines = [
        "MOSAIC trains reinforcement learning agents, shows them learning and keeps what they leave.",
        "",
        f"Usage: {name} COMMAND [options]",
    ]
    group = ""
    for command in COMMANDS:
        if command.group != group:
            group = command.group
            lines += ["", group]
        lines.append(f"  {command.name:<{width}}{command.summary}")
    lines += [
        "",
        "Examples",
        f"  {name} train ppo CartPole-v1",
        f"  {name} train ppo Acrobot-v1 --seeds 1-5 --set learning_rate=1e-3",
        f"  {name} show last",
        "",
        f"`{name} COMMAND --help` tells more; `{name} train ppo --help` lists the parameters of ppo.",
        "Every command takes --var PATH (where everything is kept) and --debug (the traceback of an error).",
    ]
    return "\n".join(lines)
