"""Names, reasons, logs and errors reach the terminal as text: it obeys none of them."""

from __future__ import annotations

import json
import re

import pytest

from conftest import RunMosaic
from mosaic.client import Client
from support.runs import script_config
from support.terminal import at_terminal

NAME = "n\x1b[31mame\x1b]0;title\x07 [red]x[/red] :smile:"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
OF_OURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r\n|\r")
"""Colours and the live panel's own movements."""


@pytest.fixture
def run_id(client: Client) -> str:
    """A run that ended, with a terminal's commands in everything about it."""
    config = {**script_config("commands_terminals.py"), "run_name": NAME, "tags": ["t\x1b[1mag"]}
    run = client.wait(client.submit(config).run_id, 60)
    client.label(run.run_id, notes="n\x9bote \u202eback")
    return run.run_id


def test_no_command_passes_on_what_a_terminal_obeys(run_id: str, run_mosaic: RunMosaic) -> None:
    for line in (
        ["runs"],
        ["runs", "--json"],
        ["show", run_id],
        ["watch", run_id],
        ["logs", run_id],
        ["logs", run_id, "--stderr"],
        ["logs", run_id, "--events"],
        ["logs", run_id, "-f"],
        ["queue"],
        ["gc", "--keep", "0"],
        ["show", "\x1b]0;title\x07"],
        ["\x1b]0;title\x07"],
        ["runs", "--\x9b31m"],
        ["train", "ppo", "\u202eCartPole\x1b[31m-v1", "--dry-run"],
        ["train", "ppo", "CartPole-v1", "--set", "x\x07=1", "--dry-run", "--debug"],
        ["--var", "/proc/\x1b]0;title\x07", "runs"],
    ):
        done = run_mosaic(*line, check=False)
        shown = done.stdout + done.stderr
        assert shown
        assert not OBEYED.search(shown.replace("\r\n", "\n")), (line, shown)


def test_words_of_others_are_neither_markup_nor_pictures(run_id: str, run_mosaic: RunMosaic) -> None:
    for line in (["runs"], ["show", run_id]):
        assert "[red]x[/red] :smile:" in run_mosaic(*line, env={"COLUMNS": "200"}).stdout


def test_logs_are_what_a_terminal_would_show_and_raw_byte_by_byte(run_id: str, run_mosaic: RunMosaic) -> None:
    assert run_mosaic("logs", run_id).stdout.splitlines()[0] == "done"
    with at_terminal("logs", run_id, "--raw") as terminal:
        assert terminal.wait() == 0
    assert "\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202eback 10%\r20%\rdone" in terminal.seen
    whole = json.loads(run_mosaic("logs", run_id, "--json").stdout)["lines"]
    assert whole[0] == "\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202eback 10%\r20%\rdone"
    assert "\x9b31m" in run_mosaic("logs", run_id, "--stderr", "--raw", "-n", "1").stdout


def test_a_terminal_gets_our_colours_and_nobody_elses(run_id: str) -> None:
    for line in (["runs"], ["show", run_id], ["watch", run_id]):
        with at_terminal(*line) as terminal:
            terminal.wait()
        assert "\x1b[31m" in terminal.seen
        assert not OBEYED.search(OF_OURS.sub("", terminal.seen)), (line, terminal.seen)
        assert "\x1b[31mame" not in terminal.seen
        assert "\x1b[2J" not in terminal.seen
