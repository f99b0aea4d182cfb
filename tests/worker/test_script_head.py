"""The head of a shell script, and the scripts that are found by name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cleanrl_worker.config.scripts import resolve_script
from cleanrl_worker.config.shell_scripts import (
    FOLDER_VARIABLE,
    SHIPPED,
    ScriptHead,
    check_shell_script,
    find_shell_script,
    list_scripts,
    read_head,
)
from cleanrl_worker.config.worker_config import parse_worker_config
from cleanrl_worker.supervisor.inspection import inspect
from conftest import RunMosaic
from mosaic.contract.errors import NotFoundError, UserError

HEAD = """#!/usr/bin/env bash
# A comment like any other.

# @description Three rooms, one after the other
#@env_family   minigrid
# @phases 3
# @total_timesteps 1_500,000
# @author Ada Lovelace
# @license MIT
echo now it begins
# @phases 9
"""


def write(folder: Path, text: str, name: str = "own.sh") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_head_is_the_comments_before_the_first_command(tmp_path: Path) -> None:
    assert read_head(write(tmp_path, HEAD)) == ScriptHead(
        description="Three rooms, one after the other",
        env_family="minigrid",
        phases=3,
        total_timesteps=1_500_000,
        author="Ada Lovelace",
        interpreter=("/usr/bin/env", "bash"),
    )


@pytest.mark.parametrize("text", ["", "echo hello\n", "# just a comment\n", "#!\n", "\n\n"])
def test_a_head_may_say_nothing(tmp_path: Path, text: str) -> None:
    assert read_head(write(tmp_path, text)) == ScriptHead()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("# @phases three", "'@phases' in the head of {path} is 'three', but it must be a whole number"),
        (
            "# @phases 0",
            "'@phases' in the head of {path} is '0', but it must be a whole number of at least 1",
        ),
        ("# @phases ²", "'@phases' in the head of {path} is '²'"),
        ("# @total_timesteps -5", "'@total_timesteps' in the head of {path} is '-5'"),
        ("# @total_timesteps 1e6", "'@total_timesteps' in the head of {path} is '1e6'"),
        ("# @description", "'@description' in the head of {path} is empty"),
        ("# @phase 3", "{path} has '@phase' in its head; did you mean 'phases'?"),
        ("# @author A\n# @author B", "{path} has '@author' twice in its head: keep one."),
    ],
)
def test_a_wrong_head_is_refused_in_one_sentence(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path, f"{line}\n")
    with pytest.raises(UserError) as refused:
        read_head(path)
    assert message.format(path=path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_shipped_scripts_say_all_of_themselves_and_need_no_jq() -> None:
    shipped = [script for script in list_scripts() if script["shipped"]]
    assert [script["name"] for script in shipped] == [
        "babyai_goto_curriculum.sh",
        "doorkey_curriculum.sh",
        "quick_test.sh",
    ]
    for script in shipped:
        assert script.pop("problem") is None and len(script) > 3 and None not in script.values()
        text = Path(script["path"]).read_text()
        assert "jq" not in text
        assert text.count("\ntrain_phase ") == script["phases"]
        subprocess.run(["bash", "-n", script["path"]], check=True)


def test_a_script_is_found_by_path_then_in_the_users_folder_then_among_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_shell_script("quick_test.sh", tmp_path) == (SHIPPED / "quick_test.sh").resolve()
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv(FOLDER_VARIABLE, str(own))
    hiding = write(own, HEAD, "quick_test.sh")
    assert find_shell_script("quick_test.sh", tmp_path) == hiding
    assert list_scripts()[0]["path"] == str(hiding)
    here = write(tmp_path, HEAD, "quick_test.sh")
    assert find_shell_script("quick_test.sh", tmp_path) == here
    with pytest.raises(NotFoundError, match=r"did you mean 'quick_test.sh'\?"):
        find_shell_script("quik_test.sh", tmp_path)
    with pytest.raises(NotFoundError, match="nowhere/at_all\\.sh does not exist"):
        find_shell_script("nowhere/at_all.sh", tmp_path)


def test_environment_and_budget_come_from_the_head_unless_they_are_given(tmp_path: Path) -> None:
    write(tmp_path, HEAD)
    asked = {"run_id": "r", "algo": "own.sh"}
    config = parse_worker_config(asked, tmp_path)
    assert (config.env_id, config.total_timesteps) == ("minigrid", 1_500_000)
    config = parse_worker_config({**asked, "env_id": "CartPole-v1", "total_timesteps": 9}, tmp_path)
    assert (config.env_id, config.total_timesteps) == ("CartPole-v1", 9)
    write(tmp_path, "echo\n")
    assert parse_worker_config(asked, tmp_path).env_id == "none"


def test_the_interpreter_is_the_first_lines_or_bash(tmp_path: Path) -> None:
    def interpreter(text: str) -> tuple[str, ...]:
        write(tmp_path, text)
        script = resolve_script(parse_worker_config({"run_id": "r", "algo": "own.sh"}, tmp_path), tmp_path)
        assert (script.kind, script.is_file, script.ours) == ("shell", True, False)
        return script.head.interpreter

    assert interpreter("echo\n") == ("bash",)
    assert interpreter("#!/bin/sh -eu\necho\n") == ("/bin/sh", "-eu")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("if then\n", "bash cannot read the script"),
        ("#!/no/such/shell\necho\n", "is for /no/such/shell, which is not installed"),
    ],
)
def test_a_script_that_cannot_run_is_refused_before_it_starts(
    tmp_path: Path, text: str, message: str
) -> None:
    write(tmp_path, text)
    with pytest.raises(UserError, match=message):
        inspect({"run_id": "r", "algo": "own.sh"}, None, tmp_path)


def test_scripts_are_listed_with_what_is_wrong_with_them(run_mosaic: RunMosaic, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    write(own, "# @phases many\n", "broken.sh")
    listed = json.loads(run_mosaic("scripts", "--json", env={FOLDER_VARIABLE: str(own)}).stdout)
    assert listed[0]["name"] == "broken.sh"
    assert "'@phases'" in listed[0]["problem"]
    quick = listed[-1]
    assert (quick["name"], quick["phases"], quick["shipped"]) == ("quick_test.sh", 2, True)
    table = run_mosaic("scripts", env={FOLDER_VARIABLE: str(own)}).stdout
    assert "doorkey_curriculum.sh" in table


def test_a_phase_outside_of_a_run_is_refused(run_mosaic: RunMosaic, tmp_path: Path) -> None:
    refused = run_mosaic("phase", "1", "rooms", check=False)
    assert (refused.returncode, "There is no run here" in refused.stderr) == (2, True)
    gone = run_mosaic("phase", "1", check=False, env={"MOSAIC_RUN_DIR": str(tmp_path / "gone")})
    assert (gone.returncode, "does not exist" in gone.stderr) == (2, True)
    wrong = run_mosaic("phase", "0", check=False, env={"MOSAIC_RUN_DIR": str(tmp_path)})
    assert (wrong.returncode, "'0' is not a positive whole number" in wrong.stderr) == (2, True)


def test_a_program_is_not_a_script(tmp_path: Path) -> None:
    path = tmp_path / "tool.sh"
    for data in (Path(sys.executable).read_bytes()[:100_000], b"\0" * 100_000, b"\xff\xfe\0\n\0"):
        path.write_bytes(data)
        with pytest.raises(UserError, match=r"tool\.sh is a program, not text that a shell can read\.$"):
            read_head(path)


def test_a_script_in_another_encoding_with_a_mistake_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "old.sh"
    path.write_bytes(b"#!/bin/bash\nif \xe4\xf6 \xff ) then\n")
    with pytest.raises(UserError, match=r"^bash cannot read the script: [^\n]*$"):
        check_shell_script(path, read_head(path))
