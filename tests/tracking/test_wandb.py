"""Weights & Biases, by its real client, against a stand-in of its service on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from mosaic.client import Client
from mosaic.tracking import FAILED, OFFLINE, ONLINE, TrackerLink, read_link
from support.tracked import TrackedRun
from support.wandb_service import ENTITY, KEY, WandbService

pytestmark = pytest.mark.long

Everything = Callable[[Path], Iterator[tuple[Path, bytes]]]
TRACK: dict[str, Any] = {"track_wandb": True}
RETURNS = [(step, step * 2.0) for step in range(25)]


def link_of(run: TrackedRun) -> TrackerLink:
    link = read_link(run.paths.run_dir, "wandb")
    assert link is not None
    return link


def test_curves_videos_model_and_names_arrive(tracked: TrackedRun, service: WandbService) -> None:
    extras: dict[str, Any] = {"wandb_project_name": "proj", "wandb_run_name": "mine", "wandb_group": "seeds"}
    extras |= {"wandb_notes": "why", "algo_params": {"pause": 0.02}}
    ended = tracked.run({**TRACK, **extras, "wandb_tags": ["a", "b"]})
    (run,) = service.runs.values()
    assert (run.name, run.project, run.entity) == (tracked.config["run_id"], "proj", ENTITY)
    said = {name: run.said[name] for name in ("displayName", "groupName", "notes", "tags", "jobType")}
    assert said == {
        "displayName": "mine",
        "groupName": "seeds",
        "notes": "why",
        "tags": ["a", "b"],
        "jobType": "train",
    }
    assert run.points("charts/episodic_return") == RETURNS
    times = [row["_timestamp"] for row in run.history if "losses/value_loss" in row]
    assert times == sorted(times) and times[-1] - times[0] > 0.02 * 20, "those of the run, not of the sending"
    assert (run.exit_code, run.overwritten, run.summary["outcome"]) == (0, 0, "completed")
    assert run.config["total_timesteps"] == 25 and run.config["pause"] == 0.02
    (artifact,) = service.artifacts.values()
    assert (artifact.type, artifact.committed) == ("model", True)
    assert artifact.files == {"curves.cleanrl_model": b"weights"}
    assert any(name.startswith("media/videos/") for name in service.files_of(run.name))
    assert not service.unknown, "the client asks something that the stand-in does not know"

    link = link_of(tracked)
    assert (link.state, link.finished, link.problem) == (ONLINE, True, "")
    assert link.url.endswith(f"/{ENTITY}/proj/runs/{run.name}")
    wandb = ended["manifest"]["artifacts"]["wandb"]
    assert (wandb["run_path"], wandb["url"]) == (f"{ENTITY}/proj/{run.name}", link.url)
    assert "trackers" not in ended["headline"]
    assert list((tracked.paths.run_dir / "wandb").glob("run-*"))


def test_a_failed_run_is_failed_there(tracked: TrackedRun, service: WandbService) -> None:
    tracked.run({**TRACK, "algo_params": {"fail_at": 3}}, code=1)
    (run,) = service.runs.values()
    assert (run.exit_code, run.summary["outcome"]) == (1, "failed")
    assert run.points("charts/episodic_return") == RETURNS[:4]


def test_a_run_that_goes_on_has_no_point_twice(tracked: TrackedRun, service: WandbService) -> None:
    tracked.run({**TRACK, "algo_params": {"fail_at": 17}}, code=1)
    # It goes on from step 10, by another supervisor and another tracker.
    tracked.run(TRACK)
    (run,) = service.runs.values()
    assert run.points("charts/episodic_return") == RETURNS
    assert (run.overwritten, run.exit_code) == (0, 0)


def test_a_tracker_that_is_killed_is_started_again_and_loses_nothing(
    tracked: TrackedRun, service: WandbService
) -> None:
    tracked.config["total_timesteps"] = 60
    started = tracked.start({**TRACK, "algo_params": {"pause": 0.4}})
    wait_until(lambda: bool(service.runs) and len(next(iter(service.runs.values())).history) > 4)
    tracker = process_of("mosaic.tracking.process", started.pid)
    time.sleep(6.0)
    tracker.kill()
    started.communicate(timeout=120)
    assert started.returncode == 0
    (run,) = service.runs.values()
    told = f"{link_of(tracked)}\n{tracked.log()}"
    assert run.points("charts/episodic_return") == [(step, step * 2.0) for step in range(60)], told
    assert link_of(tracked).finished, told


def test_a_tracker_that_dies_while_it_hands_in_is_started_again(
    tracked: TrackedRun, service: WandbService
) -> None:
    tracked.config["total_timesteps"] = 200
    started = tracked.start({**TRACK, "algo_params": {"pause": 0.2}})
    wait_until(lambda: any(run.history for run in service.runs.values()))
    tracker = process_of("mosaic.tracking.process", started.pid)
    training = [one for one in psutil.Process(started.pid).children() if one != tracker]
    # It has not heard of the end yet when it is killed after it.
    tracker.suspend()
    assert training and not psutil.wait_procs(training, timeout=60)[1]
    time.sleep(1.0)
    tracker.kill()
    started.communicate(timeout=120)
    assert started.returncode == 0
    (run,) = service.runs.values()
    assert run.points("charts/episodic_return") == [(step, step * 2.0) for step in range(200)]
    assert link_of(tracked).finished


def test_a_run_that_is_killed_leaves_no_tracker(tracked: TrackedRun, service: WandbService) -> None:
    tracked.config["total_timesteps"] = 10_000
    # A segment of live frames would be removed by the daemon.
    started = tracked.start({**TRACK, "fastlane_video_mode": "off", "algo_params": {"pause": 0.2}})
    wait_until(lambda: bool(service.runs))
    below = psutil.Process(started.pid).children(recursive=True)
    assert any("wandb-core" in one.name() for one in below)
    started.kill()
    started.communicate()
    psutil.wait_procs(below, timeout=20)
    assert not [one for one in below if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


def test_a_paused_tracker_goes_on_and_a_cancelled_run_says_so(client: Client, service: WandbService) -> None:
    from support.runs import script_config, wait_for_status

    config = script_config("curves.py", steps=10_000, params={"pause": 0.1}, extras=TRACK)
    run = wait_for_status(client, client.submit(config).run_id, "EXEC")
    wait_until(lambda: bool(service.runs))
    client.pause(run.run_id)
    wait_for_status(client, run.run_id, "PAUSE")
    states = {
        one.name(): one.status()
        for one in psutil.Process(client.get(run.run_id).supervisor_pid).children(recursive=True)
    }
    assert states["wandb-core"] != psutil.STATUS_STOPPED
    client.resume(run.run_id)
    client.cancel(run.run_id)
    ended = client.wait(run.run_id, timeout=90)
    assert ended.outcome == "cancelled"
    assert service.runs[run.run_id].summary["outcome"] == "cancelled"


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("refused", "refuses the API key"),
        ("no key", "needs an API key, and none is set"),
        ("not a key", "cannot take the API key"),
        ("away", "cannot be reached"),
    ],
)
def test_a_service_that_cannot_be_used_is_told_and_the_run_is_kept(
    trouble: str, said: str, tracked: TrackedRun, service: WandbService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.accepts = trouble != "refused"
    if trouble == "no key":
        monkeypatch.delenv("WANDB_API_KEY")
    if trouble == "not a key":
        monkeypatch.setenv("WANDB_API_KEY", "too-short")
    if trouble == "away":
        monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    ended = tracked.run(TRACK)
    link = link_of(tracked)
    assert link.state == OFFLINE and said in link.problem and link.problem.count("\n") == 0
    assert "too-short" not in link.problem
    assert ended["headline"]["trackers"] == {"wandb": link.problem}
    # Once it is there, the command that was told sends everything.
    service.accepts = True
    send(link.command, service)
    (run,) = service.runs.values()
    assert run.points("charts/episodic_return") == RETURNS
    assert [artifact.type for artifact in service.artifacts.values()] == ["model"]


def test_offline_needs_neither_key_nor_network_and_parts_are_sent_as_one(
    tracked: TrackedRun, service: WandbService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_API_KEY")
    extras = {**TRACK, "wandb_mode": "offline", "wandb_run_name": "mine"}
    tracked.run({**extras, "algo_params": {"fail_at": 17}}, code=1)
    tracked.run(extras)
    link = link_of(tracked)
    assert (link.state, link.problem, link.url) == (OFFLINE, "", "")
    assert not service.asked
    assert len(list((tracked.paths.run_dir / "wandb").glob("offline-run-*"))) == 2
    send(link.command, service)
    (run,) = service.runs.values()
    assert run.points("charts/episodic_return") == RETURNS
    assert run.said["displayName"] == "mine"


def test_a_slow_service_holds_the_end_of_a_run_no_longer_than_is_allowed(
    tracked: TrackedRun, service: WandbService
) -> None:
    tracked.config["total_timesteps"] = 5
    started = tracked.start({**TRACK, "algo_params": {"pause": 2}}, MOSAIC_TRACKING_SECONDS="3")
    wait_until(lambda: (tracked.paths.run_dir / "wandb").exists() and link_of(tracked).state == ONLINE)
    service.delay = 30.0
    began = time.monotonic()
    started.communicate(timeout=120)
    assert started.returncode == 0 and time.monotonic() - began < 20
    link = link_of(tracked)
    assert "was not done in time" in link.problem and " sync " in link.command


def test_the_asked_proxy_is_used_and_no_other(
    tracked: TrackedRun, service: WandbService, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text(
        f"WANDB_VPN_HTTP_PROXY=http://me:proxy-password@127.0.0.1:{service.port}\n"
    )
    extras = {**TRACK, "wandb_use_vpn_proxy": True}
    tracked.run(extras, WANDB_BASE_URL="http://wandb.test", MOSAIC_USER_PATH=str(tmp_path))
    assert service.via_proxy and all(one.startswith("http://wandb.test/") for one in service.via_proxy)
    (run,) = service.runs.values()
    assert len(run.points("charts/episodic_return")) == 25
    for path in tracked.var.rglob("*"):
        assert not path.is_file() or b"proxy-password" not in path.read_bytes(), path


def test_the_key_is_in_nothing_that_a_run_leaves(
    client: Client, service: WandbService, everything: Everything, monkeypatch: pytest.MonkeyPatch
) -> None:
    from support.runs import script_config

    # Not in the environment, but in the config, as a form has it.
    monkeypatch.delenv("WANDB_API_KEY")
    monkeypatch.setenv("WANDB_DEBUG", "true")
    run = client.submit(script_config("curves.py", steps=25, extras={**TRACK, "wandb_api_key": KEY}))
    assert client.wait(run.run_id, timeout=120).outcome == "completed"
    assert service.keys == {KEY} and service.runs[run.run_id].exit_code == 0
    found = list(everything(client.paths.root))
    assert any(path.suffix == ".wandb" for path, _ in found), "the client's own files are looked into"
    assert not [path for path, data in found if KEY.encode() in data]
    for process in psutil.process_iter(["cmdline"]):
        assert KEY not in " ".join(process.info["cmdline"] or ())


def test_enabled_among_the_artifacts_is_enough(client: Client, service: WandbService) -> None:
    from support.runs import script_config

    config = script_config("curves.py", steps=5, tags=["paper"], run_name="the run")
    run = client.submit({**config, "artifacts": {"wandb": {"enabled": True}}})
    assert client.wait(run.run_id, timeout=120).outcome == "completed"
    known = service.runs[run.run_id]
    assert (known.said["displayName"], known.said["tags"]) == ("the run", ["paper"])


OWN = """
import argparse, sys
parser = argparse.ArgumentParser()
parser.add_argument("--env-id")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--total-timesteps", type=int, default=10)
parser.add_argument("--track", action="store_true")
parser.add_argument("--wandb-project-name", type=str, default="own")
args = parser.parse_args()
if args.track:
    import wandb
    run = wandb.init(project=args.wandb_project_name, config=vars(args))
    for step in range(5):
        run.log({"charts/own": step, "global_step": step})
    run.finish()
"""


@pytest.mark.parametrize("away", [False, True])
def test_a_script_that_tracks_by_itself_is_told_to_and_survives_a_service_that_is_away(
    away: bool, tracked: TrackedRun, service: WandbService, tmp_path: Path
) -> None:
    script = tmp_path / "own.py"
    script.write_text(OWN)
    tracked.config["algo"] = str(script)
    service.accepts = not away
    tracked.run({**TRACK, "wandb_run_name": "mine"})
    link = link_of(tracked)
    if away:
        assert link.state == OFFLINE and "refuses the API key" in link.problem
        service.accepts = True
        send(link.command, service)
    else:
        assert link.state == ONLINE and link.url.endswith(f"/{ENTITY}/own/runs/{tracked.config['run_id']}")
    (run,) = service.runs.values()
    assert (run.name, run.project, run.said["displayName"]) == (tracked.config["run_id"], "own", "mine")
    assert run.points("charts/own") == [(step, step) for step in range(5)]


def test_a_tracker_that_always_dies_is_given_up_with_a_sentence(tracked: TrackedRun, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    (broken / "wandb").mkdir(parents=True)
    (broken / "wandb" / "__init__.py").write_text("import os; os._exit(3)")
    tracked.config["total_timesteps"] = 80
    ended = tracked.run({**TRACK, "algo_params": {"pause": 0.3}}, PYTHONPATH=str(broken))
    assert link_of(tracked).state == FAILED
    assert "its process has died, see " in ended["headline"]["trackers"]["wandb"]


def test_a_missing_client_is_one_sentence(tracked: TrackedRun, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "wandb.py").write_text("raise ImportError('no such thing')")
    tracked.run(TRACK, PYTHONPATH=str(broken))
    link = link_of(tracked)
    assert link.state == FAILED and link.problem.endswith("run `mosaic extras install wandb`.")


def test_a_run_that_asks_for_no_tracker_has_none(tracked: TrackedRun) -> None:
    tracked.config["total_timesteps"] = 3
    code = "import sys; from cleanrl_worker.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    file = tracked.var / "config.json"
    file.write_text(json.dumps(tracked.config))
    done = subprocess.run(
        [sys.executable, "-c", code, "--config", str(file)],
        env={**os.environ, "MOSAIC_VAR": str(tracked.var)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = done.stdout.splitlines()[-1].split()
    assert not [name for name in loaded if name.startswith(("mosaic.tracking", "wandb", "mlflow", "trackio"))]
    assert not (tracked.paths.run_dir / "tracking").exists()


def wait_until(true: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def process_of(module: str, supervisor: int) -> psutil.Process:
    below = psutil.Process(supervisor).children(recursive=True)
    return next(one for one in below if module in one.cmdline())


def send(command: str, service: WandbService) -> None:
    """Do what the user is told to do, in a shell that knows nothing of our environment."""
    assert " sync " in command
    done = subprocess.run(
        command,
        shell=True,
        # It keeps a log in the current folder.
        cwd=os.environ["HOME"],
        env={
            "HOME": os.environ["HOME"],
            "PATH": "/usr/bin:/bin",
            "WANDB_BASE_URL": service.url,
            "WANDB_API_KEY": KEY,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
