"""Packages that are not installed, as far as a process of a test knows."""

HIDE_JAX = """
import importlib.metadata as metadata
there = metadata.version
def version(name):
    if name in ("jax", "jaxlib", "flax", "optax"):
        raise metadata.PackageNotFoundError(name)
    return there(name)
metadata.version = version
"""
