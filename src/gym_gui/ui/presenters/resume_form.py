"""The resume form: a new run that goes on from a checkpoint, with the parameters that it was trained with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gym_gui.models.form_choices import PolicyList, Requirement, missing
from gym_gui.models.form_state import Field, FormState, show
from gym_gui.models.run_settings import ALL, RunSettings
from gym_gui.ui.presenters.form import ChoosingForm, FormSource, ResumeOrder, parameter_state
from mosaic.contract.capabilities import CheckpointFacts, ResumingCatalog
from mosaic.contract.errors import UserError

FINISH, EXTEND, TOTAL = HOW = ("finish", "extend", "total")
HOW_WORDS = {
    FINISH: "Finish the steps that are left",
    EXTEND: "Train so many steps more",
    TOTAL: "Train up to so many steps",
}


class ResumeForm(ChoosingForm[CheckpointFacts]):
    """Holds what is chosen to go on from. Only parameters in `free` may differ from the checkpoint's."""

    title = "Resume"

    def __init__(self, source: FormSource, found: PolicyList, free: Sequence[str]) -> None:
        super().__init__(source)
        self.found = found
        self._free = free
        self.facts: CheckpointFacts | None = None
        self.run = FormState(
            [
                Field("checkpoint", label="Checkpoint", help="a file, a run's folder or a run's id"),
                Field("how", default=FINISH, label="How far", choices=HOW),
                Field("extend", "count", 100_000, "on top of its old budget", "More steps", minimum=1),
                Field("total_timesteps", "count", 500_000, "counted from its first", "Steps", minimum=1),
                Field("algo", label="Algorithm", optional=True, default=None),
                Field("env_id", label="Environment", optional=True, default=None),
                *ALL,
            ]
        )
        self.params = FormState([])

    def states(self) -> Sequence[FormState]:
        return (self.run, self.params)

    def read(self, named: str) -> CheckpointFacts:
        """What lies behind a path or an id. Reads the whole file: not for the thread of the window."""
        catalog = self.source.catalog
        if not isinstance(catalog, ResumingCatalog):
            raise UserError(f"{self.source.capabilities.display_name} cannot go on from checkpoints.")
        return catalog.checkpoint(named, self.source.folder)

    def take(self, found: CheckpointFacts | None) -> None:
        """Go on from this; None while nothing is chosen."""
        self.facts, self.trouble = found, ""
        self.show_parameters()
        if found is None:
            return
        self.run.reset("how")
        self.run.put("checkpoint", found.path)
        self.run.set_default("how", TOTAL if found.step is None else EXTEND if _is_done(found) else FINISH)
        algo = self.algo()
        if found.step is None and algo:
            self.run.set_default("total_timesteps", self.source.catalog.default_timesteps(algo))
        elif found.total_timesteps:
            self.run.set_default("total_timesteps", found.total_timesteps)

    def show_parameters(self) -> None:
        """Offer what may differ: of a checkpoint little, of a model, with which training begins anew, all."""
        algo, facts = self.algo(), self.facts
        if not algo or facts is None:
            self.params = FormState([])
            return
        free = self._free if facts.step is not None else ()
        self.params = parameter_state(self.source.catalog, algo, facts.args, free)

    def algo(self) -> str:
        """What it is of: by its own word, else by what was typed."""
        return (self.facts.algo if self.facts and self.facts.algo else "") or self.run.said("algo")

    def env_id(self) -> str:
        return (self.facts.env_id if self.facts and self.facts.env_id else "") or self.run.said("env_id")

    @property
    def asks_what_it_is(self) -> bool:
        """Whether the file does not say which algorithm it is of."""
        return self.facts is not None and self.facts.algo is None

    def hows(self) -> list[tuple[str, str]]:
        """The ways to go on that this checkpoint has."""
        whole = self.facts is None or self.facts.step is not None
        return [(how, HOW_WORDS[how]) for how in (HOW if whole else (TOTAL,))]

    def fixed(self) -> list[tuple[str, str]]:
        """The parameters that stay as they were."""
        if self.facts is None or self.facts.step is None:
            return []
        own = {one.name for one in self.source.catalog.parameters(self.algo()) if not one.runtime_only}
        named = [name for name in self.facts.args if name in own and name not in self.params.fields]
        return [(name, show(self.facts.args[name]) or "none") for name in named]

    def about_watch(self) -> str:
        """What can be watched and is kept, in one line."""
        run = self.run
        live = "no live view" if run.said("live_mode") == "off" else "live view"
        kept = [run.fields[name].title for name in ("tensorboard", "wandb") if run.is_on(name)]
        return " · ".join([live, *kept])

    def about(self) -> str:
        """What was chosen, in one line."""
        facts = self.facts
        if facts is None:
            return self.trouble or "Choose a checkpoint on the left, or name a file or a run."
        what = f"{facts.algo or 'an unknown algorithm'} on {facts.env_id or 'an unknown environment'}"
        if facts.step is None:
            return f"The weights of {what}: training begins anew with them."
        return f"{what}, at step {facts.step:,} of {facts.total_timesteps or 0:,}"

    def problems(self) -> list[str]:
        if self.facts is None:
            return [self.trouble or "Nothing is chosen to go on from: choose a checkpoint."]
        if self.asks_what_it_is and not (self.algo() and self.env_id()):
            return [
                f"{Path(self.facts.path).name} does not say what it is of: name algorithm and environment."
            ]
        return super().problems()

    def missing(self) -> list[Requirement]:
        return [] if self.run.said("python") else missing(self._needs(), self.source.installed)

    def _needs(self) -> Iterator[tuple[str, str]]:
        yield self.source.extra_of(self.env_id()), self.env_id()
        if "capture_video" in self.params.fields and self.params.is_on("capture_video"):
            yield "video", "Recording a video"
        if self.run.is_on("wandb"):
            yield "wandb", "Tracking with Weights & Biases"

    def primary(self) -> str:
        if self.facts is None:
            return "Resume"
        how = self.run.said("how")
        if how == EXTEND and not self.run.problem("extend"):
            return f"Train {self.run.whole('extend'):,} steps more"
        return "Finish the run" if how == FINISH else "Go on training"

    def order(self) -> ResumeOrder:
        problems = self.problems()
        if problems or self.facts is None:
            raise UserError(problems[0])
        how = self.run.said("how")
        asks = self.asks_what_it_is
        return ResumeOrder(
            checkpoint=self.facts.path,
            settings=RunSettings.of(self.run),
            params=self.params.changes(),
            total_timesteps=self.run.whole("total_timesteps") if how == TOTAL else None,
            extend=self.run.whole("extend") if how == EXTEND else None,
            algo=self.algo() if asks else None,
            env_id=self.env_id() if asks else None,
            worker_type=self.source.capabilities.worker_type,
            folder=self.source.folder,
        )

    def load(self, prefill: Mapping[str, Any]) -> str:
        """The checkpoint, model or run that the form was opened for; empty for none."""
        named = str(prefill.get("checkpoint") or prefill.get("run_dir") or prefill.get("run_id") or "")
        self.run.put("checkpoint", named)
        return named


def _is_done(facts: CheckpointFacts) -> bool:
    """Whether no step of the budget is left, counted in steps of all environments together."""
    together = int(facts.args.get("num_envs") or 1)
    return (facts.step or 0) // together >= (facts.total_timesteps or 0) // together
