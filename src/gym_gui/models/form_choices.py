"""What forms offer: environments, policies, stages of a curriculum, and the optional sets they need."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gym_gui.models import words
from mosaic.contract.capabilities import EnvironmentFacts, FormCatalog, PolicyFacts
from mosaic.contract.errors import UserError
from mosaic.contract.extras import PURPOSES, extra_sets

ALL_FAMILIES = ""
NONE, OWN = "None", "Stages of your own"
_PACKAGE = re.compile(r"(Collecting|Requirement already satisfied:) ([\w.\-]+)")
_FILE = re.compile(r"(?:Downloading|Using cached) ([\w.\-]+)")
_INSTALLING = re.compile(r"Installing collected packages: (.+)")


@dataclass(frozen=True)
class ListRow:
    """What is shown of one thing, and the key by which it is chosen."""

    key: str
    title: str
    about: str = ""
    """A second line; empty for rows of one line."""
    aside: str = ""
    """At the right end of the first line."""
    faint: bool = False
    """Whether it can be chosen, but will not do as it is."""


def rows_with(rows: Iterable[ListRow], text: str) -> list[ListRow]:
    """The rows that hold all words of a text."""
    wanted = text.lower().split()
    return [
        row for row in rows if all(word in f"{row.title} {row.about} {row.key}".lower() for word in wanted)
    ]


@dataclass(frozen=True)
class EnvironmentChoice:
    """One environment as an algorithm sees it."""

    env_id: str
    family: str
    family_title: str
    spaces: str
    missing: str = ""
    """The optional set that has to be installed first."""
    misfit: str = ""
    """Why the algorithm cannot train there."""
    backends: tuple[str, ...] = ()
    """What can step it, where that is known."""
    other_backend: str = ""
    """What the algorithm has to be told to step it with, as its own usual one does not have it."""

    @property
    def fits(self) -> bool:
        return not self.misfit

    @property
    def about(self) -> str:
        """The line under the field: family and spaces, or what is in the way."""
        if self.misfit:
            return self.misfit
        words = [self.family_title, self.spaces]
        words += [f"stepped by {' or '.join(self.backends)}"] if self.backends else []
        words += [f"needs '{self.missing}'"] if self.missing else []
        words += [f"set env_backend to {self.other_backend}"] if self.other_backend else []
        return " · ".join(words)

    @property
    def row(self) -> ListRow:
        """The environment in a list."""
        asks = f"needs {self.missing}" if self.missing else ""
        asks = asks or (f"with env_backend {self.other_backend}" if self.other_backend else "")
        aside = "does not fit" if self.misfit else asks or self.spaces
        return ListRow(self.env_id, self.env_id, aside=aside, faint=bool(self.misfit or asks))


class EnvironmentList:
    """All environments for one algorithm; those that can be trained on at once come first."""

    def __init__(self, choices: Iterable[EnvironmentChoice]) -> None:
        self.choices = sorted(choices, key=_order)
        self._by_id = {choice.env_id: choice for choice in self.choices}

    def find(self, env_id: str) -> EnvironmentChoice | None:
        return self._by_id.get(env_id.strip())

    def families(self) -> dict[str, str]:
        """The families that have something for the algorithm, with their titles."""
        return {choice.family: choice.family_title for choice in self.choices if choice.fits}

    def matching(
        self, text: str = "", family: str = ALL_FAMILIES, everything: bool = False
    ) -> list[EnvironmentChoice]:
        """Those of a family with all words of a text; without `everything` only what fits the algorithm."""
        words = text.lower().split()
        return [
            choice
            for choice in self.choices
            if (everything or choice.fits)
            and family in (ALL_FAMILIES, choice.family)
            and all(
                word in f"{choice.env_id} {choice.family} {choice.family_title}".lower() for word in words
            )
        ]


def find_misfits(
    catalog: FormCatalog, facts: Iterable[EnvironmentFacts], algorithms: Iterable[str]
) -> dict[str, dict[str, str]]:
    """Of each algorithm the environments on which it cannot train, with the reason."""
    known = list(facts)
    return {
        algo: {one.env_id: reason for one in known if (reason := catalog.misfit(algo, one.env_id))}
        for algo in algorithms
    }


def trainable(
    facts: Iterable[EnvironmentFacts], misfits: Mapping[str, Mapping[str, str]]
) -> list[EnvironmentFacts]:
    """Those on which at least one algorithm can train; nobody is offered the others."""
    hopeless = set.intersection(*map(set, misfits.values())) if misfits else set()
    return [one for one in facts if one.env_id not in hopeless]


def _order(choice: EnvironmentChoice) -> tuple[bool, bool, bool]:
    return not choice.fits, bool(choice.missing), bool(choice.other_backend)


def environments_for(
    facts: Iterable[EnvironmentFacts],
    misfits: Mapping[str, str],
    installed: Mapping[str, bool],
    algo: str = "",
) -> EnvironmentList:
    """The environments for an algorithm with these `misfits`; `installed` is told of optional sets."""
    known = list(facts)
    # Of an algorithm in a file nobody has said on what it trains as it is.
    told = any(algo in one.algorithms for one in known)

    def other_backend(one: EnvironmentFacts) -> str:
        trains = not told or algo in one.algorithms or one.env_id in misfits
        return "" if trains else next(iter(one.backends), "")

    return EnvironmentList(
        EnvironmentChoice(
            one.env_id,
            one.family,
            one.family_title,
            one.spaces,
            missing=one.extra if one.extra and not installed.get(one.extra, False) else "",
            misfit=misfits.get(one.env_id, ""),
            backends=tuple(one.backends),
            other_backend=other_backend(one),
        )
        for one in known
    )


def policy_row(facts: PolicyFacts) -> ListRow:
    """A policy in a list: what it is of and what it earned, then kind, step, seed and age."""
    known = [one for one in (facts.algo, facts.env_id) if one]
    kind = "model" if facts.is_model else "checkpoint"
    parts = [f"best {kind}" if facts.best else kind]
    if facts.step is not None:
        parts.append(f"{words.short_steps(facts.step)} steps")
    if facts.seed is not None:
        parts.append(f"seed {facts.seed}")
    parts.append(words.ago(facts.modified))
    return ListRow(
        key=facts.path,
        title=" · ".join(known) or os.path.basename(facts.path),
        about=" · ".join([*([facts.repo] if facts.repo else []), *parts]),
        aside="" if facts.mean_return is None else words.number(facts.mean_return),
        faint=facts.algo is None,
    )


@dataclass(frozen=True)
class Stage:
    """One row: an environment, and when the next one begins."""

    env_id: str = ""
    ends: str = ""
    """A condition such as `steps>=1000|episode_return>=0.9`, or a number of steps."""

    def as_json(self) -> dict[str, Any]:
        ends = re.sub(r"(?<=\d)[,_](?=\d)", "", self.ends.strip())
        if not ends:
            return {"env_id": self.env_id.strip()}
        if ends.isdigit():
            return {"env_id": self.env_id.strip(), "steps": int(ends)}
        return {"env_id": self.env_id.strip(), "condition": ends}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Stage:
        condition = str(data.get("condition") or "")
        plain = re.fullmatch(r"steps>=(\d+)", condition)
        steps = data.get("steps") or (plain[1] if plain else None)
        return cls(str(data.get("env_id", "")), f"{int(steps):,}" if steps else condition)


class StageTable:
    """The curriculum of a form: none, a preset, or rows that somebody has changed."""

    def __init__(self, presets: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        self._presets = {name: [Stage.of(stage) for stage in stages] for name, stages in presets.items()}
        self.rows: list[Stage] = []

    @property
    def choices(self) -> list[str]:
        return [NONE, *self._presets, OWN]

    @property
    def name(self) -> str:
        """Which of `choices` the rows are."""
        if not self.rows:
            return NONE
        return next((name for name, rows in self._presets.items() if rows == self.rows), OWN)

    def choose(self, name: str, env_id: str = "") -> None:
        """Take a preset, none, or begin with rows of one's own: those that are there, or two new ones."""
        if name == NONE:
            self.rows = []
        elif name in self._presets:
            self.rows = list(self._presets[name])
        elif not self.rows:
            self.rows = [Stage(env_id, "100,000"), Stage(env_id)]

    def load(self, stages: Sequence[Mapping[str, Any]] | str | None) -> None:
        """Take the stages of a config."""
        if isinstance(stages, str):
            self.choose(stages)
        else:
            self.rows = [Stage.of(stage) for stage in stages or ()]

    def change(self, index: int, **changes: str) -> None:
        """Give a row another `env_id` or other `ends`."""
        self.rows[index] = replace(self.rows[index], **changes)

    def add(self) -> None:
        """One more stage at the end; the one before it gets an end if it has none."""
        if self.rows and not self.rows[-1].ends.strip():
            self.change(len(self.rows) - 1, ends="100,000")
        self.rows.append(Stage(self.rows[-1].env_id if self.rows else ""))

    def remove(self, index: int) -> None:
        del self.rows[index]

    def move(self, index: int, by: int) -> None:
        """Move a row up (-1) or down (1); at the edge it stays."""
        other = index + by
        if 0 <= other < len(self.rows):
            self.rows[index], self.rows[other] = self.rows[other], self.rows[index]

    @property
    def target(self) -> str:
        """The environment that the curriculum leads to; empty without one."""
        return self.rows[-1].env_id.strip() if self.rows else ""

    def problem(self) -> str:
        """The first stage without an environment, in a sentence."""
        for number, row in enumerate(self.rows, 1):
            if not row.env_id.strip():
                return f"Stage {number} of the curriculum has no environment: name one, or remove the stage."
        return ""

    def schedule(self) -> list[dict[str, Any]] | None:
        """The stages as a config holds them; None without a curriculum."""
        problem = self.problem()
        if problem:
            raise UserError(problem)
        return [row.as_json() for row in self.rows] or None


@dataclass(frozen=True)
class Requirement:
    """A set that is not installed, and what asks for it."""

    name: str
    needed_by: str

    @property
    def command(self) -> str:
        return f"mosaic extras install {self.name}"

    @property
    def sentence(self) -> str:
        what = PURPOSES.get(self.name, self.name)
        return f"{self.needed_by} needs the optional set '{self.name}' ({what})."


def installed_sets() -> dict[str, bool]:
    """Of each optional set whether it is there now."""
    importlib.invalidate_caches()
    return {one.name: one.installed for one in extra_sets()}


def missing(needs: Iterable[tuple[str, str]], installed: Mapping[str, bool]) -> list[Requirement]:
    """The sets among `needs`, pairs of a set and what asks for it, that are not there; each once."""
    found: dict[str, Requirement] = {}
    for name, needed_by in needs:
        if name and not installed.get(name, True):
            found.setdefault(name, Requirement(name, needed_by))
    return list(found.values())


def install_command(names: Iterable[str]) -> list[str]:
    """The command that installs sets with the packages of this interpreter."""
    return [sys.executable, "-u", "-m", "mosaic", "extras", "install", *names]


class InstallProgress:
    """What pip's lines say, in a few words."""

    def __init__(self) -> None:
        self.step = "Asking the package index…"
        self.last = ""
        self._seen: set[str] = set()

    def take(self, line: str) -> str:
        """The step after one more line."""
        plain = line.strip()
        self.last = plain or self.last
        if found := _INSTALLING.match(plain):
            self.step = f"Installing {len(found[1].split(','))} packages…"
        elif found := _PACKAGE.match(plain):
            self._seen.add(found[2].lower())
            self.step = f"Looking at {found[2]}, package {len(self._seen)}…"
        elif found := _FILE.match(plain):
            self.step = f"Fetching {found[1]}…"
        elif plain.startswith("Successfully installed"):
            self.step = plain
        return self.step

    def verdict(self, names: Iterable[str], code: int) -> str:
        """How it ended."""
        listed = ", ".join(names)
        if code == 0:
            return f"{listed} is installed."
        return f"{listed} could not be installed (code {code}): {self.last or 'pip said nothing'}"
