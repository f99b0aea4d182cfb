"""The tab of a run's trackers."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from gym_gui.models.run_files import RunFacts, trackers_of
from gym_gui.models.trackers import proxy_for, tab_title, words_for
from gym_gui.ui.views import trackers
from gym_gui.ui.views.trackers import TrackersView
from mosaic.client import Client, RunRecord
from mosaic.contract.extras import qt_folder
from mosaic.tracking import TrackerLink, write_link
from mosaic.tracking.settings import program
from support.gui_records import record
from support.runs import script_config
from support.window import Driver

pytestmark = pytest.mark.xdist_group("gui")

SCRIPTS = Path(__file__).parents[1] / "scripts"
WITH_WEB = pytest.mark.skipif(
    not (qt_folder() / "QtWebEngineWidgets.abi3.so").exists(), reason="needs the set 'web'"
)
ONLINE = TrackerLink(
    "wandb",
    "online",
    "https://wandb.example/me/walkers/runs/abc",
    details={
        "entity": "me",
        "project": "walkers",
        "run_name": "trial 2",
        "tags": ["a", "b"],
        "notes": "wide",
    },
)


class Page(BaseHTTPRequestHandler):
    """A tracker's page of a run."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<h1>charts/episodic_return</h1>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def tracker_page() -> Iterator[str]:
    """The address of a stand-in for a tracker's server."""
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/runs/1"
        server.shutdown()
        thread.join()


def ended_run(client: Client, *links: TrackerLink) -> RunRecord:
    run = client.wait(client.submit(script_config("steps.py")).run_id, 90)
    for link in links:
        write_link(Path(run.run_dir), link, {})
    return run


def open_trackers(driver: Driver, run: RunRecord, title: str) -> TrackersView:
    window, bar = driver.window, driver.window.page.bar

    def titles() -> list[str]:
        return [bar.tabText(at).replace("&&", "&") for at in range(bar.count())]

    driver.until(lambda: window.context.runs.get(run.run_id) is not None)
    window.select_run(run.run_id)
    driver.until(lambda: title in titles())
    bar.setCurrentIndex(titles().index(title))
    driver.until(lambda: TrackersView in window.page.views)
    view = window.page.views[TrackersView]
    assert isinstance(view, TrackersView)
    driver.until(lambda: view.cards)
    return view


def told_by(card: Any) -> list[str]:
    from PySide6.QtWidgets import QLabel

    return [one.text() for one in card.findChildren(QLabel) if not one.isHidden() and one.text()]


def test_an_offline_run_shows_the_command_that_sends_it(driver: Driver, client: Client) -> None:
    command = "wandb sync '/var/my runs/wandb/offline-run-1'"
    problem = "wandb.example cannot be reached (no route): check the network."
    link = TrackerLink("wandb", "offline", command=command, problem=problem, details={"project": "walkers"})
    view = open_trackers(driver, ended_run(client, link), "W&B")
    card = view.cards["wandb"]
    assert {"Weights & Biases", "Offline", problem, "Project", "walkers", command} <= set(told_by(card))
    assert not card.browser.isVisible() and not card.page.isVisible()
    QTest.mouseClick(card.copy, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == command


def test_several_trackers_share_the_tab(
    driver: Driver, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(trackers, "open_url", lambda address, _: opened.append(address))
    local = TrackerLink("mlflow", "local", command="mlflow ui --port 5000", details={"run_name": "trial 2"})
    run = ended_run(client, ONLINE, local)
    view = open_trackers(driver, run, "Trackers")
    assert list(view.cards) == ["wandb", "mlflow"]
    assert {"Online", "me", "trial 2", "a, b", "wide"} <= set(told_by(view.cards["wandb"]))
    QTest.mouseClick(view.cards["wandb"].browser, Qt.MouseButton.LeftButton)
    assert opened == [ONLINE.url]
    assert {"On this machine", "This command shows it in the browser:"} <= set(told_by(view.cards["mlflow"]))
    # What the tracker writes later is seen without a click.
    write_link(Path(run.run_dir), TrackerLink("mlflow", "failed", problem="The disk is full."), {})
    driver.until(lambda: "The disk is full." in told_by(view.cards["mlflow"]))


def test_a_script_that_tracks_itself_has_the_tab_too(tmp_path: Path) -> None:
    run = record(run_dir=str(tmp_path))
    assert trackers_of(run) == ()
    offline = tmp_path / "wandb" / "offline-run-20260101_000000-abc"
    offline.mkdir(parents=True)
    (link,) = trackers_of(run)
    assert (link.state, link.command) == ("offline", f"{program('wandb')} sync {offline}")
    (tmp_path / "wandb" / "run-20260102_000000-abc").mkdir()
    log = tmp_path / "logs" / "cleanrl.stderr.log"
    log.parent.mkdir()
    log.write_text("wandb: View run at https://wandb.example/me/walkers/runs/abc\n")
    (link,) = trackers_of(run)
    assert (link.state, link.url) == ("online", "https://wandb.example/me/walkers/runs/abc")
    assert tab_title(RunFacts(trackers=(link,))) == "W&B"
    assert tab_title(RunFacts(trackers=(link, TrackerLink("trackio")))) == "Trackers"


def test_only_pages_are_opened_and_only_what_is_known_is_said() -> None:
    told = words_for(TrackerLink("trackio", url="javascript:alert(1)", details={"tags": []}))
    assert (told.url, told.fields, told.state, told.about_command) == ("", (), "Starting", "")
    assert words_for(TrackerLink("wandb", "online", finished=True)).state == "Sent"
    assert words_for(TrackerLink("wandb", "mended")).state == "Mended"


def test_a_page_is_read_through_a_proxy_only_where_the_run_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP", "HTTPS"):
        monkeypatch.setenv(f"WANDB_VPN_{name}_PROXY", f"http://vpn:{len(name)}")
    own = {"wandb_https_proxy": "http://own:1"}
    assert proxy_for(record(asked={"extras": own}), ONLINE) == ""
    asked = {"wandb_use_vpn_proxy": True}
    assert proxy_for(record(asked={"extras": asked}), ONLINE) == "http://vpn:5"
    assert proxy_for(record(asked={"extras": {**asked, **own}}), ONLINE) == "http://own:1"
    assert proxy_for(record(asked={"extras": asked}), TrackerLink("mlflow", url=ONLINE.url)) == ""


@WITH_WEB
def test_the_page_of_an_online_run_is_shown(client: Client, var: Path, tracker_page: str) -> None:
    run = ended_run(client, TrackerLink("mlflow", "online", tracker_page))
    done = subprocess.run(
        [
            *(sys.executable, str(SCRIPTS / "shown_page.py"), str(var), run.run_id),
            *("MLflow", "gym_gui.ui.views.trackers"),
        ],
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["address"] == told["still"] == tracker_page
    assert told["colours"] > 1 and told["messages"] == [] and told["bridge"] == "undefinedundefined"


@WITH_WEB
def test_a_page_uses_no_proxy_that_nobody_asked_for(tracker_page: str) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / "proxied_page.py"), tracker_page],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    # Without it nobody knows the host; a server on this machine needs none.
    assert told["loaded"] == [[False], [True], [True], [True], [False], [True]]
    assert told["asked"] == ["http://tracker.invalid/me/runs/1"]
