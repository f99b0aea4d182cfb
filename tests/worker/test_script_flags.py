"""The flags of other people's scripts are read from their source, and said as their parsers take them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cleanrl_worker.config.scripts import ScriptFlags, find_source, read_flags
from cleanrl_worker.supervisor.offers import CATALOG
from mosaic.client import Client
from mosaic.contract.errors import UserError
from support.runs import SCRIPTS, script_config

ARGPARSE, TYRO = SCRIPTS / "argparse_script.py", SCRIPTS / "tyro_script.py"


def described(script: Path, folder: Path, **values: Any) -> dict[str, Any]:
    asked = {"run_id": "r", "algo": str(script), "env_id": "None-v0", "seed": 1, **values}
    return CATALOG.describe(asked, None, folder, ())


def flags_after(script: Path, told: dict[str, Any]) -> list[str]:
    command: list[str] = told["command"]
    return command[command.index(str(script)) + 1 :]


@pytest.mark.parametrize("value", [True, False])
def test_each_manner_of_a_boolean_reaches_argparse(value: bool, tmp_path: Path) -> None:
    names = ("anneal_lr", "clip", "quiet", "norm")
    extras = {"algo_params": {**dict.fromkeys(names, value), "learning_rate": "0.5"}, "cuda": value}
    words = flags_after(ARGPARSE, described(ARGPARSE, tmp_path, total_timesteps=9, extras=extras))
    done = subprocess.run([sys.executable, str(ARGPARSE), *words], capture_output=True, text=True, check=True)
    got = json.loads(done.stdout)
    assert {name: got[name] for name in names} == dict.fromkeys(names, value)
    assert got["no_cuda"] is not value
    assert (got["env_id"], got["total_timesteps"], got["learning_rate"]) == ("None-v0", 9, 0.5)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"import sys\ndef f(:\n", r"line 2: invalid syntax\.$"),
        (b"print('a'\n", r"line 1: '\(' was never closed\.$"),
        (b"x = '\xff'\n", r"line 1: .*utf-8.*\.$"),
    ],
)
def test_a_script_with_an_error_of_syntax_is_refused_before_anything_starts(
    source: bytes, said: str, tmp_path: Path
) -> None:
    script = tmp_path / "mine.py"
    script.write_bytes(source)
    with pytest.raises(UserError, match=f"^mine.py is not a script that Python can run: {said}"):
        described(script, tmp_path)
    # Another interpreter may read what this one does not.
    CATALOG.check({"run_id": "r", "algo": str(script), "env_id": "None-v0"}, "/usr/bin/python3", tmp_path)


def test_a_switched_off_boolean_reaches_tyro(client: Client) -> None:
    config = script_config("tyro_script.py", steps=100, params={"anneal": "false"})
    run = client.wait(client.submit(config).run_id, timeout=120)
    assert run.outcome == "completed", run.reason
    assert list(client.metrics(run.run_id).series("charts/annealed").values) == [0.0]


def test_a_script_keeps_its_own_budget(tmp_path: Path) -> None:
    told = described(ARGPARSE, tmp_path)
    assert flags_after(ARGPARSE, told) == ["--env_id=None-v0", "--seed=1"]
    assert told["config"]["total_timesteps"] == 7000
    unknown = tmp_path / "mine.py"
    unknown.write_text("import sys; print(sys.argv)")
    told = described(unknown, tmp_path)
    assert flags_after(unknown, told) == ["--env-id=None-v0", "--seed=1"]
    # The daemon and the worker read it again.
    assert CATALOG.check(told["config"], None, None)["total_timesteps"] == 0


@pytest.mark.parametrize(
    ("script", "extras", "said"),
    [
        (
            TYRO,
            {"foo_bar": 1},
            r"tyro_script.py has no parameter 'foo_bar'; it takes env_id",
        ),
        (TYRO, {"algo_params": {"learning_rat": 1}}, "did you mean 'learning_rate'"),
        (
            ARGPARSE,
            {"algo_params": {"learning_rate": "fast"}},
            "is 'fast', but must be a number",
        ),
        (ARGPARSE, {"wandb_projekt": "p"}, "did you mean 'wandb_project'"),
        (ARGPARSE, {"eval_episodes": 5}, "'extras.eval_episodes' is a setting of mode policy_eval"),
    ],
)
def test_the_dry_run_proves_every_flag(script: Path, extras: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said):
        described(script, tmp_path, extras=extras)


@pytest.mark.parametrize(
    "more",
    [
        "args, rest = parser.parse_known_args()",
        "from lab import add_more; add_more(parser); parser.parse_args()",
        "parser.add_argument(NAME); parser.parse_args()",
        "parser.add_subparsers(); parser.parse_args()",
    ],
)
def test_flags_that_may_come_from_elsewhere_are_not_refused(more: str, tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(f"import argparse\nparser = argparse.ArgumentParser()\n{more}\n")
    flags = read_flags(script)
    assert (flags.parser, flags.complete) == ("argparse", False)
    assert flags.check("mine.py", "anything", 3) == 3
    assert flags.words("anything", False) == ["--anything=False"]


def test_fields_of_a_base_class_count_and_those_of_another_file_leave_it_open(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    text = (
        "import tyro\nclass Base:\n  lr: float = 0.1\nclass Args(Base):\n  clip: bool = True\ntyro.cli(Args)"
    )
    script.write_text(text)
    flags = read_flags(script)
    assert (list(flags.flags), flags.complete) == (["lr", "clip"], True)
    script.write_text(text.replace("(Base)", "(Elsewhere)"))
    assert not read_flags(script).complete
    script.write_text("def broken(")
    assert read_flags(script) == ScriptFlags()


def test_the_environment_may_have_an_older_name(tmp_path: Path) -> None:
    script = tmp_path / "old.py"
    script.write_text(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--gym-id')\np.parse_args()"
    )
    assert flags_after(script, described(script, tmp_path)) == ["--gym-id=None-v0"]
    with pytest.raises(UserError, match="has no parameter 'seed'"):
        described(script, tmp_path, seed=7)


def test_a_module_is_found_without_importing_it(tmp_path: Path) -> None:
    package = tmp_path / "lab"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError")
    (package / "study.py").touch()
    assert find_source("lab.study", None, [tmp_path]) == package / "study.py"
    assert find_source("lab.nothing", None, [tmp_path]) is None


def test_one_of_ours_in_an_interpreter_without_mosaic_is_refused(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    asked = {"run_id": "r", "algo": "ppo", "env_id": "CartPole-v1", "total_timesteps": 9}
    with pytest.raises(UserError, match="does not have MOSAIC, which 'ppo' is a part of: leave --python out"):
        CATALOG.check(asked, str(tmp_path / "bare/bin/python"), tmp_path)
