"""A soak: a real window in a process of its own, used at random while runs train and end."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tables import Row

from gui_cases.site import HERE, site, start_frames
from gym_gui.launch import check_libraries
from mosaic.client import Client, RunRecord, train_config
from mosaic.contract.errors import UserError

MOST_SLOPE = 4.0
"""Megabytes for each 1,000 actions, after the first third."""
MOST_MORE = 0.05
"""Widgets, from the beginning to the end of what comes after the first third."""
_LEAST_LOOKS = 8
"""Fewer after the first third say nothing about growth."""
_MANAGERS = ("openbox", "xfwm4", "metacity", "icewm", "mutter")
_LIVE = ("INIT", "HSHK", "RDY", "EXEC", "PAUSE")
_MOST_SILENT = 120.0
"""Seconds without an action after which the window counts as hung."""
_MOST_RUNS = 36
_EVERY_SECONDS, _MOST_TRAINING = 12.0, 60.0
_LAST_ACTIONS = 25


@dataclass
class Soaked:
    """What a window has done and what became of it."""

    screen: str
    seed: int
    crash: str = ""
    wrong: list[str] = field(default_factory=list)
    looks: list[dict[str, float]] = field(default_factory=list)
    kinds: list[Counter[str]] = field(default_factory=list)
    """How many widgets of each kind there were at each look."""
    last: list[str] = field(default_factory=list)
    trained: int = 0

    @property
    def held(self) -> bool:
        return all(row.held for row in self.rows())

    @property
    def steady(self) -> list[dict[str, float]]:
        """The looks after the first third: before that, caches fill."""
        return self.looks[len(self.looks) // 3 :]

    def slope(self) -> float:
        """Megabytes for each 1,000 actions."""
        actions = np.array([look["actions"] for look in self.steady]) / 1000
        return float(np.polyfit(actions, [look["megabytes"] for look in self.steady], 1)[0])

    def rows(self) -> list[Row]:
        last = self.looks[-1] if self.looks else {"actions": 0, "seconds": 0}
        used = f"{last['actions']:,.0f} actions in {last['seconds'] / 60:.1f} minutes, {self.screen}"
        what = f"{used}, seed {self.seed}; {self.trained} runs trained meanwhile"
        rows = [
            Row(what, self.crash.split("\n")[0] or "no crash", "no crash", not self.crash),
            Row("exceptions, faults in the log, warnings of Qt", str(len(self.wrong)), "0", not self.wrong),
        ]
        return rows if len(self.steady) < _LEAST_LOOKS else [*rows, self._memory(), self._widgets()]

    def _memory(self) -> Row:
        return Row(
            "memory after each fifth, and its slope after the first third",
            f"{self._fifths('megabytes')} MB; {self.slope():+.1f} MB for each 1,000 actions",
            f"< {MOST_SLOPE:g} MB for each 1,000",
            self.slope() < MOST_SLOPE,
        )

    def _widgets(self) -> Row:
        counts = [look["widgets"] for look in self.steady]
        part = len(counts) // 3
        more = float(np.median(counts[-part:]) / np.median(counts[:part])) - 1
        return Row(
            "widgets after each fifth, and how many more at the end than after the first third; beside them "
            "those of forms that were left with changes and can be had back, one of each kind",
            f"{self._fifths('widgets')}; {more:+.1%}; beside them {self._fifths('in_left_forms')}",
            f"< {MOST_MORE:.0%} more",
            more < MOST_MORE,
        )

    def _fifths(self, name: str) -> str:
        places = [round((len(self.looks) - 1) * share / 5) for share in range(1, 6)]
        return ", ".join(f"{self.looks[at][name]:.0f}" for at in places)

    def story(self) -> str:
        """What somebody needs who looks for the reason."""
        lines = [f"seed {self.seed}", self.crash, *self.wrong[:20], "The last actions:", *self.last]
        if self.kinds:
            more = self.kinds[-1] - self.kinds[len(self.kinds) // 3]
            lines.append(f"More widgets than after the first third: {dict(more.most_common(15))}")
        return "\n".join(filter(None, lines))


def soak(var: Path, minutes: float, seed: int, short: bool) -> Soaked:
    """Use a window for so long; a `short` one has fewer runs to show."""
    with (
        site(var, 2 if short else 12, 2_000 if short else 20_000, 4),
        screen() as (named, environment),
        Client.connect(var) as client,
    ):
        company = Company(client, random.Random(seed))
        company.begin(1 if short else 3)
        record = var / "soak.jsonl"
        command = [sys.executable, "-m", "gui_cases.soak_window", str(var), str(record)]
        looks = max(3, min(90, round(minutes * 3)))
        command += ["--seconds", str(60 * minutes), "--seed", str(seed), "--looks", str(looks)]
        with (var / "soak.err").open("w+", encoding="utf-8") as errors:
            child = subprocess.Popen(command, cwd=HERE.parent, env=environment, stderr=errors)
            silent = _watch(child, record, company)
            errors.seek(0)
            told = errors.read()
    return _read(Soaked(named, seed, trained=company.count), record, child.returncode, told, silent)


def _watch(child: subprocess.Popen[bytes], record: Path, company: Company) -> bool:
    """Keep runs coming until the window has gone; True when it had to be ended because it did nothing."""
    size, since = 0, time.monotonic()
    while child.poll() is None:
        company.go_on()
        now = record.stat().st_size if record.exists() else 0
        if now != size:
            size, since = now, time.monotonic()
        if time.monotonic() - since > _MOST_SILENT:
            child.send_signal(signal.SIGUSR1)
            time.sleep(3)
            child.kill()
            child.wait()
            return True
        time.sleep(0.5)
    return False


def _read(soaked: Soaked, record: Path, code: int, told: str, silent: bool) -> Soaked:
    lines: list[dict[str, Any]] = []
    for line in record.read_text("utf-8").splitlines() if record.exists() else ():
        try:
            lines.append(json.loads(line))
        except ValueError:
            break
    soaked.looks = [line["look"] for line in lines if "look" in line]
    soaked.kinds = [Counter(line["kinds"]) for line in lines if "kinds" in line]
    soaked.wrong = [line["wrong"] for line in lines if "wrong" in line]
    soaked.last = [line["did"] for line in lines if "did" in line][-_LAST_ACTIONS:]
    if silent:
        soaked.crash = f"no action for {_MOST_SILENT:g} s\n{told}"
    elif code or not any("ended" in line for line in lines):
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        soaked.crash = f"{name}\n{told}"
    elif told.strip():
        soaked.wrong.append(told)
    return soaked


class Company:
    """Runs that train and end while the window is used, never too many: old ones are removed."""

    def __init__(self, client: Client, chance: random.Random) -> None:
        self._client = client
        self._chance = chance
        self._next = time.monotonic()
        self.count = 0

    def begin(self, runs: int) -> None:
        """Some that have ended, with checkpoints and models."""
        for run in [self._submit(4096) for _ in range(runs)]:
            self._client.wait(run.run_id, timeout=600)

    def go_on(self) -> None:
        """One more now and then; what takes too long is cancelled, whoever has asked for it."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY_SECONDS
        runs = self._client.runs()
        live = [run for run in runs if run.status in _LIVE]
        frames = next((run for run in live if run.run_name == "frames"), None)
        if frames is None:
            start_frames(self._client, 4, wait=False)
        for run in live:
            if run is not frames and time.time() - run.submitted_at > _MOST_TRAINING:
                self._client.cancel(run.run_id, "others wait")
        if len(live) < 4:
            self._submit(self._chance.choice((2048, 8192, 30_000)))
        ended = sorted((run for run in runs if run.status == "TERM"), key=lambda run: run.submitted_at)
        for run in ended[: max(0, len(ended) - _MOST_RUNS)]:
            self._client.remove(run.run_id)

    def _submit(self, steps: int) -> RunRecord:
        self.count += 1
        seed = self._chance.randrange(1, 5)
        return self._client.submit(train_config("ppo", "CartPole-v1", total_timesteps=steps, seed=seed))


def _has_screen() -> bool:
    try:
        check_libraries("xcb")
    except UserError:
        return False
    return bool(shutil.which("Xvfb") and shutil.which("xdotool"))


@contextmanager
def screen() -> Iterator[tuple[str, dict[str, str]]]:
    """A screen of the soak's own, and the environment of a process that uses it; else Qt draws in memory."""
    # gRPC's notes about forks are kept from the window's terminal by its command line.
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "GRPC_VERBOSITY": "ERROR"}
    if not _has_screen():
        yield "without a screen", environment
        return
    ours, theirs = os.pipe()
    command = ["Xvfb", "-displayfd", str(theirs), "-screen", "0", "1440x900x24", "-nolisten", "tcp"]
    started = [subprocess.Popen(command, pass_fds=[theirs], stderr=subprocess.DEVNULL)]
    os.close(theirs)
    try:
        with os.fdopen(ours) as number:
            environment |= {"DISPLAY": f":{number.readline().strip()}", "QT_QPA_PLATFORM": "xcb"}
        manager = next(filter(shutil.which, _MANAGERS), None)
        if manager is not None:
            started.append(
                subprocess.Popen(
                    [manager], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            )
        yield f"under Xvfb with {manager or 'no window manager'}", environment
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()
