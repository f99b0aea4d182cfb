"""The probe tells the light half what the training interpreter knows."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import cleanrl_worker.portable.probe
from cleanrl_worker.schemas.environments import EnvironmentEntry, find_environment
from cleanrl_worker.supervisor.inspection import inspect

PROBE = Path(cleanrl_worker.portable.probe.__file__)

OWN_ENV = """
import os, gymnasium
print("hello from an import")
os.system("echo hello from a child")

class Pixels(gymnasium.spaces.Box):
    pass

class Own(gymnasium.Env):
    action_space = gymnasium.spaces.MultiDiscrete([2, 3])

    def __init__(self, size=4):
        at, key = Pixels(-1.0, 1.0, (size,)), gymnasium.spaces.Text(3)
        self.observation_space = gymnasium.spaces.Dict({"at": at, "key": key})

gymnasium.register("Own-v0", Own, max_episode_steps=9)
"""


def ask(folder: Path, *words: str) -> tuple[int, Any]:
    run = subprocess.run(
        [sys.executable, str(PROBE), *words], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert len(run.stdout.splitlines()) == 1, run.stderr
    return run.returncode, json.loads(run.stdout)


def test_a_known_environment_is_described_as_in_the_catalog(tmp_path: Path) -> None:
    for env_id in ("CartPole-v1", "ALE/Pong-v5", "PongNoFrameskip-v4", "MiniGrid-Empty-5x5-v0"):
        code, entry = ask(tmp_path, "env", env_id)
        assert code == 0
        known = find_environment(env_id)
        assert known is not None
        assert EnvironmentEntry(env_id, **entry, backends=known.backends) == known


def test_an_own_environment_is_imported_and_its_chatter_kept_away(tmp_path: Path) -> None:
    (tmp_path / "registry.py").write_text(OWN_ENV)
    code, entry = ask(tmp_path, "env", "registry:Own-v0", "--kwargs", '{"size": 6}')
    assert code == 0
    assert entry == {
        "family": "custom",
        "extra": None,
        "observation": {
            "kind": "dict",
            "spaces": {
                "at": {"kind": "box", "shape": [6], "dtype": "float32", "low": -1.0, "high": 1.0},
                "key": {"kind": "text"},
            },
        },
        "action": {"kind": "multi_discrete", "nvec": [2, 3]},
        "max_episode_steps": 9,
        "draws": False,
    }


def test_what_cannot_be_made_gets_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    for words, said in (
        (["Nowhere-v0"], "Nowhere"),
        (["missing:Own-v0"], "module 'missing' cannot be imported"),
        (["broken:Own-v0"], "importing 'broken' fails with ZeroDivisionError: division by zero."),
        (["CartPole-v1", "--kwargs", '{"size": 6}'], "unexpected keyword argument 'size'"),
        (["CartPole-v1", "--kwargs", "{"], "not JSON"),
        (["CartPole-v1", "--kwargs", "[]"], "must be a JSON object"),
    ):
        code, result = ask(tmp_path, "env", *words)
        assert code == 2
        assert list(result) == ["error"]
        assert said in result["error"]
        assert "\n" not in result["error"]


def test_a_module_is_found_without_running_it(tmp_path: Path) -> None:
    package = tmp_path / "loud"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('ran')\n")
    (package / "part.py").write_text("raise SystemExit('ran')\n")
    assert ask(tmp_path, "module", "loud.part") == (0, {"found": True})
    for name in ("loud.other", "quiet", "loud.part.deeper", "json.nothing"):
        assert ask(tmp_path, "module", name) == (0, {"found": False})


def test_probe_reads_in_old_pythons_and_imports_nothing_of_ours() -> None:
    tree = ast.parse(PROBE.read_text("utf-8"), feature_version=(3, 8))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= {*sys.stdlib_module_names, "gymnasium"}


SCRIPT = """
import sys
import gymnasium
assert "probe" not in sys.modules
print(gymnasium.make(sys.argv[1].partition("=")[2]).observation_space.shape)
"""


def test_a_script_that_imports_no_family_gets_its_environment(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    launcher = PROBE.with_name("launcher.py")
    command = [
        sys.executable,
        launcher,
        tmp_path / "script.py",
        "--env-id=BreakoutNoFrameskip-v4",
        "--seed=1",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "(210, 160, 3)\n"), done.stderr


def test_keyword_arguments_that_change_the_spaces_are_not_judged_by_the_catalog(tmp_path: Path) -> None:
    config = {"run_id": "r", "algo": "ppo", "env_id": "ALE/Pong-v5", "total_timesteps": 9}
    config["extras"] = {"env_kwargs": {"obs_type": "ram"}}
    told = inspect(config, None, tmp_path).entry
    assert told is not None and told.observation["shape"] == [128]
    assert inspect(config, None, None).entry is None, "the daemon asks nobody, and knows only the pictures"
