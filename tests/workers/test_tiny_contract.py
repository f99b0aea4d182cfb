"""A second worker, which shares nothing with the first but `mosaic.worker`, keeps the same contract."""

from __future__ import annotations

from typing import Any

import pytest

from mosaic.testing.worker_contract import WorkerContract


@pytest.mark.usefixtures("tiny_worker")
class TestTinyWorker(WorkerContract):
    worker_type = "tiny"
    long_processes = 4

    def short_config(self) -> dict[str, Any]:
        return {"steps": 3}

    def long_config(self) -> dict[str, Any]:
        return {"steps": 1_000_000, "pause": 0.05, "children": 2}

    def failing_config(self) -> dict[str, Any]:
        return {"exit_code": 3, "complain": "no more coffee"}

    def wrong_config(self) -> dict[str, Any]:
        return {"stepz": 3}
