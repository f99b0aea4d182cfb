"""What stands beside a form: the page about an algorithm, or a few words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from mosaic.contract.capabilities import FormCatalog

_KEPT = ("When to use it", "Parameters that matter", "Details that matter")
_POINT = re.compile(r"^- +", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\([^)\s]+\)")
_PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Section:
    """A heading and the points under it, as Markdown."""

    title: str
    points: tuple[str, ...]


@dataclass(frozen=True)
class AlgorithmPage:
    """What is shown beside the form."""

    text: str
    """What it is, as Markdown."""
    sections: tuple[Section, ...] = ()
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
    intro, found = _split(_LINK.sub(r"\1", path.read_text("utf-8")))
    results = found.get("Results", "")
    picture = _PICTURE.search(results)
    return AlgorithmPage(
        text=intro,
        sections=tuple(Section(title, _points(found[title])) for title in _KEPT if title in found),
        results=tuple(
            f"{env}: {reached} after {steps} steps" for env, steps, reached, *_ in _rows(results)[1:]
        ),
        picture=path.parent / picture[1] if picture else None,
        path=path,
    )


def _split(text: str) -> tuple[str, dict[str, str]]:
    """What stands under the title, and the sections by their headings."""
    head, *parts = re.split(r"^## +", text, flags=re.MULTILINE)
    sections = {}
    for part in parts:
        title, _, body = part.partition("\n")
        sections[title.strip()] = body.strip()
    return head.partition("\n")[2].strip(), sections


def _rows(text: str) -> list[list[str]]:
    """The rows of the tables in a text, the heads among them but not the lines under those."""
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
that goes on from it to its old budget ends as if it had never been stopped.

With **more steps** than it was begun with, what falls over the run, such as the learning rate, is computed
anew over the longer budget.

A **model** is the weights alone: training begins anew with them, with any parameters.

It is a new run. The old one, its files and its curves stay as they are."""
)

EVALUATING = AlgorithmPage(
    """Plays the policy for whole episodes and tells how good it is: mean, spread, least and most of the
returns, batch by batch. It is a run of its own.

Episodes start from the **same seeds** each time, so two evaluations with one seed can be compared.

**The best action** is what counts in the end. Drawing actions as in training tells how much the policy
still explores.

**Another environment** must have the same spaces as the one it was trained on."""
)

SCRIPTS = AlgorithmPage(
    """A **shell script** trains in as many phases as it likes, and its head tells what it does:

```
# @description Growing rooms
# @env_family minigrid
# @phases 3
# @total_timesteps 800000
```

Scripts in the folder that `$MOSAIC_CUSTOM_SCRIPTS_DIR` names are in the list.

A **Python script** runs as it is, with the run's folder as its working directory. It gets `--env-id`,
`--total-timesteps`, `--seed` and the parameters below. What it writes as event files is charted, and its
environments can be watched.

A Python file that binds `SPEC` is an **algorithm on the training kit**: its parameters are shown, and it is
checked, checkpointed, resumed and evaluated as ours are."""
)
