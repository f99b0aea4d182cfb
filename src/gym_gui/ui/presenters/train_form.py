"""The train form: an algorithm, its parameters, an environment or a curriculum, and one run for each seed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gym_gui.models.form_choices import EnvironmentList, Requirement, StageTable, missing
from gym_gui.models.form_state import Field, FormState, about_seeds, parse_seeds, seeds_problem, show_seeds
from gym_gui.models.run_settings import ALL, RunSettings, json_object, load_settings
from gym_gui.ui.presenters.form import FormPresenter, FormSource, Group, ParameterSheet, TrainOrder
from mosaic.contract.errors import UserError

FIRST_ENVIRONMENT = "CartPole-v1"


class TrainForm(FormPresenter):
    """Holds what is chosen; each algorithm keeps the changes that were made to its parameters."""

    title = "Train"

    def __init__(self, source: FormSource, kept: Sequence[str] = (), sections: Sequence[Group] = ()) -> None:
        """`kept` are parameters that stand beside what a run keeps; `sections` are folded away."""
        super().__init__(source)
        self.sheet = ParameterSheet(source.catalog, kept, sections)
        self.algorithms = list(source.algorithms)
        self.algo = self.algorithms[0]
        self.run = FormState(
            [
                Field("env_id", default=FIRST_ENVIRONMENT, label="Environment"),
                Field("total_timesteps", "count", 1, "all environments together", "Steps", minimum=1),
                Field("seeds", default="1", label="Seeds"),
                Field(
                    "env_kwargs", "json", "", "a JSON object with arguments of the environment", "Arguments"
                ),
                *ALL,
            ]
        )
        self.stages = StageTable(source.catalog.curricula())
        self._environments: dict[str, EnvironmentList] = {}
        self.choose(self.algo)

    def states(self) -> Sequence[FormState]:
        return (self.run, self.params)

    @property
    def params(self) -> FormState:
        """The parameters of the chosen algorithm."""
        return self.sheet.state(self.algo)

    @property
    def environments(self) -> EnvironmentList:
        """What there is for the chosen algorithm."""
        if self.algo not in self._environments:
            self._environments[self.algo] = self.source.environments_for(self.algo)
        return self._environments[self.algo]

    def fitting_ids(self) -> list[str]:
        """The environments on which the algorithm can train."""
        return [choice.env_id for choice in self.environments.matching()]

    def choose(self, algo: str) -> None:
        """Another algorithm: its own budget, and an environment that fits it if the last one does not."""
        self.algo = algo
        self.run.set_default("total_timesteps", self.source.catalog.default_timesteps(algo))
        now = self.environments.find(self.run.said("env_id"))
        if now is not None and not now.fits:
            self.run.put("env_id", self._own_environment())

    def _own_environment(self) -> str:
        """The environment that the algorithm has by default, or another one that can be used at once."""
        parameters = self.source.catalog.parameters(self.algo)
        named = next((str(one.default) for one in parameters if one.name == "env_id"), "")
        own = self.environments.find(named)
        if own is not None and own.fits and not own.missing:
            return named
        return next((one.env_id for one in self.environments.matching()), named)

    def take_installed(self, installed: Mapping[str, bool]) -> None:
        super().take_installed(installed)
        self._environments.clear()

    def seeds(self) -> tuple[int, ...]:
        return parse_seeds(self.run.text("seeds"))

    def about_seeds(self) -> str:
        return about_seeds(self.run.text("seeds"))

    def seeds_problem(self) -> str:
        return seeds_problem(self.run.text("seeds"))

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
        env_id = self.env_id()
        if not env_id:
            return "No environment is chosen: choose one, or a curriculum."
        choice = self.environments.find(env_id)
        return choice.misfit if choice else ""

    def problems(self) -> list[str]:
        found = [self.environment_problem(), self.seeds_problem(), self.stages.problem(), *super().problems()]
        return [problem for problem in found if problem]

    def missing(self) -> list[Requirement]:
        return missing(self._needs(), self.source.installed) if not self._foreign() else []

    def _foreign(self) -> bool:
        """Another interpreter has packages of its own."""
        return bool(self.run.said("python"))

    def _needs(self) -> Iterator[tuple[str, str]]:
        for env_id in {self.env_id(): None, **{row.env_id.strip(): None for row in self.stages.rows}}:
            yield self.source.extra_of(env_id), env_id
        if "capture_video" in self.params.fields and self.params.is_on("capture_video"):
            yield "video", "Recording a video"
        if self.run.is_on("wandb"):
            yield "wandb", "Tracking with Weights & Biases"

    def speed_key(self) -> tuple[str, str]:
        return self.algo, self.env_id()

    def primary(self) -> str:
        if self.seeds_problem():
            return "Train"
        count = len(self.seeds())
        return "Train" if count == 1 else f"Train {count} runs"

    def order(self) -> TrainOrder:
        problems = self.problems()
        if problems:
            raise UserError(problems[0])
        settings = RunSettings.of(self.run)
        extras = dict(settings.extras)
        kwargs, schedule = json_object(self.run.text("env_kwargs")), self.stages.schedule()
        extras |= {"env_kwargs": kwargs} if kwargs else {}
        extras |= {"curriculum_schedule": schedule} if schedule else {}
        return TrainOrder(
            algo=self.algo,
            env_id=None if schedule else self.env_id(),
            total_timesteps=self.run.whole("total_timesteps"),
            seeds=self.seeds(),
            params=self.params.changes(),
            extras=extras,
            settings=settings,
            worker_type=self.source.capabilities.worker_type,
            folder=self.source.folder,
        )

    def load(self, prefill: Mapping[str, Any]) -> None:
        """Fill the form: from the `config` of a run, or from `algo`, `env_id`, `total_timesteps`, `seeds`."""
        config = prefill.get("config") or {}
        asked = {**config.get("metadata", {}).get("worker", {}).get("config", {}), **prefill}
        if asked.get("algo") in self.algorithms:
            self.choose(asked["algo"])
        extras = asked.get("extras") or {}
        self.stages.load(extras.get("curriculum_schedule"))
        if asked.get("env_id"):
            self.run.put("env_id", asked["env_id"])
        if asked.get("total_timesteps"):
            self.run.put("total_timesteps", int(asked["total_timesteps"]))
        seeds = asked.get("seeds") or ([asked["seed"]] if asked.get("seed") is not None else [])
        if seeds:
            self.run.put("seeds", show_seeds(seeds))
        if extras.get("env_kwargs"):
            self.run.put("env_kwargs", json.dumps(extras["env_kwargs"]))
        for name, value in (extras.get("algo_params") or {}).items():
            if name in self.params.fields:
                self.params.put(name, value)
        load_settings(self.run, config)
