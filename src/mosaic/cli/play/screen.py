"""The loop between keys and screen."""

from __future__ import annotations

import contextlib

from rich.live import Live

from mosaic.cli.output import console
from mosaic.cli.play.keyboard import Keyboard
from mosaic.cli.play.player import Player
from mosaic.cli.play.view import render
from mosaic.client.playing import PlaySession


def play(session: PlaySession) -> Player:
    """Let the user play until they leave; the terminal is then as it was before, however that came."""
    player = Player(session)
    screen = console()
    with (
        Keyboard() as keyboard,
        Live(
            console=screen, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        ) as live,
        # The terminal has gone, and with it the user.
        contextlib.suppress(EOFError),
    ):
        while not player.left:
            live.update(render(player, screen.size.height), refresh=True)
            key = keyboard.read(player.patience())
            if key is not None:
                player.press(key)
            player.tick()
    return player
