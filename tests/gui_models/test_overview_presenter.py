"""The numbers on top of a run's page."""

from __future__ import annotations

import json
from pathlib import Path

from gym_gui.models.run_files import computed_by
from gym_gui.ui.presenters.overview import elapsed, headlines, notice, seconds_left
from mosaic.client import HistoryEntry
from support.gui_records import record

_HEAD = {
    "step": 370_688,
    "total_steps": 500_000,
    "sps": 21_940.0,
    "mean_return": 487.3,
    "last_return": 500.0,
    "episodes": 1204,
    "progress": 0.741,
    "time_shares": {"env": 0.33, "update": 0.38, "act": 0.26, "log": 0.03},
}


def test_a_run_that_trains_has_five_numbers() -> None:
    run = record(headline=_HEAD, started_at=1000.0)
    told = {one.name: (one.value, one.detail) for one in headlines(run, per_step=1.0, now=1100.0)}
    assert told["Mean return"] == ("487.3", "last 500.0 · 1,204 episodes · 1.00 per step")
    assert told["Steps per second"][0] == "21,940"
    assert told["Progress"] == ("74 %", "370,688 of 500,000 steps")
    assert told["Time left"][0] == "0:05"
    assert told["Where time goes"] == ("38 %", "update · env 33 % · act 26 %")


def test_before_the_first_number_there_are_dashes_and_a_word() -> None:
    told = headlines(record(status="INIT", started_at=None), now=1060.0)
    assert [one.value for one in told[:3]] == ["–", "–", "–"]
    assert told[3].detail == "1 min ago"


def test_a_run_that_has_ended_tells_how_long_it_took() -> None:
    run = record(status="TERM", outcome="completed", started_at=1000.0, ended_at=1023.4, headline=_HEAD)
    assert headlines(run, now=5000.0)[3].value == "0:23"


def test_pauses_do_not_count() -> None:
    history = [
        HistoryEntry(1, "r", "EXEC", None, None, 1000.0),
        HistoryEntry(2, "r", "PAUSE", None, None, 1010.0),
        HistoryEntry(3, "r", "EXEC", None, None, 1110.0),
    ]
    assert elapsed(record(started_at=1000.0, history=history), now=1120.0) == 20.0
    assert seconds_left(record(status="PAUSE", headline=_HEAD)) is None


def test_a_run_that_waits_is_paused_or_failed_says_what_to_do() -> None:
    words = {
        "waits": notice(record(status="INIT", reason="waits for 1 more CPU")),
        "paused": notice(record(status="PAUSE")),
        "failed": notice(record(status="TERM", outcome="failed", reason="out of memory")),
        "timed out": notice(record(status="TERM", outcome="timed_out")),
    }
    assert "starts by itself" in words["waits"]
    assert "Resume" in words["paused"] and "Resume" in words["timed out"]
    assert "Logs" in words["failed"]
    assert notice(record()) == ""


def test_an_evaluation_without_a_batch_says_what_it_waits_for() -> None:
    told = headlines(record(asked={"extras": {"mode": "policy_eval"}}), now=1100.0)
    assert (told[0].name, told[0].value, told[0].detail) == ("Mean return", "–", "after the first batch")


def test_what_computes_the_losses_is_told_once_for_each_reason(tmp_path: Path) -> None:
    run = record(run_dir=str(tmp_path))
    assert computed_by(run) == "", "it has noted nothing yet"
    provenance = tmp_path / "provenance.json"
    provenance.write_text(json.dumps({"python": "3.11"}))
    assert computed_by(run) == "", "a script notes nothing of it"
    same = {"by": "kernel", "why": "its gradients match the written loss"}
    other = {"by": "torch", "why": "its gradients differ"}
    provenance.write_text(json.dumps({"losses": {"actor": same, "critic": same, "alpha": other}}))
    assert computed_by(run) == f"kernel: {same['why']}; torch: {other['why']}"
    provenance.write_text("[1, 2")
    assert computed_by(run) == ""
