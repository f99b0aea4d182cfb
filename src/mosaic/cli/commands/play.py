"""`play`: a trained policy at the terminal, step by step, by single keys; an environment by hand."""

from __future__ import annotations

import argparse
import base64
import binascii
import contextlib
import os
import re
import select
import signal
import socket
import sys
import termios
import time
import tty
from pathlib import Path
from typing import Any, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from mosaic.cli.commands.pictures import Picture
from mosaic.cli.launch import TERMINATED, Terminated, termination_raises
from mosaic.cli.output import console, cut, program, say
from mosaic.client.playing import Choices, Message, PlaySession, Refused
from mosaic.contract import words
from mosaic.contract.errors import UserError
from mosaic.fastlane.png import decode_png

_ROWS_BELOW = 3
_LEAST_ROWS = 4
_MOST_NUMBERS = 8
_MOST_CHOICES = 8
_ENVIRONMENT = re.compile(r"[-_]v\d+$")
"""How the ids of environments end, and those of runs and policies do not."""


def run_play(args: argparse.Namespace) -> int:
    """Ends with 0 when the user leaves."""
    env_id = _played_by_hand(args)
    if args.var is not None and not args.var.is_dir():
        raise UserError(f"There is no folder {args.var}: give --var the one that holds your runs.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "dumb") == "dumb":
        raise UserError(
            "play needs a terminal for its keys and pictures; "
            "docs/interactive.md says how a program plays a policy."
        )
    if env_id is not None:
        from mosaic.cli.commands.by_hand import play_by_hand

        return play_by_hand(args, env_id)
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


def _played_by_hand(args: argparse.Namespace) -> str | None:
    """The environment that a person is to play; None where a policy is named."""
    name: str | None = args.policy
    if name is None and args.env is None:
        raise UserError(
            f"There is nothing to play: name a policy or a run (`{program()} play last`), or an environment "
            f"(`{program()} play --env CartPole-v1`)."
        )
    if name is not None and (args.env is not None or not _ENVIRONMENT.search(name) or Path(name).exists()):
        if args.record is not None:
            raise UserError("--record is for environments played by hand: leave it, or the policy, out.")
        return None
    for option, given in (("--stochastic", args.stochastic), ("--algo", args.algo), ("--trust", args.trust)):
        if given:
            raise UserError(f"{option} is for a policy, and none is named: leave it out, or name one.")
    return name or str(args.env)


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
    parts = [picture_of(player.seen, rows), _title(player), *told]
    if player.typing is not None:
        parts.append(cut(f"action: {player.typing}▏  (enter takes it, escape does not)", "bold yellow"))
    else:
        parts.append(cut(_news(player), "yellow"))
    return Group(*parts, cut(_keys(player), "reverse"))


def picture_of(seen: Message, rows: int) -> RenderableType:
    """The picture of a message in so many rows, or why there is none."""
    frame = seen.get("frame")
    if frame is None:
        return cut(f"no picture: {seen.get('frame_problem', 'none came')}", "dim")
    try:
        return Picture(decode_png(base64.b64decode(frame)), rows)
    except (ValueError, binascii.Error) as error:
        return cut(f"no picture: {error}", "dim")


def _title(player: Player) -> Text:
    init = player.init
    trained = init["trained_steps"]
    after = f" after {words.whole(trained)} steps" if trained is not None else ""
    how = "best actions" if init["deterministic"] else "sampled actions"
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


_ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left"}
_PAGES = {"5~": "pageup", "6~": "pagedown"}
_SEQUENCE = re.compile(r"\x1b(?:\[([0-9;?]*)|O)([A-Za-z~])")
"""A key that is several characters; the last of them names it, or a number before."""
_NAMES = {
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    " ": "space",
    "\t": "tab",
    "\x7f": "backspace",
    "\b": "backspace",
}
_GAP_SECONDS = 0.02
"""The rest of a key that is several characters comes within this time."""
OTHER = "other"
"""A key that has no name here."""


class Keyboard:
    """Keys as they are pressed, without echo; Ctrl-C still interrupts, Ctrl-Z does nothing."""

    def __init__(self) -> None:
        self._terminal = sys.stdin.fileno()
        self._typed = ""

    def __enter__(self) -> Self:
        # A signal that comes a moment before the wait for a key would not end that wait; its byte does.
        self._signals, self._signalled = socket.socketpair()
        self._signalled.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._signalled.fileno(), warn_on_full_buffer=False)
        # A terminal that changes its size ends the wait too, so that what it shows is drawn anew.
        self._resized = signal.signal(signal.SIGWINCH, lambda *_: None)
        self._before = termios.tcgetattr(self._terminal)
        tty.setcbreak(self._terminal)
        now = termios.tcgetattr(self._terminal)
        # A stopped program would leave its picture and this mode to the shell.
        now[6][termios.VSUSP] = b"\0"
        termios.tcsetattr(self._terminal, termios.TCSANOW, now)
        return self

    def __exit__(self, *error: object) -> None:
        termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._before)
        signal.signal(signal.SIGWINCH, self._resized)
        signal.set_wakeup_fd(self._wakeup)
        self._signals.close()
        self._signalled.close()

    def read(self, seconds: float) -> str | None:
        """The next key by its name or character; None when none came in time."""
        if not self._typed and not self._fill(seconds):
            return None
        while self._typed[0] == "\x1b" and not _SEQUENCE.match(self._typed):
            if not self._fill(_GAP_SECONDS):
                break
        found = _SEQUENCE.match(self._typed)
        if found is not None:
            self._typed = self._typed[found.end() :]
            return _ARROWS.get(found[2]) or _PAGES.get(f"{found[1]}{found[2]}", OTHER)
        key, self._typed = self._typed[0], self._typed[1:]
        return _NAMES.get(key, key)

    def _fill(self, seconds: float) -> bool:
        ready = select.select([self._terminal, self._signals], [], [], max(0.0, seconds))[0]
        if self._signals in ready:
            self._signals.recv(1024)
        if self._terminal not in ready:
            return False
        data = os.read(self._terminal, 1024)
        if not data:
            raise EOFError
        self._typed += data.decode("utf-8", "replace")
        return True


SPEEDS = (1, 2, 5, 10, 15, 30, 60, 120)
"""Steps per second while it runs."""
_USUAL_SPEED = 30
_IDLE_SECONDS = 3600.0


class Player:
    """One user at one session. Everything that is to be seen is an attribute."""

    def __init__(self, session: PlaySession) -> None:
        self._session = session
        self.init = session.init
        self.choices = Choices(session.init["action_space"])
        wanted = min(session.init["fps"] or _USUAL_SPEED, _USUAL_SPEED)
        self._speed = max(number for number, speed in enumerate(SPEEDS) if speed <= max(wanted, SPEEDS[0]))
        self._due = 0.0
        self.running = False
        self.left = False
        self.typing: str | None = None
        """The line that is being typed, if one is."""
        self.notice = ""
        self.episode = 0
        self.seed = 0
        self.ended: Message | None = None
        self.seen: Message = {}
        """The newest `ready` or `step` message."""
        self.begin()

    @property
    def speed(self) -> int:
        return SPEEDS[self._speed]

    def patience(self) -> float:
        """How many seconds may pass before something happens by itself."""
        return max(0.0, self._due - time.monotonic()) if self.running else _IDLE_SECONDS

    def press(self, key: str) -> None:
        """Do what a key asks for."""
        self.notice = ""
        try:
            if self.typing is not None:
                self._type(self.typing, key)
            else:
                self._command(key)
        except UserError as error:
            self.running = False
            self.notice = str(error)

    def tick(self) -> None:
        """Take the next step if it runs and the time has come."""
        if not self.running or time.monotonic() < self._due:
            return
        # Counted from when it was due, unless that is long ago: the machine may be slower than asked for.
        self._due = max(self._due + 1.0 / self.speed, time.monotonic())
        try:
            self._step()
        except Refused as refused:
            self.running, self.notice = False, str(refused)

    def begin(self) -> None:
        """A new episode."""
        self.seen = self._session.reset()
        self.seed = self.seen["seed"]
        self.episode += 1
        self.ended = None

    def _command(self, key: str) -> None:
        action = self.choices.by_key(key)
        if action is not None:
            self._step(action)
        elif key in ("space", "enter"):
            self.running = False
            self._step()
        elif key == "r":
            self.running = not self.running
            self._due = time.monotonic()
        elif key == "n":
            self.begin()
        elif key in ("+", "="):
            self._speed = min(self._speed + 1, len(SPEEDS) - 1)
        elif key == "-":
            self._speed = max(self._speed - 1, 0)
        elif key == "a":
            self.running, self.typing = False, ""
        elif key == "q":
            self.left = True

    def _type(self, line: str, key: str) -> None:
        self.typing = None
        if key == "enter" and line.strip():
            self._step(self.choices.typed(line))
        elif key == "backspace":
            self.typing = line[:-1]
        elif key == "space":
            self.typing = f"{line} "
        elif len(key) == 1 and key.isprintable():
            self.typing = line + key
        elif key not in ("enter", "escape"):
            self.typing = line

    def _step(self, action: Any = None) -> None:
        if self.ended is not None:
            self.begin()
            return
        self.seen = self._session.step(action)
        self.ended = self.seen.get("episode")
