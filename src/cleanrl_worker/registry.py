"""Which module trains an algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DEFAULT_ALGO_REGISTRY: Mapping[str, str] = MappingProxyType({"ppo": "cleanrl_worker.algorithms.ppo"})
