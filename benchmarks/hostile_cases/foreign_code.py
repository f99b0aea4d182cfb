"""Code that nobody asked for: modules that a file names, and modules that lie in the caller's folder."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hostile_cases.ground import Check, Ground, expect, good, quiet, search_path

EVIL = "from pathlib import Path\nPath({mark!r}).write_text('imported')\n"
ENVIRONMENT = """import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv
gym.register("Evil-v0", CartPoleEnv, max_episode_steps=50)
"""
SHADOWS = (
    *(
        "random",
        "numpy",
        "token",
        "json",
        "types",
        "enum",
        "logging",
        "queue",
        "select",
        "signal",
        "socket",
        "string",
    ),
    *("torch", "gymnasium", "tensorboard", "yaml", "typing", "copy", "time", "cleanrl_worker", "mosaic"),
)
ARGS = {"env_id": "evilmod:Evil-v0", "seed": 1, "total_timesteps": 1000, "num_envs": 4}


def checks(ground: Ground) -> Iterator[Check]:
    """A policy card, a checkpoint and a manifest that name a module."""
    mark = ground.user / "imported.txt"
    (ground.user / "evilmod.py").write_text(EVIL.format(mark=str(mark)) + ENVIRONMENT)
    files = _make_files(ground.user)
    commands: dict[str, Callable[[str], list[str]]] = {
        "eval": lambda file: ["eval", file, "--episodes", "1"],
        "eval --dry-run": lambda file: ["eval", file, "--dry-run"],
        "eval --detach": lambda file: ["eval", file, "--detach"],
        "train --resume": lambda file: ["train", "--resume", file, "--extend", "1000", "--detach"],
        "train --resume --dry-run": lambda file: ["train", "--resume", file, "--extend", "1000", "--dry-run"],
        "play": lambda file: ["play", file],
    }
    for kind, file in files.items():
        for name, words in commands.items():
            for place, env in {
                "the current folder": {},
                "PYTHONPATH": {"PYTHONPATH": search_path(ground.user)},
            }.items():
                yield Check(
                    f"{kind}, {name}, module in {place}",
                    lambda words=words, file=file, env=env: _not_imported(ground, mark, words(file), env),
                )
    yield Check(
        "policies lists them and imports nothing", lambda: _not_imported(ground, mark, ["policies"], {})
    )
    yield Check("a module that the user names is imported", lambda: _imported(ground, mark))


def _make_files(user: Path) -> dict[str, str]:
    import torch

    weights = {
        **{
            f"critic.{at}.weight": torch.zeros(size)
            for at, size in ((0, (64, 4)), (2, (64, 64)), (4, (1, 64)))
        },
        **{f"critic.{at}.bias": torch.zeros(size) for at, size in ((0, 64), (2, 64), (4, 1))},
        **{
            f"actor.{at}.weight": torch.zeros(size)
            for at, size in ((0, (64, 4)), (2, (64, 64)), (4, (2, 64)))
        },
        **{f"actor.{at}.bias": torch.zeros(size) for at, size in ((0, 64), (2, 64), (4, 2))},
    }
    torch.save(weights, user / "evil.cleanrl_model")
    card = {"format": 1, "algo": "ppo", "args": ARGS, "step": 1000, "normaliser": None}
    (user / "evil.policy.json").write_text(json.dumps(card))
    content = {"format": 2, "algo": "ppo", "step": 400, "folder": "x", "args": ARGS, "parts": {}}
    array, data = io.BytesIO(), io.BytesIO()
    np.save(array, np.frombuffer(json.dumps(content).encode(), dtype=np.uint8))
    with zipfile.ZipFile(data, "w") as file:
        file.writestr("__shape__.npy", array.getvalue())
    (user / "step-000000000400.npz").write_bytes(data.getvalue())
    manifest = user / "foreign" / "runs" / "x"
    manifest.mkdir(parents=True)
    torch.save(weights, manifest / "ppo.cleanrl_model")
    (user / "foreign" / "analytics.json").write_text(
        json.dumps({"env_id": "evilmod:Evil-v0", "algo": "ppo", "seed": 1})
    )
    return {
        "a card": "evil.cleanrl_model",
        "a checkpoint": "step-000000000400.npz",
        "a manifest": "foreign/runs/x/ppo.cleanrl_model",
    }


def _not_imported(ground: Ground, mark: Path, words: list[str], env: dict[str, str]) -> None:
    quiet(ground.mosaic(*words, env=env))
    # A run that was started all the same gets the time to import.
    for run in ground.client().runs():
        ground.until(run.run_id, lambda one: one["status"] == "TERM")
    imported = mark.exists()
    mark.unlink(missing_ok=True)
    expect(not imported, "its module was imported")


def _imported(ground: Ground, mark: Path) -> None:
    good(ground.mosaic("train", "ppo", "evilmod:Evil-v0", "--steps", "1000", "--dry-run"))
    expect(mark.exists(), "it was not imported")
    mark.unlink()


def shadow_checks(ground: Ground) -> Iterator[Check]:
    """Files in the caller's folder that are called like modules which a training needs."""
    for name in SHADOWS:
        yield Check(f"{name}.py in the folder: --dry-run", lambda name=name: _dry_run(ground, name))
    yield Check("all of them in the folder: a training completes", lambda: _trains(ground))
    yield Check("all of them in the folder: an evaluation completes", lambda: _evaluates(ground))
    yield Check(
        "the window's own command line too", lambda: good(ground.mosaic("runs", cwd=_folder(ground, SHADOWS)))
    )
    yield Check("a script finds the modules beside it", lambda: _own_module(ground))
    yield Check("an environment of the folder is found", lambda: _own_environment(ground))


def _folder(ground: Ground, names: tuple[str, ...]) -> Path:
    folder = ground.root / f"shadows-{len(names)}-{names[0]}"
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / f"{name}.py").write_text("raise RuntimeError('the wrong module was imported')\n")
    return folder


def _dry_run(ground: Ground, name: str) -> None:
    good(
        ground.mosaic(
            "train", "ppo", "CartPole-v1", "--steps", "1000", "--dry-run", cwd=_folder(ground, (name,))
        )
    )


def _trains(ground: Ground) -> None:
    words = ("train", "ppo", "CartPole-v1", "--steps", "600", "--set", "num_steps=64", "--json")
    done = good(ground.mosaic(*words, cwd=_folder(ground, SHADOWS), timeout=240))
    expect('"completed"' in done.out, done.seen())


def _evaluates(ground: Ground) -> None:
    done = ground.mosaic(
        "eval", "last", "--episodes", "2", "--json", cwd=_folder(ground, SHADOWS), timeout=240
    )
    expect('"completed"' in good(done).out, done.seen())


def _own_module(ground: Ground) -> None:
    (ground.user / "helper_of_mine.py").write_text("WORD = 'found it'\n")
    (ground.user / "uses_helper.py").write_text("import helper_of_mine\nprint(helper_of_mine.WORD)\n")
    run = ground.finish("uses_helper.py", "CartPole-v1")
    expect(run["outcome"] == "completed", f"{run['reason']}")


def _own_environment(ground: Ground) -> None:
    (ground.user / "mine.py").write_text(ENVIRONMENT.replace("Evil", "Mine"))
    words: tuple[Any, ...] = ("ppo", "mine:Mine-v0", "--steps", "600", "--set", "num_steps=64")
    run = ground.finish(*words, seconds=240)
    expect(run["outcome"] == "completed", f"{run['reason']}")
