"""The script form: a shell script that trains in phases, a Python script or an algorithm of one's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gym_gui.models.form_choices import ListRow, Requirement, missing
from gym_gui.models.form_state import Field, FormState, about_seeds, parse_seeds, seeds_problem
from gym_gui.models.run_settings import ALL, RunSettings
from gym_gui.ui.presenters.form import ChoosingForm, FormSource, Group, ParameterSheet, TrainOrder
from mosaic.contract.capabilities import ScriptCatalog
from mosaic.contract.errors import UserError
from mosaic.contract.paths import named_path

Head = Mapping[str, Any]
_WORDS = {"true": True, "false": False, "null": None}
_TOLD = (
    ("description", "What it does"),
    ("env_family", "Environments"),
    ("phases", "Phases"),
    ("total_timesteps", "Steps"),
    ("author", "By"),
    ("algorithm", "Algorithm"),
    ("path", "File"),
    ("problem", "Wrong in its head"),
)


class ScriptForm(ChoosingForm[Head]):
    """Holds the chosen script and what its head says of it; of an algorithm also its parameters."""

    title = "Script"

    def __init__(self, source: FormSource, sections: Sequence[Group] = ()) -> None:
        """`sections` are parameters that are folded away."""
        super().__init__(source)
        self.sheet = ParameterSheet(source.catalog, (), sections)
        catalog = source.catalog
        self._catalog = catalog if isinstance(catalog, ScriptCatalog) else None
        self.scripts: Sequence[Head] = self._catalog.scripts() if self._catalog else ()
        self.head: Head | None = None
        self.run = FormState(
            [
                Field(
                    "script", label="Script", help="the name of a script, or the path of a .sh or .py file"
                ),
                Field("env_id", label="Environment", optional=True, default=None),
                Field("total_timesteps", "count", None, "", "Steps", (), 1, None, True),
                Field("seeds", default="1", label="Seeds"),
                Field(
                    "flags",
                    label="Parameters",
                    help="one a line, as name = value; the script gets them as --name=value",
                ),
                *ALL,
            ]
        )

    def rows(self) -> list[ListRow]:
        """The scripts that are found by name."""
        return [
            ListRow(
                key=str(one["name"]),
                title=str(one["name"]),
                about=str(one.get("problem") or one.get("description") or one["path"]),
                aside=f"{one['phases']} phases" if one.get("phases") else "",
                faint=bool(one.get("problem")),
            )
            for one in self.scripts
        ]

    def states(self) -> Sequence[FormState]:
        return (self.run, self.sheet.state(self.algorithm)) if self.algorithm else (self.run,)

    @property
    def algorithm(self) -> str:
        """The path of a file that is an algorithm on the training kit, whose parameters are known."""
        return str(self.head["path"]) if self.head and self.head.get("algorithm") else ""

    def read(self, named: str) -> Head:
        """What a script says of itself. Reads files and may ask them: not for the thread of the window."""
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

    def take(self, found: Head | None) -> None:
        """Run this script; None while nothing is chosen."""
        self.head, self.trouble = found, ""
        if found is not None:
            own = any(found["path"] == one["path"] for one in self.scripts)
            self.run.put("script", found["name"] if own else found["path"])
            self.sheet.forget(found["path"])

    @property
    def is_shell(self) -> bool:
        """Whether it knows its environments and its budget itself."""
        return self._catalog is not None and self._catalog.is_script(self.run.said("script"))

    def told(self) -> list[tuple[str, str]]:
        """What its head says, as rows."""
        head = self.head or {}
        rows = [(title, head.get(name)) for name, title in _TOLD]
        return [
            (title, f"{value:,}" if isinstance(value, int) else str(value)) for title, value in rows if value
        ]

    def environment_hint(self) -> str:
        """What stands in the empty field of the environment."""
        return (
            str((self.head or {}).get("env_family") or "its own") if self.is_shell else "such as CartPole-v1"
        )

    def steps_hint(self) -> str:
        """What stands in the empty field of the budget."""
        steps = (self.head or {}).get("total_timesteps")
        return f"{steps:,}" if steps else "not known" if self.is_shell else "its own"

    def flags(self) -> dict[str, Any]:
        """The script's parameters; UserError names the line that cannot be read."""
        if self.algorithm:
            return self.sheet.state(self.algorithm).changes()
        found: dict[str, Any] = {}
        for line in filter(None, map(str.strip, self.run.text("flags").splitlines())):
            name, equals, value = (part.strip() for part in line.partition("="))
            if not equals or not name:
                raise UserError(f"Parameters: '{line}' is not of the form name = value.")
            name = name.lstrip("-").replace("-", "_")
            if name in found:
                raise UserError(f"Parameters: '{name}' is given twice: give it once.")
            found[name] = _WORDS.get(value, value)
        return found

    def problems(self) -> list[str]:
        if self.head is None:
            return [self.trouble or "No script is chosen: choose one, or name a file."]
        if self.head.get("problem"):
            return [str(self.head["problem"])]
        if not self.is_shell and not self.run.said("env_id"):
            return ["A Python script needs an environment: name one."]
        found = [self.flags_problem(), self.seeds_problem(), *super().problems()]
        return [problem for problem in found if problem]

    def flags_problem(self) -> str:
        try:
            self.flags()
        except UserError as error:
            return str(error)
        return ""

    def about_seeds(self) -> str:
        return about_seeds(self.run.text("seeds"))

    def seeds_problem(self) -> str:
        return seeds_problem(self.run.text("seeds"))

    def missing(self) -> list[Requirement]:
        return [] if self.run.said("python") else missing(self._needs(), self.source.installed)

    def _needs(self) -> Iterator[tuple[str, str]]:
        env_id, family = self.run.said("env_id"), (self.head or {}).get("env_family")
        yield self.source.extra_of(env_id), env_id
        sets = {one.extra for one in self.source.environments if one.family == family}
        # A family whose environments need different sets says nothing of what the script needs.
        if len(sets) == 1 and (only := sets.pop()) is not None:
            yield only, Path(self.run.said("script")).name
        if self.run.is_on("wandb"):
            yield "wandb", "Tracking with Weights & Biases"

    def primary(self) -> str:
        count = 1 if self.seeds_problem() else len(parse_seeds(self.run.text("seeds")))
        return "Run the script" if count == 1 else f"Run it {count} times"

    def order(self) -> TrainOrder:
        problems = self.problems()
        if problems:
            raise UserError(problems[0])
        settings = RunSettings.of(self.run)
        return TrainOrder(
            algo=self.run.said("script"),
            env_id=self.run.said("env_id") or None,
            total_timesteps=self.run.whole("total_timesteps"),
            seeds=parse_seeds(self.run.text("seeds")),
            params=self.flags(),
            extras=settings.extras,
            settings=settings,
            worker_type=self.source.capabilities.worker_type,
            folder=self.source.folder,
        )

    def load(self, prefill: Mapping[str, Any]) -> str:
        """The script that the form was opened for; else the first of the list."""
        named = str(prefill.get("script") or (self.scripts[0]["name"] if self.scripts else ""))
        self.run.put("script", named)
        return named
