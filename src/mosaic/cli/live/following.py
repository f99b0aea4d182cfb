"""Staying with a sweep or a benchmark: submit it, show how it goes on, and leave or cancel it when asked."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.cli.app import INTERRUPTED
from mosaic.cli.launch import TERMINATED, Terminated, signals_postponed, termination_raises, wants_cancel
from mosaic.cli.output import console, note, print_json, program, say
from mosaic.cli.runs import connect, run_json
from mosaic.client import Client, RunQuery, RunRecord
from mosaic.contract.errors import ConflictError
from mosaic.contract.run_filter import WHOLE
from mosaic.sweeps import WORKER_TYPE
from mosaic.sweeps.study import ENDED, Study, StudyReader, Trial

if TYPE_CHECKING:
    from rich.console import RenderableType

_LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Followed:
    """What is told of a sweep or a benchmark while it trains, and when it has ended or is left alone."""

    what: str
    runs: str
    """How its runs are called."""
    panel: Callable[[RunRecord, Study], RenderableType]
    sentence: Callable[[Trial, Study], str]
    """Of a trial that has ended, where there is no terminal."""
    report: Callable[[Client, RunRecord], int]
    """All that came of it; gives the exit code."""
    name: Callable[[RunRecord], str] = lambda run: run.run_id
    """By which `show` finds it."""
    lost: str = ""
    """What is not done when it is left alone."""

    def stay(self, submit: Callable[[Client], RunRecord], args: argparse.Namespace) -> int:
        """Submit it and stay with it to its end, through Ctrl-C and SIGTERM."""
        with connect(args, make=True) as client, termination_raises():
            with signals_postponed():
                run = submit(client)
            try:
                if not args.detach:
                    self._follow(client, run, args)
            except KeyboardInterrupt:
                if wants_cancel():
                    return self._cancelled(client, run, INTERRUPTED)
                return self._left(client.get(run.run_id), args)
            except Terminated:
                return self._cancelled(client, run, TERMINATED)
            run = client.get(run.run_id)
            return self.report(client, run) if run.ended else self._left(run, args)

    def _left(self, run: RunRecord, args: argparse.Namespace) -> int:
        if self.lost:
            note(self.lost)
        if args.json:
            print_json(run_json(run))
            return 0
        name = self.name(run)
        say(
            f"The {self.what} {name} continues in the background. To see it, or to cancel it with its "
            f"{self.runs}:"
        )
        say(f"  {program()} {self.what} show {name}\n  {program()} cancel {run.run_id}")
        return 0

    def _cancelled(self, client: Client, run: RunRecord, code: int) -> int:
        with suppress(ConflictError):
            client.cancel(run.run_id, "requested where it was started")
        try:
            run = client.wait(run.run_id)
        except (KeyboardInterrupt, Terminated):
            note(f"No longer waiting; the {self.what} is still being ended.")
            return code
        self.report(client, run)
        return code

    def _follow(self, client: Client, run: RunRecord, args: argparse.Namespace) -> None:
        reader, seen = StudyReader(Path(run.run_dir)), None
        with self._shown(args) as show:
            while True:
                study = reader.poll()
                if study is not None and study is not seen:
                    show(run, study)
                    seen = study
                if run.ended:
                    return
                time.sleep(_LOOK_SECONDS)
                run = client.get(run.run_id)

    @contextmanager
    def _shown(self, args: argparse.Namespace) -> Iterator[Callable[[RunRecord, Study], None]]:
        """A live panel; lines where there is no terminal; nothing with --json."""
        if args.json:
            yield lambda run, study: None
        elif console().is_terminal and not console().is_dumb_terminal:
            from rich.live import Live

            # Our own streams are plain; rich would take the escape sequences in what is printed for colours.
            live = Live(
                console=console(),
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            with live:
                yield lambda run, study: live.update(self.panel(run, study), refresh=True)
        else:
            told: set[int] = set()

            def tell(run: RunRecord, study: Study) -> None:
                for one in study.with_state(*ENDED):
                    if one.number not in told:
                        told.add(one.number)
                        say(self.sentence(one, study))

            yield tell


def runs_of_sweeps(client: Client, benchmarks: bool = False) -> list[RunRecord]:
    """The runs that are sweeps, or those that are benchmarks; the newest first."""
    query = RunQuery(filter=f"worker={WORKER_TYPE}", fields=WHOLE)
    found = (run for run in client.each(query) if run.worker_type == WORKER_TYPE)
    return [run for run in found if bool(run.worker_config["sweep"].get("benchmark")) == benchmarks]
