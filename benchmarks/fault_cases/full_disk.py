"""The disk is full during each kind of write: what was there reads, the daemon lives, what can waits.

Kinds: the configs of a submit, the database, the manifest, the last event, and a file of the script's own.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from fault_cases.disks import Disk, small_disk
from fault_cases.report import Report
from fault_cases.site import SCRIPTS, Site, environment, script_config, wait_for
from mosaic.client import Client, RunRecord
from mosaic.contract.atomic import drop_spare
from mosaic.contract.errors import StorageError
from mosaic.contract.events import LifecycleReader

_PAGE = 4096
_SOON_SECONDS = 1.0


class Scene:
    """A site on a disk, and what must hold while the disk is full."""

    def __init__(self, report: Report, site: Site, disk: Disk) -> None:
        self.report = report
        self.site = site
        self.disk = disk
        self.client: Client = site.client()
        self._pid = self.client.health().pid

    def check(self, holds: bool, otherwise: str) -> None:
        self.report.check(holds, otherwise)

    def check_named(self, kind: str, text: str | None) -> None:
        self.check(re.search(self.disk.words, str(text)) is not None, f"{kind}: the cause is {text!r}")
        self.report.say(f"{kind}: {text}")

    def check_state(self, kind: str, earlier: RunRecord) -> None:
        """The daemon lives and what was stored before reads, by itself and by another."""
        self.check(self.client.health().pid == self._pid, f"{kind}: the daemon has died")
        again = self.client.get(earlier.run_id)
        self.check(again.history == earlier.history, f"{kind}: the history has changed")
        for path in (
            self.site.paths.run_config(earlier.run_id),
            self.site.paths.run(earlier.run_id).manifest,
        ):
            self.check(isinstance(json.loads(path.read_text()), dict), f"{kind}: {path.name} does not read")
        with sqlite3.connect(f"file:{self.site.paths.database}?mode=ro", uri=True) as database:
            (fine,) = database.execute("PRAGMA integrity_check").fetchone()
        database.close()
        self.check(fine == "ok", f"{kind}: the database is {fine}")

    def check_health(self, kind: str, trouble: bool) -> None:
        """Health says that writing fails, or no longer says it."""
        said = [problem for problem in self.client.health().problems if "fails" in problem]
        self.check(bool(said) == trouble, f"{kind}: health says {said}")

    def running(self, script: str, seconds: float) -> str:
        config = script_config(SCRIPTS / script, params={"seconds": seconds})
        run_id = self.client.submit(config).run_id
        wait_for(self.client, run_id, "EXEC")
        return run_id


def run(var: Path) -> Report:
    kinds = [_submit, _database, _manifest, _last_event, _script_file]
    with small_disk(var / "disk") as disk:
        report = Report(f"{len(kinds)} kinds of write on a {disk.kind}")
        (disk.folder / "var").mkdir()
        with (
            environment(MOSAIC_CPUS="2", MOSAIC_GRACE_SECONDS="2", FAULT_DISK=str(disk.folder)),
            Site(disk.folder / "var") as site,
        ):
            scene = Scene(report, site, disk)
            earlier = scene.client.wait(
                scene.client.submit(script_config(SCRIPTS / "brief.py")).run_id, timeout=60
            )
            for kind in kinds:
                kind(scene, earlier)
        report.measure(
            "a submit refused and named, a cancel done, manifest and last event waited for"
            if disk.passes
            else "configs, database, manifest, last event and the script's file each refused and named"
        )
    return report


def _submit(scene: Scene, earlier: RunRecord) -> None:
    config = script_config(SCRIPTS / "brief.py")
    before = {path.name for path in scene.site.paths.configs.iterdir()}
    scene.disk.fill()
    try:
        scene.client.submit(config)
    except StorageError as error:
        scene.check_named("submit", str(error))
    else:
        scene.check(False, "submit: it was taken although nothing could be written")
    left = {path.name for path in scene.site.paths.configs.iterdir()} - before
    scene.check(not left and not list(scene.site.paths.secrets.iterdir()), f"submit: it left {left}")
    scene.check(len(scene.client.runs()) == 1, "submit: the refused run is listed")
    scene.check_state("submit", earlier)
    scene.check_health("submit", trouble=True)
    scene.disk.free()
    scene.check_health("submit", trouble=False)
    ended = scene.client.wait(scene.client.submit(config).run_id, timeout=60)
    scene.check(ended.outcome == "completed", f"submit: afterwards {ended.outcome} ({ended.reason})")


def _database(scene: Scene, earlier: RunRecord) -> None:
    run_id = scene.running("brief.py", 600)
    scene.disk.fill()
    if scene.disk.passes:
        scene.client.cancel(run_id)
        ended = scene.client.wait(run_id, timeout=60)
        scene.check(ended.outcome == "cancelled", f"database: {ended.outcome} ({ended.reason})")
    else:
        try:
            scene.client.cancel(run_id)
        except StorageError as error:
            scene.check_named("database", str(error))
        scene.check(scene.client.get(run_id).status == "EXEC", "database: the run is no longer EXEC")
    scene.check_state("database", earlier)
    scene.check_health("database", trouble=True)
    scene.disk.free()
    scene.check_health("database", trouble=False)
    if not scene.disk.passes:
        scene.client.cancel(run_id)
        ended = scene.client.wait(run_id, timeout=60)
        scene.check(ended.outcome == "cancelled", f"database: {ended.outcome} ({ended.reason})")


def _ends_on_a_full_disk(
    scene: Scene, earlier: RunRecord, kind: str, script: str, prepare: Callable[[Path], None]
) -> RunRecord:
    """A script that ends while the disk is full, and what becomes of its run when there is room again."""
    run_id = scene.running(script, _SOON_SECONDS)
    prepare(scene.site.paths.run(run_id).run_dir)
    scene.disk.fill()
    time.sleep(3 * _SOON_SECONDS)
    scene.check_state(kind, earlier)
    during = scene.client.get(run_id)
    scene.check(during.status in ("EXEC", "FAULT", "TERM"), f"{kind}: the run is {during.status}")
    scene.report.say(f"{kind}: while full {during.status}, {during.headline.get('phase')}")
    scene.disk.free()
    ended = scene.client.wait(run_id, timeout=60)
    numbers = [event.seq for event in LifecycleReader(scene.site.paths.run(run_id).events).poll()]
    scene.check(numbers == list(range(1, len(numbers) + 1)), f"{kind}: events {numbers}")
    scene.check_health(kind, trouble=False)
    return ended


def _check_end(scene: Scene, kind: str, ended: RunRecord) -> None:
    """What the supervisor writes is waited for; where that is in vain, the cause is named."""
    if scene.disk.passes:
        scene.check(ended.outcome == "completed", f"{kind}: {ended.outcome} ({ended.reason})")
    else:
        scene.check(ended.outcome == "failed", f"{kind}: {ended.outcome}")
        scene.check_named(kind, ended.reason)


def _manifest(scene: Scene, earlier: RunRecord) -> None:
    """Also without the room that is kept for it."""

    def drop_room(run_dir: Path) -> None:
        drop_spare(run_dir / "analytics.json")

    ended = _ends_on_a_full_disk(scene, earlier, "manifest", "brief.py", drop_room)
    _check_end(scene, "manifest", ended)
    manifest = scene.site.paths.run(ended.run_id).manifest
    scene.check(manifest.exists() == scene.disk.passes, f"manifest: it is there: {manifest.exists()}")
    scene.check(scene.disk.passes or "manifest" in str(ended.reason), f"manifest: {ended.reason}")


def _last_event(scene: Scene, earlier: RunRecord) -> None:
    """Nothing of the last event fits when its file ends with a page and no room is kept behind that."""

    def pad(run_dir: Path) -> None:
        events = run_dir / "logs" / "events.jsonl"
        with events.open("ab") as file:
            file.write(b"\n" * (_PAGE - events.stat().st_size % _PAGE))
        os.truncate(events, events.stat().st_size)

    _check_end(scene, "last event", _ends_on_a_full_disk(scene, earlier, "last event", "brief.py", pad))


def _script_file(scene: Scene, earlier: RunRecord) -> None:
    """A script of somebody else's does not wait; why it failed is known afterwards."""
    kind = "file of the script"
    ended = _ends_on_a_full_disk(scene, earlier, kind, "saves.py", lambda run_dir: None)
    scene.check(ended.outcome == "failed", f"{kind}: {ended.outcome}")
    scene.check_named(kind, ended.reason)
