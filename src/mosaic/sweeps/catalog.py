"""What the sweep worker takes: a sweep that `sweep_config` has made. It trains nothing by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mosaic.contract.capabilities import ParamSchema


class SweepCatalog:
    """The `WorkerCatalog` of sweeps."""

    def algorithms(self) -> list[str]:
        return []

    def knows(self, algo: str) -> bool:
        return False

    def parameters(self, algo: str) -> Sequence[ParamSchema]:
        return ()

    def default_timesteps(self, algo: str) -> int | None:
        return None

    def environments(self) -> Sequence[str]:
        return ()

    def check(self, config: Mapping[str, Any], python: str | None, folder: Path | None) -> dict[str, Any]:
        # Lists of what can be trained ask every worker, and need none of this.
        from mosaic.sweeps.configs import check_config

        return check_config(config)


CATALOG = SweepCatalog()
