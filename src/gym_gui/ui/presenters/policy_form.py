"""The policy form: how good a trained policy is, on the environment that it was trained on or another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gym_gui.models.form_choices import EnvironmentList, PolicyList, Requirement, missing
from gym_gui.models.form_state import Field, FormState
from gym_gui.models.run_settings import ALL, RunSettings
from gym_gui.ui.presenters.form import ChoosingForm, EvalOrder, FormSource
from mosaic.contract.capabilities import PolicyCatalog, PolicyFacts
from mosaic.contract.errors import UserError

BATCH = 50
PLAYING = (
    Field("batch_size", "int", BATCH, "results are written after each", "Episodes per batch", minimum=1),
    Field("episodes", "count", None, "all batches together", "Episodes", (), 1, None, True, "one batch"),
    Field("seed", "int", None, "episode n starts from 1,000,000 + seed + n", "Seed", (), 0, None, True),
    Field(
        "gamma", "float", None, "of the discounted return", "Discount", (), 0.0, 1.0, True, "that of training"
    ),
    Field("num_envs", "int", None, "played together", "Environments", (), 1, None, True, "what is worth it"),
    Field(
        "max_episode_steps",
        "count",
        None,
        "then it is cut off",
        "Longest episode",
        (),
        1,
        None,
        True,
        "30,000",
    ),
    Field("max_seconds", "float", None, "then no episode begins", "Seconds", (), 0.1, None, True, "no limit"),
)
SWITCHES = (
    Field("repeat", "bool", False, label="Repeat until it is cancelled"),
    Field("deterministic", "bool", True, label="Take the best action, draw none"),
    Field("video", "bool", False, label="Record videos of some episodes"),
)


class PolicyForm(ChoosingForm[PolicyFacts]):
    """Holds the chosen policy. Its environment is locked until `override` is on."""

    title = "Evaluate policy"

    def __init__(self, source: FormSource, found: PolicyList) -> None:
        super().__init__(source)
        self.found = found
        self.facts: PolicyFacts | None = None
        self.run = FormState(
            [
                Field("policy", label="Policy", help="a file, a run's folder or a run's id"),
                Field("override", "bool", False, label="Override environment"),
                Field("env_id", label="Environment"),
                Field("algo", label="Algorithm", optional=True, default=None),
                *PLAYING,
                *SWITCHES,
                *ALL,
            ]
        )
        self._environments: dict[str, EnvironmentList] = {}

    def states(self) -> Sequence[FormState]:
        return (self.run,)

    def read(self, named: str) -> PolicyFacts:
        """The policy that a path or an id means. Reads files: not for the thread of the window."""
        catalog = self.source.catalog
        if not isinstance(catalog, PolicyCatalog):
            raise UserError(f"{self.source.capabilities.display_name} cannot play policies.")
        return catalog.policy(named, self.source.folder, self.source.var)

    def take(self, found: PolicyFacts | None) -> None:
        """Evaluate this; None while nothing is chosen."""
        self.facts, self.trouble = found, ""
        if found is not None:
            self.run.put("policy", found.path)
        if not self.overrides:
            self.run.put("env_id", found.env_id if found and found.env_id else "")

    def set_override(self, on: bool) -> None:
        """Unlock the environment, or take the policy's own again."""
        self.run.put("override", on)
        self.take(self.facts)

    @property
    def overrides(self) -> bool:
        return self.run.is_on("override")

    @property
    def asks_algo(self) -> bool:
        """Whether the file does not say which algorithm it is of."""
        return self.facts is not None and self.facts.algo is None

    @property
    def locked(self) -> bool:
        """Whether the environment is the policy's own; a file that names none leaves it open."""
        return not self.overrides and not (self.facts is not None and self.facts.env_id is None)

    def algo(self) -> str:
        return (self.facts.algo if self.facts and self.facts.algo else "") or self.run.said("algo")

    @property
    def environments(self) -> EnvironmentList:
        """What the policy's algorithm can play."""
        algo = self.algo() or self.source.algorithms[0]
        if algo not in self._environments:
            self._environments[algo] = self.source.environments_for(algo)
        return self._environments[algo]

    def take_installed(self, installed: Mapping[str, bool]) -> None:
        super().take_installed(installed)
        self._environments.clear()

    def about(self) -> str:
        """What was chosen, in one line."""
        facts = self.facts
        if facts is None:
            return self.trouble or "Choose a policy on the left, or name a file or a run."
        parts = [facts.algo or "an unknown algorithm", facts.env_id or "an unknown environment"]
        if facts.step is not None:
            parts.append(f"{facts.step:,} steps")
        if facts.seed is not None:
            parts.append(f"seed {facts.seed}")
        return " · ".join(parts)

    def hint(self, name: str) -> str:
        """What holds while a field is empty."""
        if name == "seed" and self.facts is not None and self.facts.seed is not None:
            return f"{self.facts.seed}, its own"
        return self.run.fields[name].placeholder

    def about_environment(self) -> str:
        """The line under the environment."""
        if self.facts is None:
            return ""
        if self.locked:
            return "The one it was trained on"
        choice = self.environments.find(self.run.said("env_id"))
        return choice.about if choice else "Not in the catalog: the check asks the training interpreter"

    def problems(self) -> list[str]:
        if self.facts is None:
            return [self.trouble or "No policy is chosen: choose one."]
        if self.asks_algo and not self.algo():
            return ["The file does not say which algorithm it is of: name one."]
        if not self.run.said("env_id"):
            return ["No environment is chosen: name one."]
        return super().problems()

    def missing(self) -> list[Requirement]:
        return missing(self._needs(), self.source.installed)

    def _needs(self) -> Iterator[tuple[str, str]]:
        yield self.source.extra_of(self.run.said("env_id")), self.run.said("env_id")
        if self.run.is_on("video"):
            yield "video", "Recording a video"

    def primary(self) -> str:
        if self.run.is_on("repeat"):
            return "Evaluate until cancelled"
        if self.run.problem("episodes") or self.run.problem("batch_size"):
            return "Evaluate"
        return f"Play {self.run.whole('episodes') or self.run.whole('batch_size'):,} episodes"

    def order(self) -> EvalOrder:
        problems = self.problems()
        if problems or self.facts is None:
            raise UserError(problems[0])
        run = self.run
        batch = run.whole("batch_size")
        return EvalOrder(
            policy=self.facts.path,
            settings=RunSettings.of(run),
            episodes=run.whole("episodes") or batch,
            batch_size=batch,
            repeat=run.is_on("repeat"),
            deterministic=run.is_on("deterministic"),
            gamma=run.number("gamma"),
            seed=run.whole("seed"),
            env_id=None if self.locked else run.said("env_id"),
            algo=self.algo() if self.asks_algo else None,
            capture_video=run.is_on("video"),
            num_envs=run.whole("num_envs"),
            max_episode_steps=run.whole("max_episode_steps"),
            max_seconds=run.number("max_seconds"),
            worker_type=self.source.capabilities.worker_type,
            folder=self.source.folder,
            var=self.source.var,
        )

    def load(self, prefill: Mapping[str, Any]) -> str:
        """The policy or run that the form was opened for; empty for none."""
        named = str(prefill.get("policy") or prefill.get("run_dir") or prefill.get("run_id") or "")
        self.run.put("policy", named)
        return named
