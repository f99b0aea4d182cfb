"""Every algorithm has its page, with results and a picture, and the index leads to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cleanrl_worker.registry import DEFAULT_ALGO_REGISTRY

PAGES = Path(__file__).parents[2] / "docs" / "algorithms"


@pytest.mark.parametrize("algo", DEFAULT_ALGO_REGISTRY)
def test_an_algorithm_has_a_page_with_results(algo: str) -> None:
    page = (PAGES / f"{algo}.md").read_text()
    assert f"]({algo}.md)" in (PAGES / "README.md").read_text()
    assert f"./mosaic train {algo} --help" in page
    results = page.partition("<!-- results:")[2].partition("<!-- end of results -->")[0]
    assert f"](figures/{algo}.png)" in results, (
        "run `python benchmarks/learning.py` and commit what it writes"
    )
    assert "| environment |" in results
