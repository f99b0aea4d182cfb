"""Every algorithm's page has results and a picture, or says that it has none yet, and tells the defaults as
they are; a package has the pages."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cleanrl_worker.schemas.model import load_schema, shipped_algorithms

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "algorithms"
UNPROVEN = "No results here yet."
"""What a page says in the place of results."""


@pytest.mark.parametrize("algo", shipped_algorithms())
def test_an_algorithm_has_a_page_with_results(algo: str) -> None:
    page = (PAGES / f"{algo}.md").read_text()
    results = page.partition("<!-- results:")[2].partition("<!-- end of results -->")[0]
    if UNPROVEN in results:
        assert "| environment |" not in results
        return
    assert f"](figures/{algo}.png)" in results, (
        "run `python benchmarks/learning.py` and commit what it writes"
    )
    assert "| environment |" in results


def told_defaults(page: str) -> Iterator[tuple[str, str]]:
    """The parameters in tables of them, each with the default that stands beside it."""
    for table in re.findall(r"^\| parameter \| default \|.*\n\|[ -|]*\n((?:\|.*\n)*)", page, re.MULTILINE):
        for line in table.splitlines():
            names, told = (cell.strip() for cell in line.split("|")[1:3])
            # A comma between digits belongs to a number.
            yield from zip(re.findall(r"`(\w+)`", names), re.split(r",(?!\d{3})", told), strict=True)


def as_value(text: str) -> object:
    """What a default is, in the words of a page."""
    words = {"on": True, "yes": True, "off": False, "no": False, "none": None}
    text = text.strip().strip("`").replace(",", "").replace("−", "-")
    try:
        return words[text] if text in words else float(text)
    except ValueError:
        return text


@pytest.mark.parametrize("algo", shipped_algorithms())
def test_a_page_tells_the_defaults_as_they_are(algo: str) -> None:
    schema = load_schema(algo)
    assert schema is not None
    for name, told in told_defaults((PAGES / f"{algo}.md").read_text()):
        parameter = schema.parameter(name)
        assert parameter is not None, name
        # An empty text is none.
        assert as_value(told) == (None if parameter.default == "" else parameter.default), name


def test_a_wheel_has_every_page_and_its_pictures(tmp_path: Path) -> None:
    source = tmp_path / "source"
    # What the package is made of, as a fresh checkout has it.
    left_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("src", "docs"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=left_out)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    build = [
        "wheel",
        "-q",
        "--no-build-isolation",
        "--no-deps",
        "--no-index",
        "-w",
        str(tmp_path),
        str(source),
    ]
    subprocess.run([sys.executable, "-m", "pip", *build], check=True, timeout=200)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for algo in shipped_algorithms():
        page = f"{algo}.md"
        pictures = [] if UNPROVEN in (PAGES / page).read_text() else [f"figures/{algo}.png"]
        for name in (page, *pictures):
            assert f"cleanrl_worker/algorithms/pages/{name}" in names
