"""The script form: heads are read, scripts run to their end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from gym_gui.context import Context
from gym_gui.ui.widgets.cleanrl_forms import CleanRLScriptForm
from mosaic.client import Client
from support.forms import WAIT_MS, check, form_context, open_form, submit, type_into
from support.own_algorithm import write_example
from support.runs import SCRIPTS

HEAD = """#!/bin/sh
# @description Says what it was told
# @phases 2
# @total_timesteps 12,000
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "says.sh"
    path.write_text(HEAD + 'echo "told $@"\n')
    return path


@pytest.fixture
def context(var: Path, qapp: object) -> Iterator[Context]:
    with form_context(var, live=True) as made:
        yield made


def choose(qtbot: QtBot, form: CleanRLScriptForm, named: str) -> None:
    form.choose(named)
    qtbot.waitUntil(lambda: named in str((form.presenter.head or {}).get("path")), timeout=WAIT_MS)


def test_shipped_scripts_are_listed_with_what_their_heads_say(qtbot: QtBot, context: Context) -> None:
    form = open_form(qtbot, context, CleanRLScriptForm)
    names = [row.key for row in form.source_picker.list.model.rows]
    assert "quick_test.sh" in names
    choose(qtbot, form, "quick_test.sh")
    told = dict(form.presenter.told())
    assert told["Phases"] == "2" and told["Steps"] == "16,384"
    assert form.steps.editor.placeholderText() == "16,384"  # type: ignore[attr-defined]
    check(qtbot, form)
    assert form.report is not None and form.report.ok, form.report


def test_a_wrong_head_is_told_before_anything_runs(qtbot: QtBot, context: Context, script: Path) -> None:
    script.write_text(HEAD + "# @phases 3\n")
    form = open_form(qtbot, context, CleanRLScriptForm, {"script": str(script)})
    assert "twice in its head" in form.footer.told


def test_parameters_are_written_one_a_line(qtbot: QtBot, context: Context, script: Path) -> None:
    form = open_form(qtbot, context, CleanRLScriptForm, {"script": str(script)})
    form.flags.editor.setPlainText("num-envs = 4\nanneal_lr = false\n")  # type: ignore[attr-defined]
    assert form.presenter.flags() == {"num_envs": "4", "anneal_lr": False}
    form.flags.editor.setPlainText("num-envs")  # type: ignore[attr-defined]
    assert "name = value" in form.flags.help.text() and "name = value" in form.footer.told


def test_a_shell_script_runs_to_its_end(qtbot: QtBot, var: Path, context: Context, script: Path) -> None:
    form = open_form(qtbot, context, CleanRLScriptForm, {"script": str(script)})
    form.flags.editor.setPlainText("word = hello")  # type: ignore[attr-defined]
    qtbot.waitUntil(lambda: context.link.state == "alive", timeout=WAIT_MS)
    (run,) = submit(qtbot, form)
    with Client.connect(var) as client:
        ended = client.wait(run.run_id, timeout=90)
        said = b"".join(client.logs(run.run_id)).decode()
    assert ended.outcome == "completed" and ended.worker_config["total_timesteps"] == 12_000
    assert "told --word=hello" in said


def test_what_is_typed_is_what_runs_however_soon_it_is_submitted(
    qtbot: QtBot, var: Path, context: Context, script: Path
) -> None:
    form = open_form(qtbot, context, CleanRLScriptForm)
    choose(qtbot, form, "quick_test.sh")
    type_into(qtbot, form.source_picker.name, str(script))
    form.seeds.edited.emit("seeds")
    assert form.source_picker.name.text() == str(script), "what is being typed stays"
    qtbot.waitUntil(lambda: context.link.state == "alive", timeout=WAIT_MS)
    (run,) = submit(qtbot, form)
    assert run.worker_config["total_timesteps"] == 12_000
    type_into(qtbot, form.source_picker.name, f"{script}.none")
    form.check()
    qtbot.waitUntil(lambda: "says.sh.none" in form.footer.told, timeout=WAIT_MS)
    assert form.source_picker.name.text() == f"{script}.none"
    with Client.connect(var) as client:
        assert client.wait(run.run_id, timeout=90).outcome == "completed"


def test_a_python_script_needs_an_environment_and_runs(qtbot: QtBot, var: Path, context: Context) -> None:
    form = open_form(qtbot, context, CleanRLScriptForm, {"script": str(SCRIPTS / "steps.py")})
    assert "needs an environment" in form.footer.told
    type_into(qtbot, form.env_id.editor, "None-v0")
    type_into(qtbot, form.steps.editor, "3")
    qtbot.waitUntil(lambda: context.link.state == "alive", timeout=WAIT_MS)
    (run,) = submit(qtbot, form)
    with Client.connect(var) as client:
        assert client.wait(run.run_id, timeout=90).outcome == "completed"


def test_an_algorithm_of_ones_own_shows_its_parameters(
    qtbot: QtBot, context: Context, tmp_path: Path
) -> None:
    path = write_example(tmp_path)
    form = open_form(qtbot, context, CleanRLScriptForm, {"script": str(path)})
    assert dict(form.presenter.told())["Algorithm"].startswith("Advantage actor-critic")
    assert form.steps.editor.placeholderText() == "500,000"  # type: ignore[attr-defined]
    assert form.sheet.isVisibleTo(form) and not form.flags.isVisibleTo(form)
    type_into(qtbot, form.env_id.editor, "CartPole-v1")
    type_into(qtbot, form.sheet.fields["gamma"].editor, "2")
    assert "gamma" in form.footer.told
    type_into(qtbot, form.sheet.fields["gamma"].editor, "0.9")
    assert form.presenter.flags() == {"gamma": 0.9}
    check(qtbot, form)
    assert form.report is not None and form.report.ok, form.report
    choose(qtbot, form, "quick_test.sh")
    assert form.flags.isVisibleTo(form) and not form.sheet.isVisibleTo(form)
    path.write_text("SPEC = 1 / 0")
    form.choose(str(path))
    qtbot.waitUntil(lambda: "ZeroDivisionError" in form.footer.told, timeout=WAIT_MS)


def test_a_key_is_in_no_file_of_the_run(qtbot: QtBot, var: Path, context: Context) -> None:
    form = open_form(qtbot, context, CleanRLScriptForm, {"script": str(SCRIPTS / "defines_main.py")})
    type_into(qtbot, form.env_id.editor, "None-v0")
    form.tracking.wandb.click()
    type_into(qtbot, form.tracking.fields["wandb_api_key"].editor, "very-secret-0123")
    form.resources.open()
    # Another interpreter has packages of its own, so that none are asked for here.
    type_into(qtbot, form.resources.fields["python"].editor, sys.executable)
    qtbot.waitUntil(lambda: context.link.state == "alive", timeout=WAIT_MS)
    (run,) = submit(qtbot, form)
    with Client.connect(var) as client:
        ended = client.wait(run.run_id, timeout=90)
    assert ended.config["artifacts"]["wandb"] == {"enabled": True}
    assert "very-secret" not in str(ended.as_json())
    for path in filter(Path.is_file, var.rglob("*")):
        assert b"very-secret" not in path.read_bytes(), path
