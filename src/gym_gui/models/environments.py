"""The environments of a form: by family, found by text, with what keeps one from being trained on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gym_gui.models.list_row import ListRow
from mosaic.contract.capabilities import EnvironmentFacts, FormCatalog

FAMILY_NAMES = {
    "babyai": "BabyAI",
    "dm_control": "DeepMind Control",
    "gymnasium": "Gymnasium",
    "minigrid": "MiniGrid",
    "mosaic": "MOSAIC",
    "mujoco": "MuJoCo",
}
ALL_FAMILIES = ""


@dataclass(frozen=True)
class EnvironmentChoice:
    """One environment as an algorithm sees it."""

    env_id: str
    family: str
    spaces: str
    missing: str = ""
    """The optional set that has to be installed first."""
    misfit: str = ""
    """Why the algorithm cannot train there."""

    @property
    def fits(self) -> bool:
        return not self.misfit

    @property
    def about(self) -> str:
        """The line under the field: family and spaces, or what is in the way."""
        if self.misfit:
            return self.misfit
        words = f"{family_name(self.family)} · {self.spaces}"
        return f"{words} · needs '{self.missing}'" if self.missing else words

    @property
    def row(self) -> ListRow:
        """The environment in a list."""
        asks = f"needs {self.missing}" if self.missing else ""
        aside = "does not fit" if self.misfit else asks or self.spaces
        return ListRow(self.env_id, self.env_id, aside=aside, faint=bool(self.misfit or self.missing))


class EnvironmentList:
    """All environments for one algorithm; those that can be trained on at once come first."""

    def __init__(self, choices: Iterable[EnvironmentChoice]) -> None:
        self.choices = sorted(choices, key=_order)
        self._by_id = {choice.env_id: choice for choice in self.choices}

    def find(self, env_id: str) -> EnvironmentChoice | None:
        return self._by_id.get(env_id.strip())

    def families(self) -> list[str]:
        """The families that have something for the algorithm."""
        return sorted({choice.family for choice in self.choices if choice.fits}, key=family_name)

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
            and all(word in f"{choice.env_id} {choice.family}".lower() for word in words)
        ]


def find_misfits(catalog: FormCatalog, facts: Iterable[EnvironmentFacts]) -> dict[str, dict[str, str]]:
    """Of each algorithm the environments on which it cannot train, with the reason."""
    known = list(facts)
    return {
        algo: {one.env_id: reason for one in known if (reason := catalog.misfit(algo, one.env_id))}
        for algo in catalog.algorithms()
    }


def trainable(
    facts: Iterable[EnvironmentFacts], misfits: Mapping[str, Mapping[str, str]]
) -> list[EnvironmentFacts]:
    """Those on which at least one algorithm can train; nobody is offered the others."""
    hopeless = set.intersection(*map(set, misfits.values())) if misfits else set()
    return [one for one in facts if one.env_id not in hopeless]


def environments_for(
    facts: Iterable[EnvironmentFacts], misfits: Mapping[str, str], installed: Mapping[str, bool]
) -> EnvironmentList:
    """The environments for an algorithm with these `misfits`; `installed` is told of optional sets."""
    return EnvironmentList(
        EnvironmentChoice(
            one.env_id,
            one.family,
            one.spaces,
            missing=one.extra if one.extra and not installed.get(one.extra, False) else "",
            misfit=misfits.get(one.env_id, ""),
        )
        for one in facts
    )


def family_name(family: str) -> str:
    return FAMILY_NAMES.get(family, family)


def _order(choice: EnvironmentChoice) -> tuple[bool, bool, bool, str]:
    return not choice.fits, bool(choice.missing), choice.family != "gymnasium", choice.env_id.lower()
