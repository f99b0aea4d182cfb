"""The CleanRL worker's forms: the one that trains, and what of the worker's parameters stands where."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from gym_gui.models.form_choices import EnvironmentList, ListRow, StageTable, missing, policy_row
from gym_gui.models.form_state import Field, show_seeds
from gym_gui.models.run_settings import RunSettings, json_object, load_settings
from gym_gui.models.words import mode_of
from gym_gui.ui.presenters.choosing_forms import PolicyForm, ResumeForm, ScriptForm
from gym_gui.ui.presenters.form import FormPresenter, FormSource, Group, ParameterSheet
from mosaic.client import RunRecord, train_config
from mosaic.contract.capabilities import PolicyCatalog, WorkerCapabilities
from mosaic.contract.errors import UserError

FIRST_ENVIRONMENT = "CartPole-v1"
KEPT = ("save_model", "capture_video")
SECTIONS = (
    Group(
        "Value function and clipping",
        ("vf_coef", "clip_vloss", "max_grad_norm", "norm_adv", "target_kl", "shared_trunk"),
    ),
    Group("Evaluation and checkpoints", ("eval_episodes", "eval_every", "checkpoint_every")),
    Group("Computing", ("env_backend", "kernels", "torch_deterministic")),
)
FREE = ("save_model", "capture_video", "eval_episodes", "eval_every", "checkpoint_every")
"""Parameters that leave the training itself alone: a resumed run may have others."""
_MOST_POLICIES = 1000
"""The newest are offered; any other can be named by its path."""


class TrainForm(FormPresenter):
    """An algorithm, its parameters, an environment or a curriculum, and one run for each seed."""

    build = staticmethod(train_config)

    def __init__(self, source: FormSource, kept: Sequence[str] = (), sections: Sequence[Group] = ()) -> None:
        """`kept` are parameters that stand beside what a run keeps; `sections` are folded away."""
        fields = [
            Field("env_id", default=FIRST_ENVIRONMENT, label="Environment"),
            Field("total_timesteps", "count", 1, "all environments together", "Steps", minimum=1),
            Field("seeds", default="1", label="Seeds"),
            Field("env_kwargs", "json", "", "a JSON object with arguments of the environment", "Arguments"),
        ]
        super().__init__(source, fields)
        self.sheet = ParameterSheet(source.catalog, kept, sections)
        self.algorithms = list(source.algorithms)
        self.stages = StageTable(source.catalog.curricula())
        self.choose(self.algorithms[0])

    @property
    def environments(self) -> EnvironmentList:
        """What there is for the chosen algorithm."""
        return self.environments_of(self.algo)

    def fitting_ids(self) -> list[str]:
        """The environments on which the algorithm can train."""
        return [choice.env_id for choice in self.environments.matching()]

    def choose(self, algo: str) -> None:
        """Another algorithm: its own budget, and an environment that fits it if the last one does not."""
        self.algo, self.params = algo, self.sheet.state(algo)
        self.run.set_default("total_timesteps", self.source.catalog.default_timesteps(algo))
        now = self.environments.find(self.run.said("env_id"))
        if now is not None and not now.fits:
            self.run.put("env_id", self._own_environment())

    def _own_environment(self) -> str:
        """The environment that the algorithm has by default, or another one that can be used at once.

        Where the algorithm itself has to be installed first, its own environment can be installed with it.
        """
        parameters = self.source.catalog.parameters(self.algo)
        named = next((str(one.default) for one in parameters if one.name == "env_id"), "")
        own = self.environments.find(named)
        lacking = missing(self._own_needs(), self.source.installed)
        if own is not None and own.fits and (lacking or not own.missing):
            return named
        return next(iter(self.fitting_ids()), named)

    def _own_needs(self) -> Iterator[tuple[str, str]]:
        backend = self.params.said("env_backend") if "env_backend" in self.params.fields else "auto"
        for name in self.source.catalog.requirements(self.algo, backend):
            yield name, self.algo

    def env_id(self) -> str:
        """The environment that is trained for: with a curriculum its last stage."""
        return self.stages.target or self.run.said("env_id")

    def about_environment(self) -> str:
        """The line under the environment."""
        if self.stages.rows:
            return "The last stage of the curriculum"
        env_id = self.run.said("env_id")
        choice = self.environments.find(env_id)
        if choice is not None:
            return choice.about
        return "Not in the catalog: the check asks the training interpreter" if env_id else "Choose one"

    def environment_problem(self) -> str:
        """Why this environment will not do."""
        if not self.env_id():
            return "No environment is chosen: choose one, or a curriculum."
        choice = self.environments.find(self.env_id())
        return choice.misfit if choice else ""

    def problems(self) -> list[str]:
        found = [self.environment_problem(), self.seeds_problem(), self.stages.problem(), *super().problems()]
        return [problem for problem in found if problem]

    def needs(self) -> Iterator[tuple[str, str]]:
        yield from self._own_needs()
        yield from super().needs()
        for row in self.stages.rows:
            yield self.source.extra_of(row.env_id.strip()), row.env_id.strip()

    def speed(self, runs: Iterable[RunRecord]) -> float | None:
        same = (self.algo, self.env_id(), "train")
        fitting = [
            run
            for run in runs
            if (run.worker_config.get("algo"), run.worker_config.get("env_id"), mode_of(run)) == same
            and run.headline.get("sps")
        ]
        newest = max(fitting, key=lambda run: run.submitted_at, default=None)
        return None if newest is None else float(newest.headline["sps"])

    def primary(self) -> str:
        return "Train" if self.count() == 1 else f"Train {self.count()} runs"

    def asked(self, settings: RunSettings) -> dict[str, Any]:
        extras = dict(settings.extras)
        kwargs, schedule = json_object(self.run.text("env_kwargs")), self.stages.schedule()
        extras |= {"env_kwargs": kwargs} if kwargs else {}
        extras |= {"curriculum_schedule": schedule} if schedule else {}
        return {
            "algo": self.algo,
            "env_id": None if schedule else self.env_id(),
            "total_timesteps": self.run.whole("total_timesteps"),
            "params": self.params.changes(),
            "extras": extras,
        }

    def load(self, prefill: Mapping[str, Any]) -> None:
        """From the `config` of a run, or from `algo`, `env_id`, `total_timesteps`, `seeds`."""
        config = prefill.get("config") or {}
        asked = {**config.get("metadata", {}).get("worker", {}).get("config", {}), **prefill}
        if asked.get("algo") in self.algorithms:
            self.choose(asked["algo"])
        extras = asked.get("extras") or {}
        self.stages.load(extras.get("curriculum_schedule"))
        seeds = asked.get("seeds") or ([asked["seed"]] if asked.get("seed") is not None else [])
        known: dict[str, Any] = {
            "env_id": asked.get("env_id"),
            "total_timesteps": int(asked.get("total_timesteps") or 0),
            "seeds": show_seeds(seeds),
            "env_kwargs": json.dumps(extras["env_kwargs"]) if extras.get("env_kwargs") else "",
        }
        for name, value in known.items():
            if value:
                self.run.put(name, value)
        for name, value in (extras.get("algo_params") or {}).items():
            if name in self.params.fields:
                self.params.put(name, value)
        load_settings(self.run, config)


class CleanRLForms:
    """Makes the presenters of the worker's forms. Reads files: not for the thread of the window."""

    def __init__(self, capabilities: WorkerCapabilities, var: Path) -> None:
        self._source = FormSource.read(capabilities, var)

    def form(self, purpose: str, prefill: Mapping[str, Any]) -> FormPresenter:
        """The presenter of one form, filled as far as `prefill` goes."""
        forms: dict[str, Callable[[], FormPresenter]] = {
            "train": lambda: TrainForm(self._source, KEPT, SECTIONS),
            "resume": lambda: ResumeForm(self._source, self._policies(), FREE),
            "policy": lambda: PolicyForm(self._source, self._policies()),
            "script": lambda: ScriptForm(self._source, SECTIONS),
        }
        if purpose not in forms:
            raise UserError(f"There is no form to '{purpose}'.")
        made = forms[purpose]()
        made.load(prefill)
        return made

    def _policies(self) -> list[ListRow]:
        catalog = self._source.catalog
        found = catalog.policies(self._source.var) if isinstance(catalog, PolicyCatalog) else ()
        return [policy_row(facts) for facts in islice(found, _MOST_POLICIES)]
