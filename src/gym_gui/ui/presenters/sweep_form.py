"""What the form of a sweep is built from and checks with, without Qt."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gym_gui.models.form_choices import EnvironmentList, environments_for, trainable
from gym_gui.models.sweep_draft import FIXED, ParamDraft, SweepDraft, table_of, typed
from gym_gui.ui.presenters.form import Config, FormSource
from gym_gui.ui.presenters.form_page import CheckReport
from mosaic.client import RunRecord
from mosaic.contract import words
from mosaic.contract.capabilities import ParamSchema, discover_workers
from mosaic.contract.errors import MosaicError, UserError
from mosaic.sweeps.configs import spec_of
from mosaic.sweeps.spec import SweepSpec

SUFFIX = ".toml"


@dataclass(frozen=True)
class SweepSource:
    """The algorithms of all workers with a form to train; read beside the window."""

    sources: Mapping[str, FormSource]
    """By algorithm."""
    draft: SweepDraft
    """The form as it is opened."""
    note: str = ""
    """Why it is not what was asked for."""

    @classmethod
    def read(cls, var: Path, prefill: Mapping[str, Any]) -> SweepSource:
        """Load the catalogs, and fill a draft as far as `prefill` goes."""
        sources: dict[str, FormSource] = {}
        for _, worker in sorted(discover_workers().items()):
            if "train" in worker.forms:
                source = FormSource.read(worker, var)
                sources |= {algo: source for algo in source.algorithms if algo not in sources}
        if not sources:
            raise UserError("No installed worker has algorithms to search: run `./mosaic doctor`.")
        asked = str(prefill.get("algo") or "")
        draft, note = SweepDraft(asked if asked in sources else next(iter(sources))), ""
        if "sweep" in prefill:
            try:
                draft.take(table_of(_spec(prefill["sweep"])))
            except UserError as error:
                note = str(error)
        for name in ("env_id", "total_timesteps"):
            if prefill.get(name):
                draft.state.put(name, prefill[name])
        lines = draft.lines[draft.algos[0]]
        for name, value in (prefill.get("set") or {}).items():
            # What somebody has set stands still, whatever is known to be worth a search.
            lines[:] = [one for one in lines if one.name != name]
            lines.append(ParamDraft(name, FIXED, value=typed(value)))
        return cls(sources, draft, note)

    @property
    def algorithms(self) -> list[str]:
        return list(self.sources)

    def others(self, draft: SweepDraft) -> list[str]:
        """The algorithms that can be searched besides those of a draft: they train on its environments."""
        found = []
        for algo, source in self.sources.items():
            misfits = source.misfits.get(algo, {})
            if algo not in draft.algos and not any(env_id in misfits for env_id in draft.env_ids):
                found.append(algo)
        return found

    def environments(self, algo: str) -> EnvironmentList:
        """What an algorithm can train on; nothing is known of another one's."""
        source = self.sources.get(algo)
        if source is None:
            return EnvironmentList(())
        offered = trainable(source.environments, source.misfits)
        return environments_for(offered, source.misfits.get(algo, {}), source.installed, algo)

    def parameters(self, algo: str) -> list[ParamSchema]:
        """What of an algorithm can be searched."""
        source = self.sources.get(algo)
        if source is None:
            return []
        return [one for one in source.catalog.parameters(algo) if not one.runtime_only]


def _spec(run: RunRecord) -> SweepSpec:
    try:
        return spec_of(run)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError("The settings of that sweep can no longer be read.") from error


def write_for_check(text: str) -> Path:
    """The sweep file in a place of its own, for `mosaic sweep FILE --dry-run`, which checks it."""
    descriptor, name = tempfile.mkstemp(SUFFIX, "mosaic-sweep-")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return Path(name)


def check_command(path: Path) -> list[str]:
    """What Python is to run to check the file: it prints the config that can be submitted."""
    return ["-m", "mosaic", "sweep", str(path), "--dry-run", "--json"]


def report_of(code: int, out: str, err: str) -> CheckReport:
    """What the check has found."""
    if code == 0:
        try:
            config = json.loads(out)
            return _right(config)
        except (ValueError, KeyError, TypeError, MosaicError) as error:
            return CheckReport(False, "the check cannot be read", f"{type(error).__name__}: {error}.")
    lines = [line.removeprefix("mosaic: ") for line in err.strip().splitlines() if line.strip()]
    several = len(lines) > 1
    headline = f"{len(lines)} things are wrong" if several else "something is wrong"
    shown = "\n\n".join(lines) or f"The check has ended with code {code} and said nothing."
    return CheckReport(False, headline, shown)


def _right(config: Config) -> CheckReport:
    spec = SweepSpec.from_json(config["metadata"]["worker"]["config"]["sweep"])
    facts = [*spec.plan(), ("searched", ", ".join(one.key for one in spec.space))]
    members = spec.population and words.count(spec.population.members, "member")
    trials = members or words.count(spec.trials, "trial")
    headline = f"{trials} over {words.count(len(spec.space), 'parameter')}"
    return CheckReport(True, headline, facts=tuple(facts), configs=(config,))


def names_left(parameters: Sequence[ParamSchema], lines: Sequence[ParamDraft]) -> list[str]:
    """The parameters that have no line yet."""
    there = {one.name for one in lines}
    return [one.name for one in parameters if one.name not in there]
