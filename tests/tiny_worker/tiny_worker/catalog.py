"""What the tiny worker can train: nothing but counting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mosaic.contract.capabilities import ParamSchema
from tiny_worker.config import TinyConfig, parse_config


class TinyCatalog:
    """The `WorkerCatalog` of this package."""

    def algorithms(self) -> list[str]:
        return ["count"]

    def knows(self, algo: str) -> bool:
        return algo == "count"

    def parameters(self, algo: str) -> Sequence[ParamSchema]:
        return ()

    def default_timesteps(self, algo: str) -> int:
        return TinyConfig.steps

    def environments(self) -> Sequence[str]:
        return ()

    def check(self, config: Mapping[str, Any], python: str | None, folder: Path | None) -> dict[str, Any]:
        return parse_config(config).as_json()


CATALOG = TinyCatalog()
