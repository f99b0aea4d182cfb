"""Connections between clients and the daemon are cut through a proxy, by closing them or by silence.

Four followers read through the proxy from their cursors: state changes, metrics, a log, and published steps,
whose worker is connected through the proxy too. At the end each must have everything once and in order.
They find the proxy in `daemon.json`, in the place of the daemon.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from fault_cases.proxy import Proxy
from fault_cases.report import Report
from fault_cases.site import BENCHMARKS, SCRIPTS, Site, environment, script_config, wait_for
from mosaic.analytics.event_files import EventReader
from mosaic.client import Client, HistoryEntry
from mosaic.contract.connection import DaemonAddress

_BETWEEN_SECONDS = 1.0
_TAG = "charts/episodic_return"


class Follower(threading.Thread):
    """Reads one stream to its end, through the proxy."""

    def __init__(self, var: Path, follow: Callable[[Client, Follower], None]) -> None:
        super().__init__(daemon=True)
        self.taken: list[int] = []
        self.text = b""
        self.error: Exception | None = None
        self._var = var
        self._follow = follow
        self.start()

    def run(self) -> None:
        try:
            with Client.connect(self._var) as client:
                self._follow(client, self)
        except Exception as error:
            self.error = error


def run(var: Path, cuts: Sequence[float] = (1.0,)) -> Report:
    """One cut for each of `cuts`, in seconds; every third by silence."""
    kinds = ", ".join(f"{cuts.count(cut)} × {cut:g} s" for cut in sorted(set(cuts)))
    report = Report(f"{len(cuts)} cuts: {kinds}")
    path = os.pathsep.join([str(BENCHMARKS), os.environ.get("PYTHONPATH", "")])
    variables = {"MOSAIC_CPUS": "2", "PYTHONPATH": path, "MOSAIC_GRACE_SECONDS": "10"}
    with environment(**variables), Site(var) as site:
        # It was here before the proxy, and goes past it.
        client = site.client()
        with Proxy(client.health().address) as proxy, _found_at(proxy, site):
            beats = client.submit(script_config(SCRIPTS / "beats.py", params={"pause": 0.05})).run_id
            config = script_config(SCRIPTS / "brief.py")
            config["metadata"]["worker"]["module"] = "fault_cases.publishing_worker"
            steps = client.submit(config).run_id
            for run_id in (beats, steps):
                wait_for(client, run_id, "EXEC")
            followers = _follow(var, beats, steps)
            for number, seconds in enumerate(cuts):
                _cut(proxy, client, beats, seconds, silent=number % 3 == 2)
                report.say(f"cut {number + 1} for {seconds:g} s; taken {_counts(followers)}")
            # What was cut off last has time to come through before the runs end.
            time.sleep(3 * _BETWEEN_SECONDS)
            for run_id in (beats, steps):
                client.cancel(run_id)
                client.wait(run_id, timeout=60)
            _check(report, client, site, followers, beats, steps)
    return report


@contextmanager
def _found_at(proxy: Proxy, site: Site) -> Iterator[None]:
    """Who looks for the daemon inside the block finds the proxy in its place."""
    address = DaemonAddress.read(site.paths.daemon_file)
    assert address is not None
    replace(address, address=proxy.address).write(site.paths.daemon_file)
    try:
        yield
    finally:
        address.write(site.paths.daemon_file)


def _follow(var: Path, beats: str, steps: str) -> dict[str, Follower]:
    def watch(client: Client, mine: Follower) -> None:
        ended = set[str]()
        for entry in client.watch():
            assert isinstance(entry, HistoryEntry)
            mine.taken.append(entry.seq)
            ended |= {entry.run_id} if entry.status == "TERM" else set()
            if {beats, steps} <= ended:
                return

    def metrics(client: Client, mine: Follower) -> None:
        for chunk in client.follow_metrics(beats):
            assert chunk.purge_from is None
            mine.taken.extend(chunk.series[_TAG].steps)

    def logs(client: Client, mine: Follower) -> None:
        for data in client.logs(beats, follow=True):
            mine.text += data
            mine.taken = [mine.text.count(b"\n")]

    def published(client: Client, mine: Follower) -> None:
        for item in client.steps(steps):
            mine.taken.append(item.seq)

    followers = {"state changes": watch, "metrics": metrics, "log": logs, "steps": published}
    return {name: Follower(var, follow) for name, follow in followers.items()}


def _cut(proxy: Proxy, client: Client, run_id: str, seconds: float, silent: bool) -> None:
    """Cut, with a pause and a resume of the run in the meantime, and give everybody time to come back."""
    if silent:
        proxy.fall_silent()
    else:
        proxy.close_all()
    client.pause(run_id)
    client.resume(run_id)
    time.sleep(seconds)
    proxy.restore()
    time.sleep(_BETWEEN_SECONDS)


def _counts(followers: dict[str, Follower]) -> str:
    return ", ".join(
        f"{one.taken[-1] if one.taken else 0} {name}{f' ({one.error})' if one.error else ''}"
        for name, one in followers.items()
    )


def _check(
    report: Report, client: Client, site: Site, followers: dict[str, Follower], beats: str, steps: str
) -> None:
    for name, follower in followers.items():
        follower.join(60)
        report.check(not follower.is_alive(), f"{name}: the stream did not end with the run")
        report.check(follower.error is None, f"{name}: {follower.error!r}")
    paths = site.paths.run(beats)
    chunks = EventReader(paths.run_dir).poll()
    written = [step for chunk in chunks for step in chunk.series[_TAG].steps]
    number = int(client.get(steps).headline["published"])
    expected = {
        "state changes": list(range(1, client.health().last_seq + 1)),
        "metrics": written,
        "log": [paths.stdout.read_bytes().count(b"\n")],
        "steps": list(range(1, number + 1)),
    }
    for name, follower in followers.items():
        doubles = len(follower.taken) - len(set(follower.taken))
        gaps = len(set(expected[name]) - set(follower.taken))
        whole = follower.taken == expected[name]
        report.check(whole, f"{name}: {gaps} missing, {doubles} double of {len(expected[name])}")
        report.measure(f"{max(expected[name][-1], len(expected[name]))} {name}")
    report.check(followers["log"].text == paths.stdout.read_bytes(), "the log differs from its file")
