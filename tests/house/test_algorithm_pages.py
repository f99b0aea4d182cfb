"""Every algorithm's page has results and a picture, or says that it has none yet; a package has the pages."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cleanrl_worker.schemas.model import shipped_algorithms

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
