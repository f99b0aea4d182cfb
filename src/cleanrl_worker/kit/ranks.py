"""Several processes that train one network together, each with environments of its own.

The first is the run: it reports, evaluates, writes checkpoints, and draws all random numbers. It starts the
others, tells them turn by turn what to do, and they end with it. What they compute together goes through
`torch.distributed`: gloo on the CPU, NCCL where each has a GPU.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import datetime
import importlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from cleanrl_worker.kit.envs import Episode, Step
from cleanrl_worker.kit.loading import load_spec
from cleanrl_worker.kit.open_envs import open_envs
from cleanrl_worker.kit.run import Run
from cleanrl_worker.kit.state import State, Stateful
from cleanrl_worker.kit.torch_backend import TorchBackend
from mosaic.contract.errors import MosaicError

PartT = TypeVar("PartT")
_PR_SET_PDEATHSIG = 1
_FOREVER = datetime.timedelta(days=1000)
"""A run may be paused for long within a sum over all processes."""
_END_SECONDS = 5.0


class Ranks:
    """All processes, as the first of them sees them; a part of checkpoints with the state of the others."""

    def __init__(self, run: Run[Any], size: int) -> None:
        """Start the others; each runs `follow(rank)` of the algorithm's module."""
        self._size = size
        self._folder = tempfile.TemporaryDirectory(prefix="ranks-")
        self._processes: list[subprocess.Popen[bytes]] = []
        self._links: list[Connection] = []
        self._begun = False
        run.ranks = size
        store = Path(self._folder.name) / "store"
        values = dataclasses.asdict(run.args)
        try:
            for rank in range(1, size):
                self._start()
                self._links[-1].send((rank, size, run.spec.name, values, run.is_new, str(store)))
            with self.watched():
                for link in self._links:
                    self._receive(link)
                join(0, size, store, run.device)
        except BaseException:
            self._end()
            raise

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", __name__, str(theirs.fileno()), str(os.getpid())]
        try:
            self._processes.append(subprocess.Popen(command, pass_fds=[theirs.fileno()]))
        finally:
            theirs.close()
        self._links.append(Connection(ours.detach()))

    def begin(self, turn: tuple[Any, ...], parts: dict[str, Stateful]) -> None:
        """Let the others take a turn; before the first they get these parts as they are here."""
        states = None if self._begun else {name: part.state() for name, part in parts.items()}
        self._begun = True
        with self.watched():
            for link in self._links:
                link.send(("turn", (tuple(turn), states)))

    def finish(self) -> list[Episode]:
        """Wait for the others; gives the episodes that ended in their environments."""
        with self.watched():
            return [episode for link in self._links for episode in self._receive(link)]

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Work that others have a share in: where one of them ends, a MosaicError says which and why."""
        try:
            yield
        except (RuntimeError, EOFError, OSError) as error:
            text = self._cause()
            if text is None:
                raise
            raise MosaicError(text) from error

    def _cause(self) -> str | None:
        """What has become of the process that failed first; None where all go on."""
        deadline = time.monotonic() + _END_SECONDS
        while time.monotonic() < deadline:
            for number, (process, link) in enumerate(zip(self._processes, self._links, strict=True), 2):
                with contextlib.suppress(EOFError, OSError):
                    while link.poll():
                        kind, content = link.recv()
                        if kind == "failed":
                            return str(content)
                code = process.poll()
                if code is not None:
                    how = f"was ended by signal {-code}" if code < 0 else f"has ended with exit code {code}"
                    return f"Process {number} of {self._size} {how}, so the run cannot continue."
            time.sleep(0.02)
        return None

    def _receive(self, link: Connection) -> Any:
        kind, content = link.recv()
        if kind == "failed":
            raise MosaicError(str(content))
        return content

    def state(self) -> State:
        """The environments and rollouts of the others, by their numbers."""
        with self.watched():
            for link in self._links:
                link.send(("state", None))
            return {str(rank): self._receive(link) for rank, link in enumerate(self._links, 1)}

    def load(self, state: State) -> None:
        with self.watched():
            for rank, link in enumerate(self._links, 1):
                link.send(("load", state[str(rank)]))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        for link in self._links:
            link.close()
        if dist.is_initialized():
            dist.destroy_process_group()
        for process in self._processes:
            # Nothing of theirs is to be kept, and one may wait for a sum that never comes.
            process.kill()
            process.wait()
        self._folder.cleanup()


class Rank:
    """One of the other processes: what its share of the algorithm asks for, in the words of `Run`."""

    def __init__(self, link: Connection) -> None:
        self.number, self.size, name, values, self.is_new, store = link.recv()
        self._link = link
        self._store = Path(store)
        self.spec = load_spec(name)
        args: Any = self.spec.args(**values)
        # The environments of all processes have different seeds, one after the other.
        seed = args.seed + self.number * args.num_envs
        self.args: Any = dataclasses.replace(args, seed=seed, capture_video=False)
        self._backend = TorchBackend(seed, args.torch_deterministic, args.cuda)
        self.device = self._backend.device
        if self.device.type == "cuda":
            self.device = torch.device("cuda", self.number)
            torch.cuda.set_device(self.device)
        self.envs = open_envs(self.spec, self.args)
        self._parts: dict[str, Stateful] = {}
        self._episodes: list[Episode] = []

    def keep(self, name: str, part: PartT) -> PartT:
        """Have a part in every checkpoint of the run, unless it is shared."""
        self._parts[name] = self._backend.adapt(part)
        return part

    def step(self, actions: list[Any], out: NDArray[Any]) -> Step:
        """Take one action in each environment and write the next observations to `out`."""
        step = self.envs.step(actions, out)
        self._episodes += step.episodes
        return step

    def learning(self) -> None:
        """The time is the first process's to count."""

    def turns(self, shared: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """The turns that the first process asks for; `shared` parts become what they are there."""
        own = {name: part for name, part in self._parts.items() if name not in shared}
        self._link.send(("ready", None))
        join(self.number, self.size, self._store, self.device)
        while True:
            kind, content = self._link.recv()
            if kind == "state":
                parts = {"envs": self.envs, **own}
                self._link.send(("state", {name: part.state() for name, part in parts.items()}))
            elif kind == "load":
                # The environments first: a rollout shows what they had to begin anew.
                self.envs.load(content["envs"])
                for name, part in own.items():
                    part.load(content[name])
            else:
                turn, states = content
                for name in shared if states else ():
                    self._parts[name].load(states[name])
                yield turn
                self._link.send(("turn", self._episodes))
                self._episodes = []


def join(rank: int, size: int, store: Path, device: torch.device) -> None:
    """Meet the other processes; returns when all are there."""
    # Other interfaces of a machine may lead nowhere, and its name to none of them.
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    kind = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(kind, f"file://{store}", _FOREVER, size, rank)


def average(tensor: Tensor) -> None:
    """Let a tensor be the mean of what it is in each process."""
    dist.all_reduce(tensor)
    tensor /= dist.get_world_size()


def gather(array: NDArray[Any], axis: int, device: torch.device) -> NDArray[Any]:
    """The arrays of all processes in their order, one after the other along an axis."""
    own = torch.from_numpy(array).contiguous().to(device)
    found = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(found, own)
    joined: NDArray[Any] = torch.cat(found, dim=axis).cpu().numpy()
    return joined


def main(descriptor: str, parent: str) -> int:
    """The life of a process that is not the first."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != int(parent):
        return 1
    # A signal goes to all processes of a run; the first one decides when they end.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    link = Connection(int(descriptor))
    try:
        rank = Rank(link)
        importlib.import_module(rank.spec.train.__module__).follow(rank)
    except EOFError:
        # The first process has ended.
        return 0
    except MosaicError as error:
        _tell(link, str(error))
    except Exception as error:
        traceback.print_exc()
        _tell(link, f"A process that trains beside the first one failed: {type(error).__name__}: {error}")
    return 1


def _tell(link: Connection, text: str) -> None:
    with contextlib.suppress(OSError):
        link.send(("failed", " ".join(text.split())))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
