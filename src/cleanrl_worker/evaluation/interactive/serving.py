"""The life of a session: opened, served line by line, ended by a word, by the end of input or by a signal."""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Annotated

from cleanrl_worker.config.modes import INTERACTIVE
from cleanrl_worker.config.policy_files import find_policy
from cleanrl_worker.evaluation.interactive.by_hand import HandSession
from cleanrl_worker.evaluation.interactive.messages import Refusal, Request, Wire, parse_request
from cleanrl_worker.evaluation.interactive.session import EnvSession, Message, Session
from cleanrl_worker.evaluation.models import open_model
from cleanrl_worker.kit.args import SEEDS, Bounds
from cleanrl_worker.kit.backend import find_backend
from cleanrl_worker.kit.parsing import parse_args
from mosaic.contract.errors import MosaicError, UntrustedModuleError, UserError


@dataclass
class Args:
    """What a session is started with."""

    policy_path: str | None = None
    """the policy: a model file, a full checkpoint, or a run by its id or folder, or 'last'; without one a
    person plays the environment by hand"""
    algo: str | None = None
    """the algorithm that made it; else what its card says"""
    env_id: str | None = None
    """the environment; else the one that it was trained on"""
    env_kwargs: str | None = None
    """a JSON object with keyword arguments for the environment; else those of training"""
    seed: Annotated[int | None, SEEDS] = None
    """the seed of the first episode that is begun without one; each further one has the next number"""
    deterministic: bool = True
    """take the best action that the policy knows; else draw one as in training"""
    trust: str = ""
    """modules that the file may name and have imported, with commas between"""
    frames: bool = False
    """send a picture with each observation, also when a message does not ask for it"""
    max_episode_steps: Annotated[int | None, Bounds(minimum=1)] = None
    """the step after which an episode is truncated, if it has not ended by itself"""
    record: str | None = None
    """the folder in which episodes that are played by hand are recorded"""


class Interrupted(BaseException):
    """A signal asked for the end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.name = signal.Signals(number).name
        self.exit_code = 128 + number


def serve(argv: Sequence[str] | None, replies: int) -> int:
    """Answer what comes on stdin until the end; gives the exit code."""
    wire = Wire(sys.stdin.buffer, replies)
    try:
        with _signals_raise():
            return _serve(argv, wire)
    except MosaicError as error:
        print(error, file=sys.stderr)
        message: Message = {"type": "error", "message": str(error), "fatal": True}
        if isinstance(error, UntrustedModuleError):
            message["untrusted_module"] = error.module
        return _say_last(wire, message, error.exit_code)
    except Interrupted as asked:
        return _say_last(wire, {"type": "stopped", "reason": asked.name}, asked.exit_code)
    except BrokenPipeError:
        # Nobody reads any longer, which ends a session as the end of input does.
        return 0


def _serve(argv: Sequence[str] | None, wire: Wire) -> int:
    session = _open(parse_args(Args, argv, INTERACTIVE))
    # What was imported stays: without it a collection of garbage does not hold up an answer.
    gc.freeze()
    with contextlib.closing(session):
        wire.send(session.init())
        reason = _answer_all(session, wire)
        wire.send({"type": "stopped", "reason": reason, **session.finish()})
    return 0


def _open(args: Args) -> EnvSession:
    if args.policy_path is None:
        if args.env_id is None:
            raise UserError(
                "There is nothing to play: name a policy with --policy-path, or an environment with --env-id."
            )
        return HandSession(
            args.env_id, args.env_kwargs, args.seed, args.frames, args.max_episode_steps, args.record
        )
    if args.record is not None:
        raise UserError("--record is for episodes played by hand: leave it out, or leave --policy-path out.")
    policy = find_policy(args.policy_path, Path.cwd())
    trusted = args.trust.split(",")
    model = open_model(Path(policy.path), args.algo, args.env_id, args.env_kwargs, trusted)
    # One row at a time: a second thread only waits.
    find_backend(model.spec.backend).limit_threads(1)
    return Session(model, args.seed, args.deterministic, args.frames, args.max_episode_steps)


def _answer_all(session: EnvSession, wire: Wire) -> str:
    """Answer each line in turn; gives the reason for the end."""
    while True:
        try:
            line = wire.read()
            if line is None:
                return "end of input"
            request = parse_request(line)
            if request.type == "stop":
                return "asked"
            answers = _answer(session, request)
        except Refusal as refusal:
            text = " ".join(str(refusal).split())
            answers = [{"type": "error", "message": text, "fatal": False}]
        for answer in answers:
            wire.send(answer)


def _answer(session: EnvSession, request: Request) -> list[Message]:
    if request.type == "step":
        return session.step(request)
    if request.type == "record":
        return [session.record(request)]
    return [session.reset(request) if request.type == "reset" else {"type": "pong"}]


def _say_last(wire: Wire, message: Message, code: int) -> int:
    with contextlib.suppress(BrokenPipeError):
        wire.send(message)
    return code


@contextlib.contextmanager
def _signals_raise() -> Iterator[None]:
    """SIGTERM and SIGINT end what is being waited for."""

    def interrupt(number: int, _frame: FrameType | None) -> None:
        raise Interrupted(number)

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
