"""Train, evaluate and resume, each from its form, each to the end of its run."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from gym_gui.ui.widgets.cleanrl_forms import CleanRLPolicyForm, CleanRLResumeForm, CleanRLTrainForm
from mosaic.client import Client
from support.forms import WAIT_MS, form_context, open_form, pick, submit, type_into


def test_a_policy_is_trained_evaluated_and_trained_on(qtbot: QtBot, var: Path, qapp: object) -> None:
    with form_context(var, live=True) as context, Client.connect(var) as client:
        qtbot.waitUntil(lambda: context.link.state == "alive", timeout=WAIT_MS)
        train = open_form(qtbot, context, CleanRLTrainForm, {"total_timesteps": 1024})
        type_into(qtbot, train.sheet.field("eval_episodes").editor, "0")
        (trained,) = submit(qtbot, train)
        done = client.wait(trained.run_id, timeout=120)
        assert done.outcome == "completed", done.reason

        prefill = {"run_id": trained.run_id, "run_dir": done.run_dir}
        policy = open_form(qtbot, context, CleanRLPolicyForm, prefill)
        assert policy.environment.box.currentText() == "CartPole-v1" and not policy.environment.isEnabled()
        type_into(qtbot, policy.fields["batch_size"].editor, "3")
        assert policy.footer.submit.text() == "Play 3 episodes"
        (evaluated,) = submit(qtbot, policy)
        ended = client.wait(evaluated.run_id, timeout=120)
        assert ended.outcome == "completed", ended.reason
        assert ended.worker_config["extras"]["eval_batch_size"] == 3

        resume = open_form(qtbot, context, CleanRLResumeForm, prefill)
        assert resume.how.currentData() == "extend", "it has no steps left"
        type_into(qtbot, resume.extend.editor, "512")
        assert resume.footer.submit.text() == "Train 512 steps more"
        assert ("learning_rate", "0.00025") in resume.presenter.fixed()
        (resumed,) = submit(qtbot, resume)
        gone_on = client.wait(resumed.run_id, timeout=120)
        assert gone_on.outcome == "completed", gone_on.reason
        assert gone_on.worker_config["total_timesteps"] == 1536
        assert resume.report is not None and "Continues from step 1,024" in resume.report.sentence
        pick(resume.how, "Finish the remaining steps")
        assert resume.footer.submit.text() == "Finish the run"
