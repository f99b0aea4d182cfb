"""The doors of configs: what a run is asked for with, as data and as files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from cleanrl_worker.config.worker_config import load_worker_config, parse_worker_config
from cleanrl_worker.supervisor.offers import CATALOG
from fuzz_doors.knocking import EVIL_MODULE, Door
from fuzz_doors.shapes import as_text, damaged, json_texts, json_values, mutated
from mosaic.contract.run_config import fill_in, validate_train_run_config

RUN_ID = "01M7GQSDCWR4EQKC56C5QQCNPM"
SCRIPT = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--env-id", default="CartPole-v1")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--lr", type=float, default=0.1)
parser.parse_args()
"""


def worker_configs(user: Path) -> list[dict[str, Any]]:
    """Right configs of every mode."""
    base = {"run_id": RUN_ID, "algo": "ppo", "env_id": "CartPole-v1", "total_timesteps": 1000, "seed": 1}
    modes = [
        {},
        {"algo_params": {"learning_rate": 0.001, "num_envs": 4}, "env_kwargs": {}, "notes": "a note"},
        {"tensorboard_dir": "tb", "track_wandb": False, "cuda": False, "seed_override": 3, "gamma": 0.9},
        {"fastlane_video_mode": "grid", "fastlane_grid_limit": 4, "fastlane_slot": 0, "fastlane_only": True},
        {"curriculum_schedule": [{"env_id": "CartPole-v1", "steps": 100}, {"env_id": "CartPole-v1"}]},
        {"mode": "resume_training", "checkpoint_path": str(user / "step-000000000400.npz")},
        {"mode": "policy_eval", "policy_path": str(user / "ppo.cleanrl_model"), "eval_episodes": 3},
        {"mode": "interactive", "policy_path": str(user / "ppo.cleanrl_model")},
        {"requirements": ["base"], "schema_id": "x", "schema_version": 1, "supports_pause": True},
    ]
    found: list[dict[str, Any]] = [{**base, "extras": extras} for extras in modes]
    for algo in (
        "script.py",
        "script.sh",
        "pipe.py",
        "pipe.sh",
        "folder.py",
        "binary.py",
        "binary.sh",
        "deep.py",
    ):
        found.append({**base, "algo": str(user / algo), "extras": {"lr": 0.1}})
        found.append({"run_id": RUN_ID, "algo": str(user / algo), "extras": {}})
    for name in ("pipe.npz", "binary.npz", "folder.npz", "pipe.cleanrl_model", "binary.cleanrl_model"):
        for extras in (
            {"mode": "resume_training", "checkpoint_path": str(user / name)},
            {"mode": "policy_eval", "policy_path": str(user / name)},
        ):
            found += [{**base, "extras": extras}, {"run_id": RUN_ID, "extras": extras}]
    return found


def run_configs(user: Path) -> list[dict[str, Any]]:
    """Right run configs, the worker's inside them."""
    whole = {
        "run_name": "a run",
        "resources": {"cpus": 1, "memory_mb": 100, "gpus": {"requested": 0, "mandatory": False}},
        "artifacts": {"tensorboard": {"enabled": True}, "wandb": {"enabled": False}},
        "schedule": {"max_wallclock_minutes": 10, "max_restarts": 1, "priority": 0},
        "tags": ["one", "two"],
        "environment": {"NAME": "value"},
        "metadata": {"worker": {"type": "cleanrl", "module": None, "python": None}, "ui": {"notes": "n"}},
    }
    found = []
    for config in worker_configs(user):
        made = json.loads(json.dumps(whole))
        made["metadata"]["worker"]["config"] = config
        found.append(made)
    found.append({"run_name": "short", "metadata": {"worker": {"type": "cleanrl", "config": {}}}})
    return found


def make_user_folder(user: Path) -> None:
    """Files that a config may name: right ones, and ones that are no files, do not end or do not read."""
    user.mkdir(parents=True)
    (user / "script.py").write_text(SCRIPT)
    (user / "script.sh").write_text("#!/bin/bash\n# @description a script\n# @phases 2\necho done\n")
    (user / "deep.py").write_text("x = " + "(" * 500 + ")" * 500)
    for suffix in (".py", ".sh", ".npz", ".cleanrl_model"):
        (user / f"binary{suffix}").write_bytes(bytes(range(256)) * 20)
        (user / f"folder{suffix}").mkdir()
        os.mkfifo(user / f"pipe{suffix}")
    (user / f"{EVIL_MODULE}.py").write_text("raise SystemExit('imported')\n")


def config_doors(folder: Path, var: Path, user: Path) -> list[Door]:
    """Run configs and worker configs. `user` is where they are asked for from."""

    def run_config(payload: Any) -> None:
        accepted = validate_train_run_config(payload)
        filled = fill_in(accepted, {"RUN_ID": RUN_ID, "VAR_TENSORBOARD_DIR": "/tensorboard"})
        # What is accepted can be stored, and is the same when it is read again.
        stored = json.dumps(filled.as_json(), allow_nan=False, ensure_ascii=False).encode()
        assert validate_train_run_config(json.loads(stored)) == filled

    def worker_config(payload: Any) -> None:
        config = parse_worker_config(payload, user)
        CATALOG.check(config.as_json(), None, None)

    def config_file(data: bytes) -> None:
        path = folder / "config.json"
        path.write_bytes(data)
        load_worker_config(path)

    files = st.one_of(
        damaged([as_text(one).encode() for one in (*worker_configs(user)[:9], *run_configs(user)[:9])]),
        json_texts.map(lambda text: text.encode(errors="replace")),
        st.binary(max_size=200),
    )
    return [
        Door(
            "run config",
            "values of a run config replaced, removed and added at any depth",
            st.one_of(mutated(run_configs(user)), json_values),
            run_config,
            folder,
        ),
        Door(
            "worker config",
            "the same of a worker's config, in every mode; scripts and models that are pipes, folders, noise",
            st.one_of(mutated(worker_configs(user)), mutated(run_configs(user)), json_values),
            worker_config,
            folder,
        ),
        Door("worker config file", "files that hold broken or strange JSON", files, config_file, folder),
    ]
