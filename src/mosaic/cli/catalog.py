"""The commands: their names, what they are for, and where their code is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from mosaic.cli.program import program
from mosaic.contract.errors import UserError, closest

if TYPE_CHECKING:
    import argparse


class CommandModule(Protocol):
    """What each module in `mosaic.cli.commands` has."""

    def parser(self, argv: Sequence[str]) -> argparse.ArgumentParser:
        """The command's parser; `argv` is there for a parser that depends on what was typed."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; gives the exit code."""


@dataclass(frozen=True)
class Command:
    """One command, its module imported only when it is used."""

    name: str
    group: str
    summary: str

    def load(self) -> CommandModule:
        return cast(CommandModule, import_module(f"mosaic.cli.commands.{self.name}"))


COMMANDS = (
    Command("train", "Train", "train an algorithm on an environment and watch it learn"),
    Command("rerun", "Train", "train again with the settings of an earlier run, changed as you like"),
    Command("scripts", "Train", "list the scripts of several phases that `train` runs by name"),
    Command("phase", "Train", "inside such a script: say which phase begins"),
    Command("pause", "Train", "stop runs where they are; they keep what they reserve"),
    Command("resume", "Train", "let paused runs go on"),
    Command("cancel", "Train", "end runs that wait or train"),
    Command("eval", "Train", "play a trained policy for many episodes, and tell how good it is"),
    Command("gui", "Look", "open the window: train, watch, compare and play without a command line"),
    Command("runs", "Look", "list runs, newest first"),
    Command("queue", "Look", "what runs hold, what waits for what, and in which order; change the order"),
    Command("show", "Look", "everything about one run: numbers, history, files"),
    Command("watch", "Look", "follow runs live"),
    Command("snapshot", "Look", "save a picture of the environments of a run, as they are now"),
    Command("record", "Look", "save a video of the environments of a run"),
    Command("play", "Look", "step through a trained policy by key, and take over its actions"),
    Command("policies", "Look", "list every trained model and checkpoint"),
    Command("logs", "Look", "what a run has printed"),
    Command("tensorboard", "Look", "open the curves of runs in TensorBoard"),
    Command("tag", "Keep in order", "change tags, name and notes of runs"),
    Command("rm", "Keep in order", "remove ended runs and their files"),
    Command("gc", "Keep in order", "remove old runs and leftovers by rule, after telling what would go"),
    Command("extras", "Keep in order", "list or install what some environments and trackers need"),
    Command("doctor", "Keep in order", "check the installation, say what is missing and how to get it"),
    Command("daemon", "Keep in order", "start, stop or look at the daemon that keeps the runs"),
)


def find_command(name: str) -> Command:
    """The command called `name`, or an error with the nearest one."""
    for command in COMMANDS:
        if command.name == name:
            return command
    if name.startswith("-"):
        hint = closest(name, ["--help", "--version", "--debug", "--var"])
        raise UserError(
            f"'{name}' is no option{hint or '.'} A command comes first: see `{program()} --help`."
        )
    hint = closest(name, [command.name for command in COMMANDS])
    raise UserError(f"'{name}' is no command{hint or '.'} All of them: `{program()} --help`.")
