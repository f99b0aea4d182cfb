"""What tests of sweeps share: sweep files around a script that learns at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mosaic.sweeps.spec import SweepSpec
from mosaic.sweeps.sweep_file import parse_spec

SCRIPT = Path(__file__).parents[1] / "scripts" / "quick_learner.py"


def quick_table(**changes: Any) -> dict[str, Any]:
    """A sweep file of six quick trials."""
    return {
        "algo": str(SCRIPT),
        "env": "None-v0",
        "total_timesteps": 1000,
        "trials": 6,
        "parallel": 2,
        "space": {"lr": {"low": 1e-5, "high": 1.0, "log": True}},
        "objective": {"take": "last"},
        "pruner": "none",
        **changes,
    }


def quick_spec(**changes: Any) -> SweepSpec:
    return parse_spec(quick_table(**changes))


def ppo_table(**changes: Any) -> dict[str, Any]:
    """A sweep file of one of our algorithms, which is checked and never started."""
    return {"algo": "ppo", "env": "CartPole-v1", "total_timesteps": 10_000, **changes}


@pytest.fixture
def no_environment() -> Mapping[str, str]:
    return {}
