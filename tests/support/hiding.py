"""Packages that are not installed, as far as a process of a test knows."""

from __future__ import annotations

from pathlib import Path

import pytest

_HIDE = """
import importlib.metadata as metadata
there = metadata.version
def version(name):
    if name in {names}:
        raise metadata.PackageNotFoundError(name)
    return there(name)
metadata.version = version
"""
HIDE_JAX = _HIDE.format(names=("jax", "jaxlib", "flax", "optax"))


def hide(package: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide a package from every Python that the test starts."""
    (folder / "sitecustomize.py").write_text(_HIDE.format(names=(package,)))
    monkeypatch.setenv("PYTHONPATH", str(folder))
