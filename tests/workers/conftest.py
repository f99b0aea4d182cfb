"""The tiny worker, as if it were installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mosaic.contract.capabilities import discover_workers

TINY = Path(__file__).parents[1] / "tiny_worker"


@pytest.fixture
def tiny_worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Puts the tiny worker's distribution on the path of this process and of all that it starts."""
    monkeypatch.syspath_prepend(str(TINY))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TINY), os.environ.get("PYTHONPATH", "")]))
    discover_workers.cache_clear()
    yield
    discover_workers.cache_clear()
