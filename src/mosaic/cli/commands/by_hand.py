"""`play ENVIRONMENT`: a person plays at the terminal, without a policy."""

from __future__ import annotations

import argparse
import contextlib
import time
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from mosaic.cli.commands.play import Keyboard, picture_of, shown
from mosaic.cli.launch import TERMINATED, Terminated, termination_raises
from mosaic.cli.output import console, cut, place_text, say
from mosaic.client.by_hand import (
    FACTORS,
    Cap,
    Tally,
    best_trained,
    key_map,
    recorded_text,
)
from mosaic.client.playing import Choices, PlaySession, Refused, SessionEnded
from mosaic.contract import words
from mosaic.contract.errors import MosaicError, UserError

HELD_SECONDS = 0.15
"""A press counts for so long: a terminal does not tell when a key is let go."""
_LEAST_SIZE = (48, 14)
_LEAST_ROWS = 4
_DRAW_SECONDS = 1 / 20
_BEHIND_SECONDS = 0.25
_IDLE_SECONDS = 3600.0
_PAUSE_AFTER_END = 0.5
"""Keys that are still held when an episode ends begin no new one."""
FOLDER = "recordings"
"""Where `r` records when no folder was named."""
_GAP = "   "


def play_by_hand(args: argparse.Namespace, env_id: str) -> int:
    """Let the user play until they leave, then say how it went."""
    _require_room(*console().size)
    try:
        with (
            termination_raises(),
            PlaySession.start(
                env_id=env_id,
                env_kwargs=args.env_kwargs,
                seed=args.seed,
                frames=True,
                record=args.record,
                var=args.var,
            ) as session,
        ):
            player = _play(session, Path(args.record or FOLDER))
            with contextlib.suppress(SessionEnded):
                player.take_recorded(session.stop())
    except Terminated:
        return TERMINATED
    _say_summary(player, env_id, args.var)
    return 0


def _require_room(width: int, height: int) -> None:
    if width < _LEAST_SIZE[0] or height < _LEAST_SIZE[1]:
        raise UserError(_too_small(width, height))


def _too_small(width: int, height: int) -> str:
    least = " × ".join(map(str, _LEAST_SIZE))
    return f"The terminal has {width} × {height} characters, and a game needs {least}: make it larger."


def _play(session: PlaySession, folder: Path) -> HandPlayer:
    player = HandPlayer(session, folder)
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
            if player.wants_drawing():
                live.update(render(player, *screen.size), refresh=True)
            key = keyboard.read(player.patience())
            while key is not None:
                player.press(key)
                key = keyboard.read(0.0)
            player.tick()
    return player


def _say_summary(player: HandPlayer, env_id: str, var: Path | None) -> None:
    tally = player.tally
    if tally.returns:
        said = f"{words.count(len(tally.returns), 'episode')}, mean return {words.number(tally.mean)}"
        if len(tally.returns) > 1:
            ends = words.number(max(tally.returns)), words.number(min(tally.returns))
            said += f" (best {ends[0]}, worst {ends[1]})"
        say(f"{said}.")
        with contextlib.suppress(MosaicError, OSError):
            trained = best_trained(env_id, var)
            if trained is not None:
                reached = words.number(trained.mean_return)
                say(f"The best policy trained here has {reached}: {trained.algo}, run {trained.run_id}.")
    for file in player.files:
        say(f"recorded {place_text(file)}")


class HandPlayer:
    """One user at one environment. Everything that is to be seen is an attribute."""

    def __init__(self, session: PlaySession, folder: Path) -> None:
        self._session = session
        self._folder = folder
        self.init = session.init
        self.choices = Choices(session.init["action_space"])
        self.keys = key_map(session.init)
        self.by_turns = self.keys.time != "runs"
        """Whether time passes by one step for each key."""
        self.factor = 1.0
        self.running = False
        """Whether time passes by itself now."""
        self.left = False
        self.notice = ""
        self.recording = bool(session.init["recording"])
        self.files: list[str] = []
        self.episode = 0
        self.tally = Tally()
        self.ended: dict[str, Any] | None = None
        self.seen: dict[str, Any] = {}
        self._until: dict[str, float] = {}
        """Till when each key counts as held."""
        self._turn = 0
        self._due = self._drawn = self._ended_at = 0.0
        self._begin(None)
        self.notice = self._greeting()

    def _greeting(self) -> str:
        if self.keys.time == "held":
            return "Every action has an effect here, so each key is one step; t changes that."
        if self.by_turns:
            return "Each key is one step; t changes that."
        return (
            f"Time starts with the first key. A press counts for {HELD_SECONDS:g} s, or while it repeats: "
            "a terminal does not report when a key is released."
        )

    @property
    def rate(self) -> float:
        """Steps per second while time passes by itself."""
        return float(self.init["fps"]) * self.factor

    def patience(self) -> float:
        """How many seconds may pass before something happens by itself."""
        if self.running:
            return max(0.0, self._due - time.monotonic())
        # The light of a key goes out.
        return HELD_SECONDS if self._until else _IDLE_SECONDS

    def wants_drawing(self) -> bool:
        """Whether it is time to draw: a terminal takes longer for that than some games for a step."""
        now = time.monotonic()
        if self.running and now - self._drawn < _DRAW_SECONDS:
            return False
        self._drawn = now
        return True

    def press(self, key: str) -> None:
        """Do what a key asks for: an action first, then all else. Shift reaches what an action hides."""
        self.notice = ""
        try:
            if self.ended is not None and key in ("enter", "space"):
                if time.monotonic() - self._ended_at > _PAUSE_AFTER_END:
                    self._begin(None)
            elif self.keys.named(key):
                self._act(key)
            elif not self._command(key.lower()) and self.keys.named(key.lower()):
                self._act(key.lower())
        except UserError as error:
            self.running, self.notice = False, str(error)

    def tick(self) -> None:
        """Take the steps whose time has come, and let keys go that were not pressed again."""
        now = time.monotonic()
        # What takes long is to draw, so several steps may be due; not those of a machine that is too slow.
        self._due = max(self._due, now - _BEHIND_SECONDS)
        try:
            while self.running and self._due <= now:
                self._due += 1.0 / self.rate
                self._step(self._held_action(), drawn=self._due > now)
        except Refused as refused:
            self.running, self.notice = False, str(refused)
        for key in [key for key, until in self._until.items() if until <= now]:
            del self._until[key]
            self.keys.release(key)

    def _held_action(self) -> Any:
        """The action of the keys that are held, or the next one of several; None where none is held."""
        actions = self.keys.actions()
        self._turn += 1
        return actions[self._turn % len(actions)] if actions else None

    def _act(self, key: str) -> None:
        if self.ended is not None:
            return
        if self.by_turns:
            self.keys.let_go()
            self._until.clear()
        self.keys.press(key)
        self._until[key] = time.monotonic() + HELD_SECONDS
        if self.by_turns:
            self._step(self.keys.action())
        elif not self.running:
            self.running, self._due = True, time.monotonic()

    def _command(self, key: str) -> bool:
        """What a key asks for besides an action; False when it asks for nothing."""
        if key == "p" and not self.by_turns and self.ended is None:
            self.running, self._due = not self.running, time.monotonic()
        elif key == ".":
            self.running = False
            self._step(self.keys.action())
        elif key == "n":
            self._begin(None)
        elif key == "b":
            self._begin(self.seen_seed)
        elif key in ("+", "=", "-"):
            self._change_speed(-1 if key == "-" else 1)
        elif key == "t":
            self.by_turns, self.running = not self.by_turns, False
            now = "with each key only" if self.by_turns else "by itself, from the first key on"
            self.notice = f"Time passes {now}."
        elif key == "r":
            self._record()
        elif key in ("q", "escape"):
            self.left = True
        else:
            return False
        return True

    def _change_speed(self, by: int) -> None:
        place = FACTORS.index(self.factor) + by
        self.factor = FACTORS[min(max(place, 0), len(FACTORS) - 1)]

    def _record(self) -> None:
        told = self._session.record(None if self.recording else self._folder.absolute())
        self.recording = told["folder"] is not None
        self.take_recorded(told)
        if self.recording and "action" not in self.seen:
            self._begin(self.seen_seed)
            self.episode -= 1
        if self.recording:
            since = "From the next episode on" if "action" in self.seen else "From now on"
            self.notice = f"{since} episodes are recorded in {place_text(told['folder'])}."
        else:
            self.notice = " ".join(filter(None, (self.notice, "Recording has stopped.")))

    def take_recorded(self, message: dict[str, Any]) -> None:
        """Tell of what a message says was recorded."""
        recorded = message.get("recorded")
        if recorded:
            self.files += recorded["files"]
            self.notice = recorded_text({**recorded, "files": map(place_text, recorded["files"])})

    def _begin(self, seed: int | None) -> None:
        self.running = False
        self._until.clear()
        self.keys.let_go()
        self.seen = self._session.reset(seed)
        self.seen_seed: int = self.seen["seed"]
        self.take_recorded(self.seen)
        self.episode += 1
        self.ended = None

    def _step(self, action: Any, drawn: bool = True) -> None:
        if self.ended is not None:
            return
        before = self.seen
        self.seen = self._session.step(action, frame=None if drawn else False)
        if not drawn:
            self.seen |= {name: before[name] for name in ("frame", "frame_problem") if name in before}
        self.ended = self.seen.get("episode")
        if self.ended is not None:
            self.running, self._ended_at = False, time.monotonic()
            self.tally.add(self.ended)
            self.take_recorded(self.ended)


def render(player: HandPlayer, width: int, height: int) -> RenderableType:
    """The picture, the numbers, the keys with those that are held lit, and the commands at the bottom."""
    if width < _LEAST_SIZE[0] or height < _LEAST_SIZE[1]:
        return Text(_too_small(width, height), style="yellow")
    legend = _legend(player, width)
    told = _numbers(player)
    news, commands = Text(_news(player), style="yellow"), Text(_commands(player), style="reverse")
    below = len(told) + len(legend) + sum(len(text.wrap(console(), width)) for text in (news, commands))
    rows = max(_LEAST_ROWS, height - below - 1)
    return Group(picture_of(player.seen, rows), *told, *legend, news, commands)


def _numbers(player: HandPlayer) -> list[Text]:
    seen, init = player.seen, player.init
    record = "   ● recording" if player.recording else ""
    title = cut(
        f"{init['env_id']} by hand   episode {player.episode}, seed {player.seen_seed}{record}", "bold"
    )
    step, limit = seen.get("step", 0), init["max_episode_steps"]
    done = f"step {step:,}"
    if limit:
        left = max(0, limit - step)
        seconds = "" if player.by_turns else f" ({words.duration(left / player.rate)})"
        done += f" of {limit:,}, {left:,} left{seconds}"
    if "action" in seen:
        by = "" if seen["by"] == "caller" else " (no key)"
        done += f"   reward {words.number(seen['reward'])}   {player.choices.name(seen['action'])}{by}"
    scores = f"return {words.number(seen.get('return', 0.0))}"
    if player.tally.returns:
        count = words.count(len(player.tally.returns), "episode")
        scores += f"   mean of {count} {words.number(player.tally.mean)}"
    lines = [title, cut(done), cut(scores, "bold")]
    if seen.get("mission"):
        lines.append(cut(f"mission {seen['mission']}"))
    if seen.get("frame") is None:
        lines.append(cut(f"sees {shown(seen['observation'])}"))
    return lines


def _legend(player: HandPlayer, width: int) -> list[Text]:
    """What each key does, over as many lines as it takes."""
    lines, room = [Text()], width
    for cap in player.keys.caps:
        size = len(cap.sign) + len(cap.word) + 3
        if lines[-1] and size + len(_GAP) > room:
            lines.append(Text())
            room = width
        if lines[-1]:
            lines[-1].append(_GAP)
            room -= len(_GAP)
        lines[-1].append(f" {cap.sign} ", _key_style(player, cap))
        lines[-1].append(f" {cap.word}", "bold" if _is_down(player, cap) else "")
        room -= size
    return lines


def _is_down(player: HandPlayer, cap: Cap) -> bool:
    return set(cap.keys) <= set(player.keys.down)


def _key_style(player: HandPlayer, cap: Cap) -> str:
    return "bold black on bright_green" if _is_down(player, cap) else "on grey30"


def _news(player: HandPlayer) -> str:
    """What just happened, and what to do next."""
    if player.ended is not None:
        how = "was truncated" if player.seen.get("truncated") else "ended"
        steps, total = words.count(player.ended["length"], "step"), words.number(player.ended["return"])
        ending = f"The episode {how} after {steps}, return {total}. Enter starts the next one."
        return " ".join(filter(None, (ending, player.notice)))
    if player.notice:
        return player.notice
    if not player.by_turns and not player.running:
        return (
            "Paused: press p or a key of the game to continue."
            if "action" in player.seen
            else "Time starts with the first key."
        )
    return ""


def _commands(player: HandPlayer) -> str:
    """The keys that are not the game's; those that the game takes work with Shift."""
    speed = "" if player.by_turns else f"p {'pause' if player.running else 'go on'}  + - {player.factor:g}×  "
    record = "r stop recording" if player.recording else "r record"
    time_passes = "t real time" if player.by_turns else "t turns"
    return f" {speed}. step  n new episode  b again  {time_passes}  {record}  q quit "
