"""The disk is full for minutes under live runs, and another process takes whatever becomes free.

One of our algorithms, a script that prints and one that is silent live through it. The daemon is killed
half-way, and the next one is started on the full disk. Runs are listed all the time, cancelled and removed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from fault_cases.disks import Tmpfs, small_disk
from fault_cases.report import Report, spread
from fault_cases.site import SCRIPTS, Site, environment, script_config, wait_for, wait_until
from mosaic.client import Client, RunRecord, train_config
from mosaic.contract.events import LifecycleReader

_WAITING = "waiting for space"
_OFTEN = {"checkpoint_every": 512}
_BETWEEN_SECONDS = 5.0


def run(var: Path, seconds: float) -> Report:
    report = Report(f"full for {seconds:g} s under 3 live runs, 1 daemon kill")
    with small_disk(var / "disk") as disk:
        if not isinstance(disk, Tmpfs):
            report.check(False, "not measured: a tmpfs cannot be mounted here, which takes root")
            return report
        (disk.folder / "var").mkdir()
        with (
            environment(MOSAIC_CPUS="4", MOSAIC_GRACE_SECONDS="10", MOSAIC_VAR=str(disk.folder / "var")),
            Site(disk.folder / "var") as site,
        ):
            _Scene(report, site, disk).play(seconds)
    return report


class _Scene:
    def __init__(self, report: Report, site: Site, disk: Tmpfs) -> None:
        self._report = report
        self._site = site
        self._disk = disk
        self._client: Client = site.client()
        self._took: list[float] = []

    def play(self, seconds: float) -> None:
        report, client = self._report, self._client
        ended = [client.submit(script_config(SCRIPTS / "brief.py")).run_id for _ in range(2)]
        for run_id in ended:
            client.wait(run_id, timeout=120)
        configs = {
            "ours": train_config("ppo", "CartPole-v1", total_timesteps=60_000, params=_OFTEN),
            "prints": script_config(SCRIPTS / "prints.py", steps=2000),
            "silent": script_config(SCRIPTS / "brief.py", params={"seconds": 3600}),
        }
        live = {name: client.submit(config).run_id for name, config in configs.items()}
        for run_id in live.values():
            wait_for(client, run_id, "EXEC")
        checkpoints = self._site.paths.run(live["ours"]).checkpoints
        wait_until(lambda: any(checkpoints.glob("step-*.npz")), "our run has a checkpoint")
        before = {name: client.get(run_id) for name, run_id in live.items()}
        with self._disk.kept_full():
            self._while_full(seconds, before, ended)
        self._afterwards(before)
        report.measure(f"{len(self._took)} commands on the full disk: {spread(self._took)}")

    def _while_full(self, seconds: float, before: dict[str, RunRecord], ended: list[str]) -> None:
        deadline, killed = time.monotonic() + seconds, False
        waiting = ("ours", "prints")
        wait_until(lambda: all(self._phase(before[name]) == _WAITING for name in waiting), "they wait")
        self._command("rm", ended[0], "--yes")
        while time.monotonic() < deadline:
            if not killed and deadline - time.monotonic() < seconds / 2:
                self._site.kill()
                killed = True
                self._report.say("the daemon was killed")
            self._command("runs", "--json")
            for name, run in before.items():
                now = self._client.get(run.run_id)
                alike = (now.status, now.supervisor_pid) == ("EXEC", run.supervisor_pid)
                self._report.check(alike, f"{name} is {now.status} ({now.reason})")
            time.sleep(min(_BETWEEN_SECONDS, seconds / 4))
        self._command("rm", ended[1], "--yes")
        self._command("cancel", before["silent"].run_id)
        cancelled = self._client.wait(before["silent"].run_id, timeout=60)
        self._report.check(cancelled.outcome == "cancelled", f"silent: {cancelled.outcome}")
        self._command("gc", "--older-than", "0s", "--yes")

    def _afterwards(self, before: dict[str, RunRecord]) -> None:
        client, report = self._client, self._report
        ours = client.wait(before["ours"].run_id, timeout=300)
        report.check(ours.outcome == "completed", f"ours: {ours.outcome} ({ours.reason})")
        prints = client.wait(before["prints"].run_id, timeout=300)
        lines = (Path(prints.run_dir) / "logs" / "cleanrl.stdout.log").read_text().splitlines()
        report.check(prints.outcome == "completed", f"prints: {prints.outcome} ({prints.reason})")
        report.check(lines == [f"step={number}" for number in range(1, 2001)], f"prints: {len(lines)} lines")
        for name, run in (("ours", ours), ("prints", prints)):
            states = [entry.status for entry in run.history]
            report.check(states == ["INIT", "HSHK", "RDY", "EXEC", "TERM"], f"{name}: {states}")
            numbers = [event.seq for event in LifecycleReader(Path(run.run_dir) / "logs/events.jsonl").poll()]
            report.check(numbers == list(range(1, len(numbers) + 1)), f"{name}: events {numbers}")

    def _phase(self, run: RunRecord) -> object:
        return self._client.get(run.run_id).headline.get("phase")

    def _command(self, *words: str) -> None:
        began = time.monotonic()
        done = subprocess.run([sys.executable, "-m", "mosaic", *words], capture_output=True, text=True)
        self._took.append(time.monotonic() - began)
        self._report.check(
            done.returncode == 0, f"mosaic {words[0]}: {done.returncode} {done.stderr.strip()}"
        )
