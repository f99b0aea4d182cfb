"""The files of a run's folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mosaic.analytics.artifacts import Artifact, list_artifacts, manifest_problems, read_losses
from mosaic.analytics.store import RunMetrics

LAYOUT = {
    "analytics.json": "manifest",
    "provenance.json": "provenance",
    "eval_summary.json": "other",
    "logs/events.jsonl": "log",
    "logs/cleanrl.stdout.log": "log",
    "runs/CartPole-v1__ppo__1__0/events.out.tfevents.1.host.2.0": "events",
    "runs/CartPole-v1__ppo__1__0/ppo.cleanrl_model": "model",
    "runs/CartPole-v1__ppo__1__0/notes.txt": "other",
    "checkpoints/000100/weights.bin": "checkpoint",
    "videos/eval/0.mp4": "video",
    "videos/rl-video-episode-0.meta.json": "other",
    "videos/rl-video-episode-0.mp4": "video",
    "tensorboard_eval/events.out.tfevents.1.host.2.1": "events",
}


def test_each_file_gets_its_kind(tmp_path: Path) -> None:
    for path in [*LAYOUT, "supervisor.lock", "bridge/sitecustomize.py"]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("12345")
    (tmp_path / "link").symlink_to(tmp_path / "analytics.json")
    artifacts = list_artifacts(tmp_path)
    assert {artifact.path: artifact.kind for artifact in artifacts} == LAYOUT
    assert [artifact.path for artifact in artifacts] == sorted(LAYOUT)
    manifest = tmp_path / "analytics.json"
    assert artifacts[0] == Artifact("analytics.json", "manifest", 5, manifest.stat().st_mtime)


def test_a_folder_that_is_gone_holds_nothing(tmp_path: Path) -> None:
    assert list_artifacts(tmp_path / "gone") == []


def test_the_room_needs_nothing_heavy() -> None:
    code = (
        "import sys, mosaic.analytics.headline, mosaic.analytics.event_files, mosaic.analytics.artifacts\n"
        "heavy = {'numpy', 'torch', 'tensorboard', 'google.protobuf', 'pandas', 'grpc', 'PySide6'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_losses_tell_what_computes_them_and_why(tmp_path: Path) -> None:
    told = {"agent": {"by": "kernel", "why": "its gradients match the written loss", "more": 1}}
    (tmp_path / "provenance.json").write_text(json.dumps({"losses": told}))
    assert read_losses(tmp_path) == {"agent": {key: told["agent"][key] for key in ("by", "why")}}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"losses": 3}', '{"losses": {"agent": {"by": "torch"}}}'])
def test_what_nobody_has_told_of_losses_is_nothing(text: str, tmp_path: Path) -> None:
    assert read_losses(tmp_path) == {}
    (tmp_path / "provenance.json").write_text(text)
    assert read_losses(tmp_path) == {}


def test_a_manifest_that_leads_nowhere_is_told_wherever_the_run_is_read(tmp_path: Path) -> None:
    manifest, model = tmp_path / "analytics.json", tmp_path / "runs" / "ppo.cleanrl_model"
    held = RunMetrics.open(tmp_path)
    assert held.problems == []
    model.parent.mkdir()
    model.touch()
    artifacts = {"models": ["runs/ppo.cleanrl_model"], "checkpoints": ["checkpoints/step-1.npz"]}
    manifest.write_text(json.dumps({"artifacts": artifacts}))
    assert not held.refresh() and held.problems == [], "checkpoints are cleaned up"
    films = {"videos": ["/nowhere/1.mp4", "/nowhere/2.mp4"], "tensorboard": {"event_files": ["a"]}}
    manifest.write_text(json.dumps({"artifacts": {**artifacts, **films}}))
    assert held.refresh()
    (said,) = held.problems
    assert said.startswith("The manifest analytics.json names a and 2 more, not there any more")


@pytest.mark.parametrize("content", ["[1,", "[]", "null", "\xff"])
def test_a_damaged_manifest_is_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "analytics.json").write_text(content, encoding="latin-1")
    (said,) = manifest_problems(tmp_path)
    assert said.startswith("The manifest analytics.json cannot be read (") and "\n" not in said


@pytest.mark.parametrize(
    "artifacts", [None, [], {"models": "x", "videos": [1, None, "a\0b"]}, {"tensorboard": []}]
)
def test_what_a_manifest_of_others_holds_is_no_fault(tmp_path: Path, artifacts: object) -> None:
    (tmp_path / "analytics.json").write_text(json.dumps({"artifacts": artifacts}))
    assert manifest_problems(tmp_path) == []
