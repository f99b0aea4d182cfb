"""The forms about one thing in a file: a policy to evaluate, a checkpoint to go on from, a script to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from gym_gui.models.form_choices import EnvironmentList, ListRow
from gym_gui.models.form_state import Field, FormState, problem_in, show
from gym_gui.models.run_settings import RunSettings
from gym_gui.ui.presenters.form import ChoosingForm, FormSource, Group, ParameterSheet, parameter_state
from mosaic.client import eval_config, resume_config, train_config
from mosaic.contract.capabilities import (
    CheckpointFacts,
    PolicyCatalog,
    PolicyFacts,
    ResumingCatalog,
    ScriptCatalog,
)
from mosaic.contract.errors import UserError
from mosaic.contract.paths import named_path
from mosaic.tracking import TITLES

F = TypeVar("F", bound=PolicyFacts | CheckpointFacts)

PLAYING = (
    Field("batch_size", "int", 50, "results are written after each", "Episodes per batch", minimum=1),
    Field.maybe("episodes", "count", "all batches together", "Episodes", "one batch", minimum=1),
    Field.maybe("seed", "int", "episode n starts from 1,000,000 + seed + n", "Seed", minimum=0),
    Field.maybe("gamma", "float", "of the discounted return", "Discount", "that of training", 0.0, 1.0),
    Field.maybe("num_envs", "int", "played together", "Environments", "automatic", minimum=1),
    Field.maybe("max_episode_steps", "count", "then it is truncated", "Longest episode", "30,000", minimum=1),
    Field.maybe("max_seconds", "float", "then no episode begins", "Seconds", "no limit", minimum=0.1),
)
SWITCHES = (
    Field("repeat", "bool", False, label="Repeat until it is cancelled"),
    Field("deterministic", "bool", True, label="Take the best action instead of sampling"),
    Field("capture_video", "bool", False, label="Record videos of some episodes"),
)
FINISH, EXTEND, TOTAL = HOW = ("finish", "extend", "total")
HOW_WORDS = {
    FINISH: "Finish the remaining steps",
    EXTEND: "Train additional steps",
    TOTAL: "Train up to a total",
}
_ANY_FILE = "a file, a run's folder or a run's id"
_NAMED = (Field.maybe("algo", label="Algorithm"), Field.maybe("env_id", label="Environment"))
_FLAGS = {"true": True, "false": False, "null": None}
_TOLD = (
    ("description", "What it does"),
    ("env_family", "Environments"),
    ("phases", "Phases"),
    ("total_timesteps", "Steps"),
    ("author", "By"),
    ("algorithm", "Algorithm"),
    ("path", "File"),
    ("problem", "Problem in its head"),
)


class PolicyFileForm(ChoosingForm[F]):
    """A form about a trained policy; where its file does not say what it is of, the person does."""

    def take(self, found: F | None) -> None:
        super().take(found)
        if found is not None:
            self.run.put(self.key, found.path)

    @property
    def asks_algo(self) -> bool:
        """Whether the file does not say which algorithm it is of."""
        return self.facts is not None and self.facts.algo is None

    def algo(self) -> str:
        """What it is of: by its own word, else by what was typed."""
        return (self.facts.algo if self.facts and self.facts.algo else "") or self.run.said("algo")

    def chosen(self) -> str:
        return self.facts.path if self.facts else ""


class PolicyForm(PolicyFileForm[PolicyFacts]):
    """How good a trained policy is. Its environment is locked until `override` is on."""

    key = "policy"
    nothing = "No policy is chosen: choose one."
    build = staticmethod(eval_config)

    def __init__(self, source: FormSource, rows: Sequence[ListRow]) -> None:
        chosen = Field("policy", label="Policy", help=_ANY_FILE)
        override = Field("override", "bool", False, label="Override environment")
        super().__init__(source, [chosen, override, *_NAMED, *PLAYING, *SWITCHES], rows)

    def read(self, named: str) -> PolicyFacts:
        catalog = self.source.catalog
        if not isinstance(catalog, PolicyCatalog):
            raise UserError(f"{self.source.capabilities.display_name} cannot play policies.")
        return catalog.policy(named, self.source.folder, self.source.var)

    def take(self, found: PolicyFacts | None) -> None:
        super().take(found)
        if not self.run.is_on("override"):
            self.run.put("env_id", found.env_id if found and found.env_id else "")

    def set_override(self, on: bool) -> None:
        """Unlock the environment, or take the policy's own again."""
        self.run.put("override", on)
        self.take(self.facts)

    @property
    def locked(self) -> bool:
        """Whether the environment is the policy's own; a file that names none leaves it open."""
        return not self.run.is_on("override") and not (self.facts is not None and self.facts.env_id is None)

    @property
    def environments(self) -> EnvironmentList:
        """What the policy's algorithm can play."""
        return self.environments_of(self.algo() or self.source.algorithms[0])

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
        choice = self.environments.find(self.env_id())
        return choice.about if choice else "Not in the catalog: the check asks the training interpreter"

    def problems(self) -> list[str]:
        if self.asks_algo and not self.algo():
            return ["The file does not name its algorithm: name one."]
        if self.facts is not None and not self.env_id():
            return ["No environment is chosen: name one."]
        return super().problems()

    def primary(self) -> str:
        if self.run.is_on("repeat"):
            return "Evaluate until cancelled"
        if self.run.problem("episodes") or self.run.problem("batch_size"):
            return "Evaluate"
        return f"Play {self.run.whole('episodes') or self.run.whole('batch_size'):,} episodes"

    def asked(self, settings: RunSettings) -> dict[str, Any]:
        how = {one.name: self.run.value(one.name) for one in (*PLAYING, *SWITCHES)}
        return {
            **how,
            "policy": self.chosen(),
            "episodes": how["episodes"] or how["batch_size"],
            "env_id": None if self.locked else self.env_id(),
            "algo": self.algo() if self.asks_algo else None,
            "var": self.source.var,
        }


class ResumeForm(PolicyFileForm[CheckpointFacts]):
    """A new run that goes on from a checkpoint. Only `free` parameters may differ from its own."""

    key = "checkpoint"
    nothing = "No checkpoint is chosen: choose one."
    build = staticmethod(resume_config)

    def __init__(self, source: FormSource, rows: Sequence[ListRow], free: Sequence[str]) -> None:
        fields = [
            Field("checkpoint", label="Checkpoint", help=_ANY_FILE),
            Field("how", default=FINISH, label="How far", choices=HOW),
            Field("extend", "count", 100_000, "on top of its old budget", "More steps", minimum=1),
            Field("total_timesteps", "count", 500_000, "counted from its first", "Steps", minimum=1),
            *_NAMED,
        ]
        super().__init__(source, fields, rows)
        self._free = free

    def read(self, named: str) -> CheckpointFacts:
        catalog = self.source.catalog
        if not isinstance(catalog, ResumingCatalog):
            raise UserError(f"{self.source.capabilities.display_name} cannot resume from checkpoints.")
        return catalog.checkpoint(named, self.source.folder)

    def take(self, found: CheckpointFacts | None) -> None:
        super().take(found)
        self.show_parameters()
        if found is None:
            return
        self.run.reset("how")
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

    def env_id(self) -> str:
        return (self.facts.env_id if self.facts and self.facts.env_id else "") or self.run.said("env_id")

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
        kept = [run.fields[name].title for name in ("tensorboard", *TITLES) if run.is_on(name)]
        return " · ".join([live, *kept])

    def about(self) -> str:
        """What was chosen, in one line."""
        facts = self.facts
        if facts is None:
            return self.trouble or "Choose a checkpoint on the left, or name a file or a run."
        what = f"{facts.algo or 'an unknown algorithm'} on {facts.env_id or 'an unknown environment'}"
        if facts.step is None:
            return f"The weights of {what}: a new training starts with them."
        return f"{what}, at step {facts.step:,} of {facts.total_timesteps or 0:,}"

    def problems(self) -> list[str]:
        if self.asks_algo and not (self.algo() and self.env_id()):
            name = Path(self.chosen()).name
            return [f"{name} names neither algorithm nor environment: name both."]
        return super().problems()

    def primary(self) -> str:
        if self.facts is None:
            return "Resume"
        how = self.run.said("how")
        if how == EXTEND and not self.run.problem("extend"):
            return f"Train {self.run.whole('extend'):,} steps more"
        return "Finish the run" if how == FINISH else "Continue training"

    def asked(self, settings: RunSettings) -> dict[str, Any]:
        how = self.run.said("how")
        return {
            "checkpoint": self.chosen(),
            "params": self.params.changes(),
            "total_timesteps": self.run.whole("total_timesteps") if how == TOTAL else None,
            "extend": self.run.whole("extend") if how == EXTEND else None,
            "algo": self.algo() if self.asks_algo else None,
            "env_id": self.env_id() if self.asks_algo else None,
        }


def _is_done(facts: CheckpointFacts) -> bool:
    """Whether no step of the budget is left, counted in steps of all environments together."""
    together = int(facts.args.get("num_envs") or 1)
    return (facts.step or 0) // together >= (facts.total_timesteps or 0) // together


class ScriptForm(ChoosingForm[Mapping[str, Any]]):
    """A shell script that trains in phases, a Python script or an algorithm of one's own, and what its head
    says of it; of an algorithm also its parameters."""

    key = "script"
    nothing = "No script is chosen: choose one, or name a file."
    build = staticmethod(train_config)

    def __init__(self, source: FormSource, sections: Sequence[Group] = ()) -> None:
        """`sections` are parameters that are folded away."""
        catalog = source.catalog
        self.sheet = ParameterSheet(catalog, (), sections)
        self._catalog = catalog if isinstance(catalog, ScriptCatalog) else None
        self.scripts: Sequence[Mapping[str, Any]] = self._catalog.scripts() if self._catalog else ()
        fields = [
            Field("script", label="Script", help="the name of a script, or the path of a .sh or .py file"),
            Field.maybe("env_id", label="Environment"),
            Field.maybe("total_timesteps", "count", label="Steps", minimum=1),
            Field("seeds", default="1", label="Seeds"),
            Field(
                "flags",
                label="Parameters",
                help="one per line, as name = value; the script gets them as --name=value",
            ),
        ]
        rows = [
            ListRow(
                key=str(one["name"]),
                title=str(one["name"]),
                about=str(one.get("problem") or one.get("description") or one["path"]),
                aside=f"{one['phases']} phases" if one.get("phases") else "",
                faint=bool(one.get("problem")),
            )
            for one in self.scripts
        ]
        super().__init__(source, fields, rows)

    def first(self) -> str:
        return str(self.scripts[0]["name"]) if self.scripts else ""

    def read(self, named: str) -> Mapping[str, Any]:
        if self._catalog is not None and self._catalog.is_script(named):
            return self._catalog.script(named, self.source.folder)
        path = named_path(named, self.source.folder)
        if not path.is_file():
            raise UserError(f"The script {path} does not exist: check the path.")
        head: dict[str, Any] = {"name": path.name, "path": str(path.resolve())}
        budget = self.source.catalog.default_timesteps(head["path"])
        if budget is None:
            return head
        # It tells what it takes, as an algorithm of the worker's does.
        about = self.source.catalog.summary(head["path"]) or path.stem
        return {**head, "algorithm": about, "total_timesteps": budget}

    def take(self, found: Mapping[str, Any] | None) -> None:
        super().take(found)
        if found is not None:
            own = any(found["path"] == one["path"] for one in self.scripts)
            self.run.put("script", found["name"] if own else found["path"])
            self.sheet.forget(found["path"])
        self.params = self.sheet.state(self.algorithm) if self.algorithm else FormState([])

    @property
    def algorithm(self) -> str:
        """The path of a file that is an algorithm on the training kit, whose parameters are known."""
        return str(self.head["path"]) if self.head.get("algorithm") else ""

    @property
    def head(self) -> Mapping[str, Any]:
        """What the script says of itself; nothing while none is chosen."""
        return self.facts or {}

    def chosen(self) -> str:
        return self.run.said("script") if self.facts is not None else ""

    @property
    def is_shell(self) -> bool:
        """Whether it knows its environments and its budget itself."""
        return self._catalog is not None and self._catalog.is_script(self.run.said("script"))

    def told(self) -> list[tuple[str, str]]:
        """What its head says, as rows."""
        rows = [(title, self.head.get(name)) for name, title in _TOLD]
        return [
            (title, f"{value:,}" if isinstance(value, int) else str(value)) for title, value in rows if value
        ]

    def environment_hint(self) -> str:
        """What stands in the empty field of the environment."""
        return str(self.head.get("env_family") or "its own") if self.is_shell else "such as CartPole-v1"

    def steps_hint(self) -> str:
        """What stands in the empty field of the budget."""
        steps = self.head.get("total_timesteps")
        return f"{steps:,}" if steps else "not known" if self.is_shell else "its own"

    def flags(self) -> dict[str, Any]:
        """The script's parameters; UserError names the line that cannot be read."""
        if self.algorithm:
            return self.params.changes()
        found: dict[str, Any] = {}
        for line in filter(None, map(str.strip, self.run.text("flags").splitlines())):
            name, equals, value = (part.strip() for part in line.partition("="))
            if not equals or not name:
                raise UserError(f"Parameters: '{line}' is not of the form name = value.")
            name = name.lstrip("-").replace("-", "_")
            if name in found:
                raise UserError(f"Parameters: '{name}' is given twice: give it once.")
            found[name] = _FLAGS.get(value, value)
        return found

    def flags_problem(self) -> str:
        return problem_in(self.flags)

    def problems(self) -> list[str]:
        if self.head.get("problem"):
            return [str(self.head["problem"])]
        if self.facts is not None and not self.is_shell and not self.env_id():
            return ["A Python script needs an environment: name one."]
        # Where nothing is chosen, that is what is wrong first.
        found = [*super().problems(), self.flags_problem(), self.seeds_problem()]
        return [problem for problem in found if problem]

    def needs(self) -> Iterator[tuple[str, str]]:
        yield from super().needs()
        family = self.head.get("env_family")
        sets = {one.extra for one in self.source.environments if one.family == family}
        # A family whose environments need different sets says nothing of what the script needs.
        if len(sets) == 1 and (only := sets.pop()) is not None:
            yield only, Path(self.run.said("script")).name

    def primary(self) -> str:
        return "Run the script" if self.count() == 1 else f"Run it {self.count()} times"

    def asked(self, settings: RunSettings) -> dict[str, Any]:
        return {
            "algo": self.run.said("script"),
            "env_id": self.env_id() or None,
            "total_timesteps": self.run.whole("total_timesteps"),
            "params": self.flags(),
        }
