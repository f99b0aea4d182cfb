"""What all benchmarks share: markdown tables that say how they were made."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).with_name("results")


def write_table(
    name: str, title: str, text: str, header: Sequence[str], rows: Iterable[Sequence[str]]
) -> Path:
    """Write `results/<name>.md`: the table, the command that makes it again and what it was made with."""
    packages = ", ".join(
        f"{package} {version(package)}" for package in ("torch", "gymnasium", "numpy", "grpcio")
    )
    lines = [
        f"# {title}",
        "",
        text,
        "",
        f"    {shlex.join(['python', f'benchmarks/{name}.py', *sys.argv[1:]])}",
        "",
        f"Python {platform.python_version()}, {packages}; {os.cpu_count()} CPU cores.",
        "",
        table_row(header),
        table_row(["---"] * len(header)),
        *map(table_row, rows),
    ]
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.md"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    print(path.read_text("utf-8"))
    return path


def table_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
