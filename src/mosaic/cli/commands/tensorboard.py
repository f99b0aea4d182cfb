"""`tensorboard`: the curves of runs in TensorBoard."""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from mosaic.cli.launch import Terminated, termination_raises
from mosaic.cli.output import say
from mosaic.cli.parsers import USUAL_PORT
from mosaic.cli.runs import connect, find_runs
from mosaic.client import RunRecord
from mosaic.contract import words
from mosaic.contract.errors import MosaicError, UserError

_HOST = "127.0.0.1"
_START_SECONDS = 60.0
_PAUSE_SECONDS = 0.05


def run_tensorboard(args: argparse.Namespace) -> int:
    if find_spec("tensorboard") is None:
        raise UserError(f"TensorBoard is not installed: `{sys.executable} -m pip install tensorboard`.")
    with connect(args) as client:
        runs = find_runs(client, args.runs)
    port = _choose_port(args.port)
    with tempfile.TemporaryDirectory(prefix="mosaic-tensorboard-") as folder, termination_raises():
        _link(Path(folder), runs)
        try:
            _serve(folder, port)
        except (KeyboardInterrupt, Terminated):
            say("\nTensorBoard has ended.")
    return 0


def _choose_port(wanted: int | None) -> int:
    for port in [wanted] if wanted else [USUAL_PORT, 0]:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((_HOST, port))
            except (OSError, OverflowError):
                continue
            return int(probe.getsockname()[1])
    raise UserError(f"Port {wanted} cannot be used, it may be in use: leave --port out to get a free one.")


def _link(folder: Path, runs: Sequence[RunRecord]) -> None:
    """A folder with a link to each run, so that several show side by side under readable names."""
    ids = words.unique_prefixes([run.run_id for run in runs])
    for run in runs:
        asked = run.worker_config
        parts = [run.run_name.replace("/", "-"), f"s{asked.get('seed')}", ids[run.run_id]]
        (folder / "_".join(parts)).symlink_to(Path(run.run_dir), target_is_directory=True)


def _serve(folder: str, port: int) -> None:
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", folder]
    command += ["--host", _HOST, "--port", str(port)]
    with tempfile.TemporaryFile() as words_of_it:
        process = subprocess.Popen(command, stdout=words_of_it, stderr=subprocess.STDOUT)
        try:
            _wait_until_served(process, port, words_of_it)
            say(f"TensorBoard is at http://{_HOST}:{port}/ (Ctrl-C ends it)")
            process.wait()
            raise _ended(words_of_it)
        finally:
            process.terminate()
            process.wait()


def _wait_until_served(process: subprocess.Popen[bytes], port: int, words_of_it: IO[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise _ended(words_of_it)
        with socket.socket() as probe:
            if probe.connect_ex((_HOST, port)) == 0:
                return
        time.sleep(_PAUSE_SECONDS)
    raise MosaicError(f"TensorBoard did not answer within {_START_SECONDS:.0f} s.")


def _ended(words_of_it: IO[bytes]) -> MosaicError:
    words_of_it.seek(0)
    lines = words_of_it.read().decode(errors="replace").strip().splitlines()
    return MosaicError(f"TensorBoard has ended by itself: {lines[-1] if lines else 'it said nothing'}")
