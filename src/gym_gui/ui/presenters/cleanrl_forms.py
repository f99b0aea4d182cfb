"""The CleanRL worker's forms: what of its parameters stands where."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from gym_gui.models.form_choices import PolicyList
from gym_gui.ui.presenters.form import FormPresenter, FormSource, Group
from gym_gui.ui.presenters.policy_form import PolicyForm
from gym_gui.ui.presenters.resume_form import ResumeForm
from gym_gui.ui.presenters.script_form import ScriptForm
from gym_gui.ui.presenters.train_form import TrainForm
from mosaic.contract.capabilities import PolicyCatalog, WorkerCapabilities
from mosaic.contract.errors import UserError

KEPT = ("save_model", "capture_video")
SECTIONS = (
    Group(
        "Value function and clipping",
        ("vf_coef", "clip_vloss", "max_grad_norm", "norm_adv", "target_kl", "shared_trunk"),
    ),
    Group("Evaluation and checkpoints", ("eval_episodes", "eval_every", "checkpoint_every")),
    Group("Computing", ("kernels", "torch_deterministic")),
)
FREE = ("save_model", "capture_video", "eval_episodes", "eval_every", "checkpoint_every")
"""Parameters that leave the training itself alone: a resumed run may have others."""

_MOST_POLICIES = 1000
"""The newest are offered; any other can be named by its path."""


class CleanRLForms:
    """Makes the presenters of the worker's forms. Reads files: not for the thread of the window."""

    def __init__(self, capabilities: WorkerCapabilities, var: Path) -> None:
        self._source = FormSource.read(capabilities, var)

    def form(self, purpose: str, prefill: Mapping[str, Any]) -> FormPresenter:
        """The presenter of one form, filled as far as `prefill` goes."""
        if purpose == "train":
            return self.train(prefill)
        if purpose == "resume":
            return self.resume(prefill)
        if purpose == "policy":
            return self.policy(prefill)
        if purpose == "script":
            return self.script(prefill)
        raise UserError(f"There is no form to '{purpose}'.")

    def train(self, prefill: Mapping[str, Any]) -> TrainForm:
        made = TrainForm(self._source, KEPT, SECTIONS)
        made.load(prefill)
        return made

    def resume(self, prefill: Mapping[str, Any]) -> ResumeForm:
        made = ResumeForm(self._source, self._policies(), FREE)
        made.choose(made.load(prefill))
        return made

    def policy(self, prefill: Mapping[str, Any]) -> PolicyForm:
        made = PolicyForm(self._source, self._policies())
        made.choose(made.load(prefill))
        return made

    def script(self, prefill: Mapping[str, Any]) -> ScriptForm:
        made = ScriptForm(self._source, SECTIONS)
        made.choose(made.load(prefill))
        return made

    def _policies(self) -> PolicyList:
        catalog = self._source.catalog
        if not isinstance(catalog, PolicyCatalog):
            return PolicyList(())
        return PolicyList(islice(catalog.policies(self._source.var), _MOST_POLICIES))
