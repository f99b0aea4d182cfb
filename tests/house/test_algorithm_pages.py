"""Every algorithm's page has results and a picture, and an installed package has the pages too."""

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


@pytest.mark.parametrize("algo", shipped_algorithms())
def test_an_algorithm_has_a_page_with_results(algo: str) -> None:
    page = (PAGES / f"{algo}.md").read_text()
    results = page.partition("<!-- results:")[2].partition("<!-- end of results -->")[0]
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
        for page in (f"{algo}.md", f"figures/{algo}.png"):
            assert f"cleanrl_worker/algorithms/pages/{page}" in names
