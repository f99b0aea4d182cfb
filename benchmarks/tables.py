"""What all benchmarks share: markdown tables that say how they were made."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).with_name("results")


@dataclass(frozen=True)
class Row:
    """What was done, what came out, what the limit is and whether it held."""

    what: str
    measured: str
    limit: str
    held: bool

    def cells(self) -> list[str]:
        return [self.what, self.measured, self.limit, "yes" if self.held else "**no**"]


@dataclass(frozen=True)
class Table:
    """One table with a heading of its own; the first of a page may do without."""

    header: Sequence[str]
    rows: Iterable[Sequence[str]]
    heading: str = ""

    def lines(self) -> list[str]:
        above = [f"## {self.heading}", ""] if self.heading else []
        return [
            *above,
            table_row(self.header),
            table_row(["---"] * len(self.header)),
            *map(table_row, self.rows),
        ]


def write_table(
    name: str, title: str, text: str, header: Sequence[str], rows: Iterable[Sequence[str]]
) -> Path:
    """Write `results/<name>.md`: the table, the command that makes it again and what it was made with."""
    return write_tables(name, title, text, [Table(header, rows)])


def write_tables(
    name: str,
    title: str,
    text: str,
    tables: Iterable[Table],
    packages: Sequence[str] = ("torch", "gymnasium", "numpy", "grpcio"),
    command: Sequence[str] = (),
) -> Path:
    """As `write_table`, with several tables; `command` is what made them, where that is not `<name>.py`."""
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    lines = [
        f"# {title}",
        "",
        text,
        "",
        f"    {shlex.join(['python', *(command or (f'benchmarks/{name}.py', *sys.argv[1:]))])}",
        "",
        f"Python {platform.python_version()}, {versions}; {os.cpu_count()} CPU cores.",
    ]
    for table in tables:
        lines += ["", *table.lines()]
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.md"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    print(path.read_text("utf-8"))
    return path


def section_of(name: str, heading: str) -> list[str]:
    """The lines under a heading of `results/<name>.md`, with it; none when it is not there."""
    path = RESULTS / f"{name}.md"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    start = next((at for at, line in enumerate(lines) if line == f"## {heading}"), len(lines))
    end = next((at for at, line in enumerate(lines) if at > start and line.startswith("## ")), len(lines))
    return lines[start:end]


def put_section(name: str, section: Sequence[str]) -> None:
    """Put a section at the end of a page, in place of the one with its heading; all else stays."""
    path = RESULTS / f"{name}.md"
    old = section_of(name, section[0].removeprefix("## "))
    page = path.read_text("utf-8").rstrip()
    if old:
        page = page.replace("\n".join(old).rstrip(), "").rstrip()
    path.write_text("\n".join([page, "", *section]).rstrip() + "\n", "utf-8")


def kept_rows(name: str, header: Sequence[str]) -> list[list[str]]:
    """The rows that stand under this header in `results/<name>.md`; none when it has another."""
    path = RESULTS / f"{name}.md"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    start = table_row(header)
    rows = lines[lines.index(start) + 2 :] if start in lines else []
    end = next((number for number, line in enumerate(rows) if not line.startswith("|")), len(rows))
    return [line.strip("|").strip().split(" | ") for line in rows[:end]]


def table_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
