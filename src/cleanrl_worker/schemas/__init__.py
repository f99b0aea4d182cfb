"""What each algorithm takes, readable without importing it."""

from __future__ import annotations

from cleanrl_worker.schemas.check import check_params
from cleanrl_worker.schemas.model import AlgoSchema, algorithms, load_schema

__all__ = ["AlgoSchema", "algorithms", "check_params", "load_schema"]
