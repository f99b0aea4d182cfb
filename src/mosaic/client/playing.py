"""A trained policy to play with, or an environment to play by hand, in a process of its own.

>>> with PlaySession.start("runs/CartPole-v1__ppo__1__1794774019/ppo.cleanrl_model") as session:
...     session.reset(seed=7)
...     session.step()

No daemon is needed; docs/interactive.md has the messages. One thread at a time may use a session; any may
`kill` it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

from mosaic.contract.capabilities import discover_workers
from mosaic.contract.errors import MosaicError, UntrustedModuleError, UserError
from mosaic.contract.outside import parse_json
from mosaic.contract.paths import VAR_VARIABLE
from mosaic.worker.environment import FOLDER_VARIABLE

Message = dict[str, Any]

START_SECONDS = 120.0
"""How long libraries and an environment may take to load."""
ANSWER_SECONDS = 60.0
END_SECONDS = 5.0
_CHUNK = 1 << 20
_LAST_BYTES = 8192


class SessionEnded(MosaicError):
    """The process behind a session is gone, or says nothing any longer; the text has its own reason."""


class Refused(UserError):
    """The session goes on, but cannot do this."""


class PlaySession:
    """One environment, with a policy or played by hand. `init` tells what they are."""

    def __init__(
        self,
        command: list[str],
        environment: Mapping[str, str],
        folder: Path,
        timeout: float = START_SECONDS,
        on_spawn: Callable[[PlaySession], None] | None = None,
    ) -> None:
        """Start `command`, tell `on_spawn`, and wait for its first message."""
        # Kept open as long as the session; nobody has to read it while the process is well.
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._buffer = bytearray()
        self._lines: list[bytes] = []
        try:
            # A process group of its own: Ctrl-C is for whoever plays, who then ends this process.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                cwd=folder,
                env=dict(environment),
                process_group=0,
            )
        except OSError as error:
            self._errors.close()
            raise SessionEnded(f"{command[0]} cannot be started: {error.strerror}.") from error
        try:
            if on_spawn is not None:
                on_spawn(self)
            self.init = self._expect("init", timeout)
        except BaseException:
            self.close()
            raise

    @classmethod
    def start(
        cls,
        policy: str | Path | None = None,
        *,
        algo: str | None = None,
        env_id: str | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        seed: int | None = None,
        deterministic: bool = True,
        frames: bool = False,
        trust: Sequence[str] = (),
        var: Path | None = None,
        folder: Path | None = None,
        timeout: float = START_SECONDS,
        record: str | Path | None = None,
        on_spawn: Callable[[PlaySession], None] | None = None,
    ) -> Self:
        """A session with the policy in a model file, a checkpoint or a run (its id, its beginning, `last`).

        Without a policy a person plays `env_id` by hand: `init["controls"]` has the keys for it, and episodes
        are recorded in the folder `record`. Algorithm and environment of a policy are those of its training
        unless they are given. `frames`: send a picture with each observation. A relative path and modules
        count from `folder` (default: the current one).
        `trust`: modules that only the file names, and that may be imported all the same.
        `on_spawn` gets the session while it still loads, so that another thread can `kill` it.
        """
        kwargs = None if env_kwargs is None else json.dumps(dict(env_kwargs))
        given = {"policy-path": policy, "algo": algo, "env-id": env_id, "env-kwargs": kwargs, "seed": seed}
        given["record"] = record
        modules = (worker.player_module for _, worker in sorted(discover_workers().items()))
        module = next(filter(None, modules), None)
        if module is None:
            raise UserError("No worker is installed that can play a policy: run `./mosaic doctor`.")
        command = [sys.executable, "-P", "-m", module]
        command += [f"--{name}={value}" for name, value in given.items() if value is not None]
        command += [f"--trust={','.join(trust)}"] if trust else []
        command += ["--frames"] if frames else []
        command += [] if deterministic else ["--no-deterministic"]
        folder = (folder or Path.cwd()).resolve()
        environment = {**os.environ, FOLDER_VARIABLE: str(folder)}
        if var is not None:
            environment[VAR_VARIABLE] = str(var.resolve())
        return cls(command, environment, folder, timeout, on_spawn)

    def reset(self, seed: int | None = None, frame: bool | None = None) -> Message:
        """Begin an episode; gives the `ready` message."""
        return self._ask(_without_none(type="reset", seed=seed, frame=frame), "ready")

    def step(self, action: Any = None, frame: bool | None = None) -> Message:
        """Take one step, with the policy's own action unless one is given; gives the `step` message.

        When it was the episode's last, `episode` holds its `episode_done` message.
        """
        answer = self._ask(_without_none(type="step", action=action, frame=frame), "step")
        if answer["terminated"] or answer["truncated"]:
            answer["episode"] = self._expect("episode_done", ANSWER_SECONDS)
        return answer

    def record(self, folder: str | Path | None) -> Message:
        """Record the episodes from the next one on; None ends that. Gives the `recording` message."""
        return self._ask({"type": "record", "folder": None if folder is None else str(folder)}, "recording")

    def stop(self) -> Message:
        """End the session and wait until it has kept what it records; gives the `stopped` message."""
        return self._ask({"type": "stop"}, "stopped")

    def ping(self, timeout: float = ANSWER_SECONDS) -> None:
        """Return when the session has answered; SessionEnded when it does not."""
        self.send({"type": "ping"})
        self._expect("pong", timeout)

    def _ask(self, message: Message, expected: str) -> Message:
        self.send(message)
        return self._expect(expected, ANSWER_SECONDS)

    def _expect(self, expected: str, timeout: float) -> Message:
        message = self.receive(timeout)
        if message["type"] == expected:
            return message
        if message["type"] == "error":
            text = str(message.get("message"))
            if message.get("untrusted_module"):
                raise UntrustedModuleError(text, str(message["untrusted_module"]))
            raise UserError(text) if message.get("fatal") else Refused(text)
        raise SessionEnded(f"The session said '{message['type']}' where '{expected}' was expected.")

    def send(self, message: Message) -> None:
        """Hand one message over."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise self._ended() from error

    def receive(self, timeout: float) -> Message:
        """The next message; SessionEnded when none comes in time or the process is gone."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline = time.monotonic() + timeout
        while not self._lines:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise SessionEnded(f"The session did not answer within {timeout:g} s.")
            chunk = os.read(descriptor, _CHUNK)
            if not chunk:
                raise self._ended()
            self._buffer += chunk
            if b"\n" in chunk:
                *self._lines, rest = bytes(self._buffer).split(b"\n")
                self._buffer = bytearray(rest)
        line = self._lines.pop(0)
        try:
            message = json.loads(line)
            message["type"]
        except (ValueError, KeyError, TypeError) as error:
            raise SessionEnded(f"The session said {line[:80]!r}, which is not a message.") from error
        return dict(message)

    def _ended(self) -> SessionEnded:
        """What became of the process, in its own last words."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        code = self._process.returncode
        how = "has closed its output" if code is None else f"ended with code {code}"
        if code is not None and code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
        said = self._last_words()
        return SessionEnded(f"The session's process {how}{f': {said}' if said else '.'}")

    def _last_words(self) -> str:
        """The last line of what the process printed beside its messages."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _LAST_BYTES))
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip() if lines else ""

    @property
    def pid(self) -> int:
        """The process that plays."""
        return self._process.pid

    def kill(self) -> None:
        """End the process at once, from any thread; who waits for an answer gets SessionEnded."""
        self._process.kill()

    def close(self) -> None:
        """End the process, by a word if it listens."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        if self._errors.closed:
            return
        with contextlib.suppress(OSError, ValueError):
            stdin.write(b'{"type": "stop"}\n')
        with contextlib.suppress(OSError):
            stdin.close()
        # It may be about to write, and must not wait for a reader.
        stdout.close()
        for harder in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(END_SECONDS)
                break
            except subprocess.TimeoutExpired:
                harder()
        self._process.wait()
        self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _without_none(**fields: Any) -> Message:
    return {name: value for name, value in fields.items() if value is not None}


ARROWS = {"left": "←", "right": "→", "up": "↑", "down": "↓"}
_ARROW_WORDS = {
    "left": ("left", "west"),
    "right": ("right", "east"),
    "up": ("up", "north", "forward", "main"),
    "down": ("down", "south"),
}
_DIGIT_KEYS = tuple("0123456789")
_FEW = 3
"""Of so many actions without words, the first is left and the last is right."""


class Choices:
    """The actions of one environment, as `init` describes them."""

    def __init__(self, space: Mapping[str, Any]) -> None:
        self.discrete = bool(space["kind"] == "discrete")
        """Whether an action is one number out of a few, for which there are keys."""
        self.first = int(space.get("start", 0))
        self._count = int(space.get("n", 0))
        self._words: list[str] = space.get("meanings") or []
        self.arrows = self._find_arrows()
        """The action of each arrow key that has one."""

    def by_key(self, key: str) -> int | None:
        """The action that a key stands for; None when it stands for none."""
        if not self.discrete:
            return None
        if key in ARROWS:
            return self.arrows.get(key)
        number = int(key) if key in _DIGIT_KEYS else self._count
        return self.first + number if number < self._count else None

    def typed(self, text: str) -> Any:
        """The action in a line that was typed: a number, several with spaces or commas between, or JSON."""
        try:
            value = parse_json(text) if text.lstrip().startswith("[") else _numbers(text)
        except ValueError as error:
            raise UserError(f"'{text}' is not an action: type numbers separated by spaces.") from error
        return value[0] if self.discrete and isinstance(value, list) and len(value) == 1 else value

    def name(self, action: Any) -> str:
        """An action as a person reads it."""
        if isinstance(action, list):
            numbers = (f"{one:.3g}" if isinstance(one, float) else str(one) for one in action)
            return f"[{' '.join(numbers)}]"
        word = self._words[action - self.first] if self._words else ""
        return f"{action} {word}".rstrip()

    def help(self) -> str:
        """The keys that choose an action."""
        if not self.discrete:
            return "a type an action"
        keys = f"0-{min(self._count, len(_DIGIT_KEYS)) - 1}"
        more = " (a types others)" if self._count > len(_DIGIT_KEYS) else ""
        arrows = "".join(sign for arrow, sign in ARROWS.items() if arrow in self.arrows)
        return f"{keys} {arrows} your action{more}".replace("  ", " ")

    def _find_arrows(self) -> dict[str, int]:
        if not self._words:
            few = self.discrete and 1 < self._count <= _FEW
            return {"left": self.first, "right": self.first + self._count - 1} if few else {}
        found: dict[str, int] = {}
        for number, word in enumerate(self._words):
            for arrow, names in _ARROW_WORDS.items():
                if any(part in names for part in word.split()):
                    found.setdefault(arrow, self.first + number)
        return found


def _numbers(text: str) -> list[int | float]:
    parts = text.replace(",", " ").split()
    if not parts:
        raise ValueError
    return [int(part) if part.lstrip("+-").isdigit() else float(part) for part in parts]
