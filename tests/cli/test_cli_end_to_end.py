"""The command line against a real daemon: train, look, change, remove."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.analytics.event_files import EventWriter

if TYPE_CHECKING:
    from conftest import RunMosaic

SHORT = ("ppo", "CartPole-v1", "--steps", "2048")
CURVES = (str(Path(__file__).parent / "scripts" / "curves.py"), "None-v0")


def parsed(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_a_run_from_training_to_removal(run_mosaic: RunMosaic) -> None:
    run = parsed(run_mosaic("train", *SHORT, "--tag", "first", "--json"))
    assert (run["status"], run["outcome"]) == ("TERM", "completed")
    run_id = run["run_id"]
    assert Path(run["run_dir"]).is_dir()

    (listed,) = parsed(
        run_mosaic("runs", "--json", "--tag", "first", "--algo", "ppo", "--state", "completed")
    )
    assert {key: listed[key] for key in ("run_id", "status", "outcome", "run_dir")} == {
        key: run[key] for key in ("run_id", "status", "outcome", "run_dir")
    }
    assert parsed(run_mosaic("runs", "--json", "--env", "Acrobot-v1")) == []

    shown = parsed(run_mosaic("show", run_id[:12].lower(), "--json"))
    assert [entry["status"] for entry in shown["history"]] == ["INIT", "HSHK", "RDY", "EXEC", "TERM"]
    assert all({"seq", "status", "at", "reason"} <= set(entry) for entry in shown["history"])
    assert shown["headline"]["step"] == 2048
    assert {"supervisor_pid", "training_pid", "config"} <= set(shown)
    kinds = {file["kind"] for file in shown["files"]}
    assert {"events", "model", "manifest", "log"} <= kinds

    provenance = json.loads(Path(run["run_dir"], "provenance.json").read_bytes())
    assert shown["losses"] == provenance["losses"] != {}
    assert all(loss["by"] in ("kernel", "torch") and loss["why"] for loss in shown["losses"].values())

    page = run_mosaic("show", "last").stdout
    assert run_id in page
    for loss in shown["losses"].values():
        assert f"{loss['by']}: {loss['why']}" in " ".join(page.split())
    assert "completed" in page
    assert "ppo.cleanrl_model" in page
    assert run_id[:10] in run_mosaic("runs").stdout

    events = parsed(run_mosaic("logs", "last", "--events", "--json"))["lines"]
    assert json.loads(events[0])["event"] == "run_started"
    last = run_mosaic("logs", "last", "--events", "-n", "1", "-f").stdout
    assert json.loads(last)["event"] == "run_completed"

    refused = run_mosaic("cancel", run_id, check=False)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "has already ended" in refused.stderr
    unsure = run_mosaic("rm", run_id, check=False)
    assert (unsure.returncode, "add --yes" in unsure.stderr) == (2, True)
    assert "Removed 1 run" in run_mosaic("rm", run_id, "--yes").stdout
    assert not Path(run["run_dir"]).exists()
    kept = parsed(run_mosaic("logs", run_id[:14].lower(), "--events", "-n", "1", "--json"))
    assert kept["run_id"] == run_id and json.loads(kept["lines"][0])["event"] == "run_completed"
    gone = run_mosaic("show", run_id, check=False)
    assert (gone.returncode, gone.stderr.count("\n")) == (2, 1)


def test_plain_output_tells_where_the_results_are(run_mosaic: RunMosaic) -> None:
    lines = run_mosaic("train", *SHORT).stdout.splitlines()
    text = "\n".join(lines)
    for part in ("training", "completed", "mean return", "event files", "ppo.cleanrl_model", "tensorboard"):
        assert part in text
    assert "\x1b" not in text


def test_a_run_is_repeated_with_changes(run_mosaic: RunMosaic) -> None:
    first = parsed(run_mosaic("train", *CURVES, "--steps", "2", "--set", "pause=0.1", "--tag", "a", "--json"))
    again = parsed(run_mosaic("rerun", "last", "--set", "pause=0", "--seeds", "3,4", "--json"))["runs"]
    assert [run["seed"] for run in again] == [3, 4]
    assert {run["outcome"] for run in again} == {"completed"}
    shown = parsed(run_mosaic("show", again[0]["run_id"], "--json"))
    config = shown["config"]["metadata"]["worker"]["config"]
    assert config["extras"]["algo_params"] == {"pause": 0.0}
    assert config["run_id"] == again[0]["run_id"] != first["run_id"]
    assert shown["tags"] == ["a"]


def test_the_changes_of_a_repeated_run_are_checked(run_mosaic: RunMosaic) -> None:
    long = parsed(run_mosaic("train", "ppo", "CartPole-v1", "--gamma", "0.9", "--detach", "--json"))
    run_mosaic("cancel", long["run_id"])
    dry = run_mosaic("rerun", "last", "--set", "num_envs=2", "--dry-run", "--json")
    config = json.loads(dry.stdout)["metadata"]["worker"]["config"]
    assert config["extras"]["algo_params"] == {"gamma": 0.9, "num_envs": 2}
    assert config["run_id"] == "${RUN_ID}"
    refused = run_mosaic("rerun", "last", "--set", "gama=0.8", check=False)
    assert (refused.returncode, "did you mean 'gamma'?" in refused.stderr) == (2, True)


def test_a_failed_run_shows_its_reason_and_stderr(run_mosaic: RunMosaic, tmp_path: Path) -> None:
    script = tmp_path / "breaks.py"
    script.write_text("raise ValueError('made of cheese')\n")
    done = run_mosaic("train", str(script), "CartPole-v1", check=False)
    assert done.returncode == 1
    assert "✗ failed" in done.stdout
    assert "ValueError: made of cheese" in done.stdout
    assert 'breaks.py", line 1' in done.stdout
    assert "--stderr" in done.stdout


def test_a_detached_run_can_be_watched_and_cancelled(run_mosaic: RunMosaic) -> None:
    run = parsed(run_mosaic("train", *CURVES, "--steps", "1M", "--set", "pause=1", "--detach", "--json"))
    assert run["outcome"] is None
    live = run_mosaic("rm", "last", "--yes", check=False)
    assert (live.returncode, live.stderr.count("\n")) == (1, 1)
    assert "cancel" in live.stderr
    assert "cancelled" in run_mosaic("cancel", run["run_id"][:14]).stdout
    watched = run_mosaic("watch", "last", check=False)
    assert (watched.returncode, "■ cancelled" in watched.stdout) == (1, True)


def test_watching_gives_a_json_line_for_each_update(run_mosaic: RunMosaic, tmp_path: Path) -> None:
    words = ("--steps", "8", "--set", "pause=0.3", "--set", f"after={tmp_path / 'watched'}")
    run = parsed(run_mosaic("train", *CURVES, *words, "--detach", "--json"))
    command = [sys.executable, "-m", "mosaic", "watch", "last", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        updates = [json.loads(watching.stdout.readline())]
        (tmp_path / "watched").touch()
        updates += map(json.loads, watching.stdout)
    assert {update["run_id"] for update in updates} == {run["run_id"]}
    assert updates[-1]["outcome"] == "completed"
    assert any("headline" in update for update in updates)
    [now] = [json.loads(line) for line in run_mosaic("watch", "last", "--json").stdout.splitlines()]
    assert now == updates[-1]


def test_the_daemon_is_started_looked_at_and_stopped(run_mosaic: RunMosaic) -> None:
    assert parsed(run_mosaic("daemon", "status", "--json"))["running"] is False
    assert "No daemon is running" in run_mosaic("daemon").stdout
    assert "listens at" in run_mosaic("daemon", "start").stdout
    status = parsed(run_mosaic("daemon", "status", "--json"))
    assert status["running"] is True
    assert status["live_runs"] == 0
    other = run_mosaic("daemon", "start", "--port", "1", check=False)
    assert (other.returncode, "already listens" in other.stderr) == (2, True)
    assert "runs continue" in run_mosaic("daemon", "stop").stdout
    assert "No daemon was running" in run_mosaic("daemon", "stop").stdout


def test_before_the_first_run_there_is_a_hint(run_mosaic: RunMosaic) -> None:
    assert "train ppo CartPole-v1" in run_mosaic("runs").stdout
    assert parsed(run_mosaic("runs", "--json")) == []
    nothing = run_mosaic("show", "last", check=False)
    assert (nothing.returncode, "There is no run yet" in nothing.stderr) == (2, True)


def test_show_tells_what_else_is_in_event_files_and_which_of_them_are_damaged(run_mosaic: RunMosaic) -> None:
    run = parsed(run_mosaic("train", *CURVES, "--steps", "3", "--json"))
    plain = parsed(run_mosaic("show", run["run_id"], "--json"))
    assert (plain["media"], plain["problems"]) == ([], [])
    folder = Path(run["run_dir"]) / "runs" / "more"
    with closing(EventWriter(folder)) as writer:
        for step in (10, 2000):
            writer.add_text("notes [bold]", "text", step)
    writer.path.write_bytes(writer.path.read_bytes() + b"what no writer has ever written")
    told = parsed(run_mosaic("show", run["run_id"], "--json"))
    assert [(one["name"], one["kind"], len(one["steps"])) for one in told["media"]] == [
        ("notes [bold]/text_summary", "text", 2)
    ]
    (problem,) = told["problems"]
    shown = run_mosaic("show", run["run_id"]).stdout
    assert "notes [bold]  text  2" in shown
    assert "is damaged at byte" in problem and "is damaged at byte" in " ".join(shown.split())
