"""What stands beside a form: the page about an algorithm, or a few words, and the check of an order: the dry
run of the worker that will run it, told in a few lines."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gym_gui.models.form_choices import Requirement
from gym_gui.models.form_state import show
from gym_gui.ui.presenters.form import Config, Order
from mosaic.contract import words
from mosaic.contract.capabilities import DescribingCatalog, FormCatalog, WorkerCatalog
from mosaic.contract.errors import MosaicError, UntrustedModuleError
from mosaic.contract.secrets import lift_secrets

Fact = tuple[str, str]
_BESIDE = ("env_id", "total_timesteps", "seed", "curriculum", "track", "policy_path")
"""Told elsewhere."""
_KEPT = ("When to use it", "Parameters that matter", "Details that matter")
_POINT = re.compile(r"^- +", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\([^)\s]+\)")
_COMMANDS = re.compile(r"^```.*?^```\n", re.MULTILINE | re.DOTALL)
"""What is typed at a terminal; beside a form it would only be wider than its column."""
_PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class AlgorithmPage:
    """What is shown beside the form."""

    text: str
    """What it is, as Markdown."""
    sections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The points under each heading, as Markdown."""
    results: tuple[str, ...] = ()
    """What it has reached, a line for each environment."""
    picture: Path | None = None
    path: Path | None = None
    """The whole page."""


def read_page(catalog: FormCatalog, algo: str) -> AlgorithmPage:
    """The page of an algorithm; without one its summary. Reads a file: not for the thread of the window."""
    path = catalog.page(algo)
    if path is None:
        return AlgorithmPage(catalog.summary(algo))
    intro, found = _split(_LINK.sub(r"\1", _COMMANDS.sub("", path.read_text("utf-8"))))
    results = found.get("Results", "")
    picture = _PICTURE.search(results)
    return AlgorithmPage(
        text=intro,
        sections={title: _points(found[title]) for title in _KEPT if title in found},
        results=tuple(
            f"{env}: {reached} after {steps} steps" for env, steps, reached, *_ in _rows(results)[1:]
        ),
        picture=path.parent / picture[1] if picture else None,
        path=path,
    )


def _split(text: str) -> tuple[str, dict[str, str]]:
    """The text under the title, and the sections by their headings."""
    head, *parts = re.split(r"^## +", text, flags=re.MULTILINE)
    sections = {}
    for part in parts:
        title, _, body = part.partition("\n")
        sections[title.strip()] = body.strip()
    return head.partition("\n")[2].strip(), sections


def _rows(text: str) -> list[list[str]]:
    """The rows of the tables in a text, with their heads but without the lines under those."""
    lines = [line.strip().strip("|") for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    return [row for row in rows if not re.fullmatch(r":?-+:?", row[0])]


def _points(text: str) -> tuple[str, ...]:
    """The points of a list; of a table each row, as a narrow column has no room for one."""
    rows = [row for row in _rows(text)[1:] if len(row) > 2]
    if rows:
        return tuple(f"{name} ({default}): {what}" for name, default, what, *_ in rows)
    return tuple(" ".join(point.split()) for point in _POINT.split(text) if point.strip())


RESUMING = AlgorithmPage(
    """A **full checkpoint** holds everything: networks, optimizers, counters, buffers, random states. A run
that continues from it to the old budget ends as if it had never been stopped.

With **more steps**, parameters that fall over the run, such as the learning rate, are recomputed over the
longer budget.

A **model** holds only the weights: a new training starts with them, with any parameters.

Resuming creates a new run. The old run, its files and its curves are not changed."""
)

EVALUATING = AlgorithmPage(
    """An evaluation plays the policy for whole episodes and measures how good it is: mean, spread, minimum
and maximum of the returns, batch by batch. It is a separate run.

Episodes always start from the **same seeds**, so two evaluations with the same seed can be compared.

**The best action** is what usually counts. Sampling actions, as in training, shows how much the policy
still explores.

**Another environment** must have the same spaces as the one of the training."""
)

SCRIPTS = AlgorithmPage(
    """A **shell script** trains in any number of phases, and its head describes it:

```
# @description Growing rooms
# @env_family minigrid
# @phases 3
# @total_timesteps 800000
```

Scripts in the folder that `$MOSAIC_CUSTOM_SCRIPTS_DIR` names are listed too.

A **Python script** runs unmodified, with the run's folder as its working directory. It gets `--env-id`,
`--total-timesteps`, `--seed` and the parameters below. Its event files are charted, and its environments
can be watched.

A Python file that binds `SPEC` is an **algorithm on the training kit**: its parameters are shown, and it is
checked, checkpointed, resumed and evaluated like the built-in ones."""
)


@dataclass(frozen=True)
class CheckReport:
    """What a check has found."""

    ok: bool
    headline: str
    """One line for the foot of the form."""
    sentence: str = ""
    """What is wrong and what to do, or what a resumed run restores."""
    facts: tuple[Fact, ...] = ()
    changes: tuple[Fact, ...] = ()
    """Parameters that are not the defaults."""
    missing: tuple[Requirement, ...] = ()
    untrusted: str = ""
    """The module that only a file names: with a yes to it, the order can be checked again."""
    configs: tuple[Config, ...] = field(default=(), repr=False)
    """What can be submitted; may hold a secret."""
    at: float = field(default_factory=time.time)

    def as_text(self) -> str:
        """The whole result, for the notes and for copying."""
        head = f"{time.strftime('%H:%M:%S', time.localtime(self.at))}  {self.headline}"
        width = max((len(name) for name, _ in (*self.facts, *self.changes)), default=0)
        rows = [f"{name:<{width}}  {value}" for name, value in (*self.facts, *self.changes)]
        return "\n".join([head, *filter(None, [self.sentence]), *rows])


def check_order(
    order: Order, catalog: WorkerCatalog, missing: Sequence[Requirement] = (), speed: float | None = None
) -> CheckReport:
    """Check an order without starting anything. Not for the thread of the window."""
    if missing:
        listed = ", ".join(one.name for one in missing)
        sentences = " ".join(one.sentence for one in missing)
        return CheckReport(False, f"missing: {listed}", sentences, missing=tuple(missing))
    try:
        configs = order.configs()
        summary = _describe(lift_secrets(configs[0], os.environ).config, catalog)
    except MosaicError as error:
        module = error.module if isinstance(error, UntrustedModuleError) else ""
        return CheckReport(False, "something is wrong", str(error), untrusted=module)
    resumed = summary.get("resumed_from") or {}
    return CheckReport(
        ok=True,
        headline=_headline(configs, summary, speed),
        sentence=" ".join(filter(None, [resumed.get("explanation"), summary.get("warning")])),
        facts=tuple(_facts(summary)),
        changes=tuple(_changes(summary)),
        configs=tuple(configs),
    )


def _describe(config: Mapping[str, Any], catalog: WorkerCatalog) -> Mapping[str, Any]:
    """What the worker tells of a run; nothing when it tells nothing."""
    if not isinstance(catalog, DescribingCatalog):
        return {}
    request = config["metadata"]["worker"]
    folder = Path(str(config["metadata"]["ui"]["python_path"]).partition(os.pathsep)[0])
    return catalog.describe(request["config"], request["python"], folder, ())


def _headline(configs: Sequence[Config], summary: Mapping[str, Any], speed: float | None) -> str:
    count = len(configs)
    parts = [words.count(count, "run")]
    steps = configs[0]["metadata"]["worker"]["config"].get("total_timesteps")
    if speed and steps and summary.get("mode") == "train":
        parts.append(f"about {_time(steps / speed)}{' each' if count > 1 else ''}")
    memory = summary.get("estimated_memory_mb")
    if memory:
        parts.append(f"{memory['total'] / 1000:.1f} GB")
    pictures = summary.get("pictures") or {}
    return " · ".join([*parts, "no pictures" if pictures.get("install") else "nothing missing"])


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


def _facts(summary: Mapping[str, Any]) -> list[Fact]:
    if not summary:
        return []
    environment, device = summary["environment"], summary["device"]
    policy, script = summary["policy"], summary["script"] or {}
    memory = summary["estimated_memory_mb"]
    found = [
        ("runs", summary["module"]),
        ("plays", policy and policy["path"]),
        ("environment", environment["env_id"]),
        *_spaces(environment),
        *words.curriculum_facts(summary["curriculum"] or ()),
        ("does", script.get("description")),
        ("phases", script.get("phases")),
        ("device", device and f"{device['name']} ({device['reason']})"),
        ("memory", memory and f"about {memory['total']:,} MB"),
        ("pictures", words.pictures_text(summary["pictures"])),
        ("command", shlex.join(summary["command"])),
    ]
    return [(name, str(value)) for name, value in found if value]


def _spaces(environment: Mapping[str, Any]) -> list[Fact]:
    if not environment["known"]:
        return []
    spaces = [
        ("sees", words.space_text(environment["observation"])),
        ("does", words.space_text(environment["action"])),
    ]
    limit = environment["max_episode_steps"]
    return [*spaces, ("episodes", f"up to {limit:,} steps")] if limit else spaces


def _changes(summary: Mapping[str, Any]) -> list[Fact]:
    return [
        (one["name"], show(one["value"]) or "none")
        for one in summary.get("parameters", ())
        if one["source"] in ("config", "cli") and one["name"] not in _BESIDE
    ]
