"""`play`: a trained policy at the terminal, step by step."""

from __future__ import annotations

import argparse
import base64
import binascii
import contextlib
import os
import sys
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from mosaic.cli import words
from mosaic.cli.launch import TERMINATED, Terminated, termination_raises
from mosaic.cli.live.frames import Picture
from mosaic.cli.output import console, cut, say
from mosaic.cli.player import Keyboard, Player
from mosaic.client.playing import PlaySession
from mosaic.contract.errors import UserError
from mosaic.fastlane.png import decode_png

_ROWS_BELOW = 3
_LEAST_ROWS = 4
_MOST_NUMBERS = 8
_MOST_CHOICES = 8


def run_play(args: argparse.Namespace) -> int:
    """Ends with 0 when the user leaves."""
    if args.var is not None and not args.var.is_dir():
        raise UserError(f"There is no folder {args.var}: give --var the one that holds your runs.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "dumb") == "dumb":
        raise UserError(
            "play needs a terminal for its keys and pictures; "
            "docs/interactive.md says how a program plays a policy."
        )
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
            player = _play(session)
    except Terminated:
        return TERMINATED
    if player.ended is not None:
        say(f"The last episode had a return of {words.short(player.ended['return'])}.")
    return 0


def _play(session: PlaySession) -> Player:
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


def render(player: Player, height: int) -> RenderableType:
    """The picture, the numbers, and the keys at the bottom."""
    told = _numbers(player)
    rows = max(_LEAST_ROWS, height - _ROWS_BELOW - len(told))
    parts = [_picture(player, rows), _title(player), *told]
    if player.typing is not None:
        parts.append(cut(f"action: {player.typing}▏  (enter takes it, escape does not)", "bold yellow"))
    else:
        parts.append(cut(_news(player), "yellow"))
    return Group(*parts, cut(_keys(player), "reverse"))


def _picture(player: Player, rows: int) -> RenderableType:
    frame = player.seen.get("frame")
    if frame is None:
        return cut(f"no picture: {player.seen.get('frame_problem', 'none came')}", "dim")
    try:
        return Picture(decode_png(base64.b64decode(frame)), rows)
    except (ValueError, binascii.Error) as error:
        return cut(f"no picture: {error}", "dim")


def _title(player: Player) -> Text:
    init = player.init
    trained = init["trained_steps"]
    after = f" after {words.whole(trained)} steps" if trained is not None else ""
    how = "best actions" if init["deterministic"] else "actions drawn at random"
    return cut(f"{init['algo']} on {init['env_id']}{after}, {how}", "bold")


def _numbers(player: Player) -> list[Text]:
    seen, choices = player.seen, player.choices
    done = f"step {seen.get('step', 0)}   return {words.short(seen.get('return', 0.0))}"
    if "action" in seen:
        by = "policy" if seen["by"] == "policy" else "you"
        done += f"   last {choices.name(seen['action'])} by {by}, reward {_short(seen['reward'])}"
    lines = [f"episode {player.episode}, seed {player.seed}   {done}"]
    if seen["next"] is not None:
        lines.append(f"next {choices.name(seen['next']['action'])}{_opinion(player, seen['next'])}")
    else:
        lines.append("next –")
    observation = seen["observation"]
    if seen.get("mission"):
        lines.append(f"mission {seen['mission']}")
        if isinstance(observation, dict):
            observation = {name: value for name, value in observation.items() if name != "mission"}
    lines.append(f"sees {shown(observation)}")
    return [cut(line) for line in lines]


def _opinion(player: Player, opinion: dict[str, Any]) -> str:
    """What the policy makes of where it is."""
    told = "" if opinion["value"] is None else f"   value {_short(opinion['value'])}"
    chances, values = opinion["probabilities"], opinion["action_values"]
    rows = chances or values
    if rows is None or not player.choices.discrete:
        return told
    shares = [f"{share:.0%}" for share in chances] if chances else [_short(value) for value in values]
    named = [player.choices.name(player.choices.first + number) for number in range(len(rows))]
    listed = [f"{name}: {share}" for name, share in zip(named, shares, strict=True)]
    more = " …" if len(listed) > _MOST_CHOICES else ""
    return f"{told}   {'  '.join(listed[:_MOST_CHOICES])}{more}"


def _news(player: Player) -> str:
    """A sentence about what just happened."""
    if player.notice:
        return player.notice
    if player.ended is not None:
        length, total = player.ended["length"], words.short(player.ended["return"])
        return f"The episode ended after {length} steps with a return of {total}."
    return next(iter(player.init["notes"]), "")


def _keys(player: Player) -> str:
    run = "pause" if player.running else "run"
    return f" space step  r {run} ({player.speed}/s, + -)  n new episode  {player.choices.help()}  q quit "


def shown(observation: Any) -> str:
    """An observation in short: a few numbers, or the shape of many."""
    if isinstance(observation, dict):
        return ", ".join(f"{name} {shown(value)}" for name, value in observation.items())
    if not isinstance(observation, list):
        return _short(observation)
    shape: list[int] = []
    inner: Any = observation
    while isinstance(inner, list):
        shape.append(len(inner))
        inner = inner[0] if inner else None
    if len(shape) > 1:
        return " × ".join(map(str, shape))
    more = " …" if len(observation) > _MOST_NUMBERS else ""
    return " ".join(_short(value) for value in observation[:_MOST_NUMBERS]) + more


def _short(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
