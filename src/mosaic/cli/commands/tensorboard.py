"""`tensorboard`: the curves of runs in TensorBoard."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from mosaic.cli.launch import Terminated, termination_raises
from mosaic.cli.output import say
from mosaic.cli.parsers import USUAL_PORT
from mosaic.cli.runs import connect, find_runs
from mosaic.client.board import Status, Wish, choose_port, command, names_for
from mosaic.contract.errors import MosaicError


def run_tensorboard(args: argparse.Namespace) -> int:
    with connect(args) as client:
        runs = find_runs(client, args.runs)
    port = choose_port(args.port, USUAL_PORT)
    with termination_raises(), _served(Wish(names_for(runs)), port) as lines:
        try:
            _follow(lines)
        except (KeyboardInterrupt, Terminated):
            say("\nTensorBoard has ended.")
    return 0


@contextmanager
def _served(wish: Wish, port: int) -> Iterator[Iterator[bytes]]:
    """A server of its own; gives the lines that it writes."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command(port), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None and process.stdout is not None
        # Its input ends with this block, and so does it.
        process.stdin.write(wish.line())
        process.stdin.flush()
        yield process.stdout


def _follow(lines: Iterator[bytes]) -> None:
    address = ""
    for line in lines:
        status = Status.read(line)
        if status.error:
            raise MosaicError(status.error)
        if status.address != address:
            address = status.address
            say(f"TensorBoard is at {address} (Ctrl-C ends it)")
    raise MosaicError("TensorBoard has ended by itself: it said nothing.")
