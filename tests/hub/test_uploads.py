"""Uploads of runs: what arrives, when they happen, how they fail, and where the token is not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from huggingface_hub import ModelCard

from hub.conftest import PATIENCE, TRAIN, upload_of
from mosaic.analytics.eval_summary import read_eval_summary
from mosaic.contract.paths import VarPaths
from support.hub import READ_TOKEN, TOKEN, Repo, StandInHub

if TYPE_CHECKING:
    from conftest import RunMosaic

REPO = "tester/CartPole-v1-ppo-seed1"
Train = Callable[..., Path]


def holders(folder: Path, text: str) -> list[str]:
    """The files with a text in them."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "trainer.sqlite" for path in files)
    return [str(path) for path in files if text.encode() in path.read_bytes()]


def test_a_run_is_uploaded_when_it_has_completed(
    hub: StandInHub, train: Train, run_mosaic: RunMosaic, var: Path
) -> None:
    hub.silent.set()
    run_dir = train("--upload-model")
    running = json.loads((run_dir / "hub.json").read_text())
    assert running["state"] == "uploading", "the run did not wait for it"
    uploader = psutil.Process(running["process"]["pid"])
    while not any("/commit/" in line for line in hub.asked):
        assert uploader.is_running()
        time.sleep(0.05)
    assert "is being uploaded" in run_mosaic("show", "last").stdout
    assert TOKEN not in " ".join(uploader.cmdline())
    again = run_mosaic("push", "last", check=False)
    assert (again.returncode, again.stderr.count("is being uploaded already")) == (1, 1)
    hub.silent.clear()
    told = upload_of(run_dir)
    assert (told["state"], told["repo"], told["url"]) == ("uploaded", REPO, f"{hub.address}/{REPO}")
    assert told["url"] in run_mosaic("show", "last").stdout
    check_upload(hub.repos[REPO], run_dir)
    assert not holders(var, TOKEN)


def check_upload(repo: Repo, run_dir: Path) -> None:
    (model,) = run_dir.glob("runs/*/ppo.cleanrl_model")
    (events,) = run_dir.glob("runs/*/*tfevents*")
    names = {"ppo.cleanrl_model", "ppo.policy.json", "mosaic.json", "eval_summary.json", "README.md"}
    assert set(repo.files) == {*names, events.name}
    assert repo.files["ppo.cleanrl_model"] == model.read_bytes()
    assert repo.files[events.name] == events.read_bytes()
    for name, content in repo.files.items():
        # Where things lie on this machine is nobody's business. Event files are as the training wrote them.
        assert name == events.name or str(run_dir.parent).encode() not in content, name


def test_the_card_has_the_scores_and_the_hub_reads_them(
    hub: StandInHub, train: Train, run_mosaic: RunMosaic, tmp_path: Path
) -> None:
    run_dir = train()
    scored = json.loads(run_mosaic("eval", run_dir.name, "--episodes", "7", "--json").stdout)["evaluation"]
    pushed = json.loads(run_mosaic("push", run_dir.name, "--to", "team/walker", "--private", "--json").stdout)
    assert (pushed["repo"], pushed["url"]) == ("team/walker", f"{hub.address}/team/walker")
    repo = hub.repos["team/walker"]
    assert repo.private
    text = repo.files["README.md"].decode()
    (result,) = ModelCard(text).data.eval_results
    assert (result.dataset_name, result.metric_type, result.task_type) == (
        *("CartPole-v1", "mean_reward"),
        "reinforcement-learning",
    )
    overall = scored["overall"]
    assert result.metric_value == f"{overall['mean']:.2f} +/- {overall['std']:.2f}"
    low, high = overall["interval"]
    assert f"{low:.2f} to {high:.2f}" in text and "| episodes | 7 |" in text
    assert "./mosaic pull team/walker" in text and "learning_rate = 0.00025" in text
    (tmp_path / "eval_summary.json").write_bytes(repo.files["eval_summary.json"])
    summary = read_eval_summary(tmp_path)
    assert summary is not None and summary.overall.episodes == 7
    assert summary.policy["path"] == "ppo.cleanrl_model"


def test_a_second_upload_replaces_curves_and_films_of_the_first(
    hub: StandInHub, leave: Train, run_mosaic: RunMosaic
) -> None:
    old = {"events.out.tfevents.9.host": b"old", "replay.mp4": b"old", "notes.txt": b"mine"}
    repo = hub.add(REPO, {**old, "ppo.cleanrl_model": b"old"})
    run_dir = leave()
    film = run_dir / "videos" / "episode-1.mp4"
    film.parent.mkdir()
    film.write_bytes(b"\0film")
    run_mosaic("push", "last")
    assert "events.out.tfevents.9.host" not in repo.files
    assert repo.files["notes.txt"] == b"mine"
    assert repo.files["replay.mp4"] == repo.files["videos/episode-1.mp4"] == b"\0film"
    assert len(repo.files["ppo.cleanrl_model"]) > 1000 and "ppo.policy.json" not in repo.files
    film.unlink()
    run_mosaic("push", "last")
    assert not [name for name in repo.files if name.endswith(".mp4")]


def test_a_failed_upload_fails_no_run_and_is_told_with_the_command(
    hub: StandInHub, leave: Train, run_mosaic: RunMosaic, var: Path
) -> None:
    hub.fails = {"/commit/": 403}
    run_dir = leave("--upload-model", "--hf-entity", "team")
    told = upload_of(run_dir)
    assert told["state"] == "failed" and told["problem"].count("\n") == 0
    shown = " ".join(run_mosaic("show", "last").stdout.split())
    assert "completed" in shown and f"push {run_dir.name}` does it again." in shown
    for part, status in (("preupload", 404), ("lfs/objects", 422), ("PUT /lfs/", 403)):
        hub.blobs.clear()
        hub.fails = {part: status}
        refused = run_mosaic("push", "last", check=False)
        said = refused.stderr.removeprefix("Uploading …\n")
        assert refused.returncode in (1, 2) and said.count("\n") == 1, part
        assert said.startswith("mosaic: The model team/"), part
    hub.fails = {}
    run_mosaic("push", run_dir.name)
    assert upload_of(run_dir)["state"] == "uploaded"
    assert "ppo.cleanrl_model" in hub.repos["team/CartPole-v1-ppo-seed1"].files, "as the run's config says"
    assert not holders(var, TOKEN)


def test_an_upload_that_was_killed_is_told_as_cut_off(
    hub: StandInHub, leave: Train, run_mosaic: RunMosaic
) -> None:
    hub.silent.set()
    run_dir = leave("--upload-model")
    pid = json.loads((run_dir / "hub.json").read_text())["process"]["pid"]
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert "was interrupted" in " ".join(run_mosaic("show", "last").stdout.split())
    hub.silent.clear()
    run_mosaic("push", "last")


def test_a_resumed_run_is_uploaded_and_an_evaluation_is_not(
    hub: StandInHub, train: Train, run_mosaic: RunMosaic
) -> None:
    first = train("--set", "checkpoint_every=256")
    told = run_mosaic(
        *(
            "train",
            "--resume",
            first.name,
            "--extend",
            "512",
            "--upload-model",
            "--hf-entity",
            "team",
            "--json",
        )
    )
    second = Path(json.loads(told.stdout)["run_dir"])
    assert upload_of(second)["repo"] == "team/CartPole-v1-ppo-seed1"
    about = json.loads(hub.repos["team/CartPole-v1-ppo-seed1"].files["mosaic.json"])
    assert (about["run_id"], about["step"]) == (second.name, 1024)
    run_mosaic("eval", first.name, "--episodes", "1")
    refused = run_mosaic("push", "last", check=False)
    assert refused.returncode == 2 and "is an evaluation" in refused.stderr
    refused = run_mosaic("push", f"{first.name}:best", check=False)
    assert refused.returncode == 2 and "no best model" in refused.stderr


@pytest.mark.parametrize(
    ("more", "variables", "sentence"),
    [
        ((), {"HF_TOKEN": ""}, "There is no token for the Hugging Face hub"),
        (("--dry-run",), {"HF_TOKEN": ""}, "There is no token for the Hugging Face hub"),
        (("--hf-entity", "a/b"), {}, "'a/b' cannot be a user or an organization"),
        (("--no-save-model",), {}, "save_model is off"),
        (("--extra", "hf_entity=[1]"), {}, "'extras.hf_entity' is [1], but it must be a text"),
    ],
)
def test_what_could_not_be_uploaded_is_refused_before_it_is_trained(
    more: tuple[str, ...], variables: dict[str, str], sentence: str, hub: StandInHub, run_mosaic: RunMosaic
) -> None:
    refused = run_mosaic(*TRAIN, "--upload-model", *more, env=variables, check=False)
    assert refused.returncode == 2
    assert sentence in refused.stderr and refused.stderr.count("\n") == 1
    assert not hub.asked


def test_the_names_of_cleanrl_are_taken_as_parameters_too(hub: StandInHub, run_mosaic: RunMosaic) -> None:
    how = ("--set", "upload_model=true", "--set", "hf_entity=team", "--dry-run", "--json")
    config = json.loads(run_mosaic(*TRAIN, *how).stdout)["metadata"]["worker"]["config"]
    assert (config["extras"]["upload_model"], config["extras"]["hf_entity"]) == (True, "team")
    assert "upload_model" not in config["extras"]["algo_params"]


def test_what_the_hub_refuses_is_one_sentence(hub: StandInHub, leave: Train, run_mosaic: RunMosaic) -> None:
    leave()
    for name, value, sentence in (
        ("HF_TOKEN", "hf_n0longer", "The hub refuses the token"),
        ("HF_TOKEN", READ_TOKEN, "the token may not do this"),
        ("HF_ENDPOINT", "http://127.0.0.1:9", "The hub at http://127.0.0.1:9 cannot be reached"),
        ("HF_ENDPOINT", "nonsense", "The hub at nonsense cannot be reached"),
        ("HF_HUB_OFFLINE", "1", "HF_HUB_OFFLINE"),
    ):
        refused = run_mosaic("push", "last", env={name: value}, check=False)
        said = refused.stderr.removeprefix("Uploading …\n")
        assert refused.returncode in (1, 2) and sentence in said and said.count("\n") == 1
        assert "hf_" not in refused.stderr


def test_the_login_of_the_hub_will_do(
    hub: StandInHub, leave: Train, run_mosaic: RunMosaic, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    leave()
    run_mosaic("push", "last", env={"HF_TOKEN": "", "HF_HOME": str(tmp_path)})
    assert REPO in hub.repos


def test_a_run_without_a_model_is_refused(hub: StandInHub, leave: Train, run_mosaic: RunMosaic) -> None:
    leave("--set", "without=true")
    refused = run_mosaic("push", "last", check=False)
    assert refused.returncode == 2 and "has left no model" in refused.stderr


def test_a_hostile_run_cannot_write_the_card(
    hub: StandInHub, train: Train, run_mosaic: RunMosaic, var: Path
) -> None:
    run_dir = train()
    (card,) = run_dir.glob("runs/*/ppo.policy.json")
    content: dict[str, Any] = json.loads(card.read_text())
    hostile = "x\n```\n# <script>alert(1)</script>\n---\ntags: [evil]"
    content["args"] |= {"env_id": hostile, "env_kwargs": hostile, "home": "/data/me/teacher.npz"}
    card.write_text(json.dumps(content))
    run_mosaic("push", "last", "--to", "tester/x")
    text = hub.repos["tester/x"].files["README.md"].decode()
    lines = text.splitlines()
    assert lines.count("```") == 3 and not [line for line in lines if line.startswith("# <")]
    assert "<script>" not in text.partition("## Parameters")[0].partition("---\n")[2].partition("---\n")[2]
    assert ModelCard(text).data.tags[0] == hostile
    assert "home = 'teacher.npz'" in lines and "/data/me" not in text


def test_help_and_start_import_no_client() -> None:
    code = "import sys, mosaic.cli.app as app; app.main(['--help']); print('huggingface_hub' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")
    code = "import sys, cleanrl_worker.supervisor.runtime; print('mosaic.hub.uploads' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_removed_run_ends_its_upload_quietly(
    hub: StandInHub, leave: Train, run_mosaic: RunMosaic, var: Path
) -> None:
    hub.silent.set()
    run_dir = leave("--upload-model")
    pid = json.loads((run_dir / "hub.json").read_text())["process"]["pid"]
    while not any("/commit/" in line for line in hub.asked):
        time.sleep(0.05)
    run_mosaic("rm", "last", "--yes")
    hub.silent.clear()
    deadline = time.monotonic() + PATIENCE
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert not list(VarPaths(var).runs.iterdir())
