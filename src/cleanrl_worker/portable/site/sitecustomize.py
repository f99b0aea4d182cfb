"""Python runs this at its start, because its folder is on the training side's path.

It gives the word to the `sitecustomize` that it hides, puts the user's folder at the end of the path, and
waits for gymnasium and EnvPool: when a script imports them, the environments that they make can be watched.
Nothing that goes wrong here may stop a script.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))


class _ImportHook(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a module as usual, and installs FastLane when it has been imported."""

    def __init__(self, name: str, install: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._install = install
        self._busy = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._name or self._busy:
            return None
        self._busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._busy = False
        if spec is None or spec.loader is None:
            return None
        self._loader = spec.loader
        spec.loader = self
        return spec

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        spec.loader = module.__loader__ = self._loader
        sys.meta_path.remove(self)
        self._loader.exec_module(module)
        try:
            self._install(module)
        except Exception as error:
            print(f"FastLane: no live picture in this process: {error}", file=sys.stderr, flush=True)


def _install_gymnasium(module: ModuleType) -> None:
    importlib.import_module("cleanrl_worker.portable.fastlane").install()


def _install_envpool(module: ModuleType) -> None:
    # FastLane needs it, and must not be half imported when this is the first to import it.
    importlib.import_module("gymnasium")
    importlib.import_module("cleanrl_worker.portable.fastlane.images").install(module)


def _run_hidden() -> None:
    """Run the sitecustomize that would have been found without ours."""
    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


if os.environ.get("CLEANRL_FASTLANE_SEGMENT"):
    sys.meta_path.insert(0, _ImportHook("gymnasium", _install_gymnasium))
    sys.meta_path.insert(0, _ImportHook("envpool", _install_envpool))
_run_hidden()
if os.environ.get("MOSAIC_USER_FOLDER"):
    sys.path.append(os.environ["MOSAIC_USER_FOLDER"])
