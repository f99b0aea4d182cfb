"""The reader of the import graph sees every way to import."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.imports import SourceTree

WAYS = {
    "plain": "import torch.nn",
    "from": "from torch import nn",
    "in a function": "def load():\n    import torch",
    "in a branch": "try:\n    import torch\nexcept ImportError:\n    pass",
    "by name": "import importlib\nimportlib.import_module('torch')",
    "through another": "from room import other",
    "relative": "from . import other",
    "relative, deep": "from .other import load",
    "through the package": "import second.leaf",
}


@pytest.fixture
def tree(tmp_path: Path) -> SourceTree:
    for package in ("room", "second"):
        (tmp_path / package).mkdir()
    (tmp_path / "room" / "__init__.py").write_text("")
    (tmp_path / "room" / "other.py").write_text("def load():\n    import torch\n")
    (tmp_path / "second" / "__init__.py").write_text("import torch\n")
    (tmp_path / "second" / "leaf.py").write_text("")
    return SourceTree(tmp_path)


@pytest.mark.parametrize("way", WAYS)
def test_an_import_is_found(way: str, tree: SourceTree) -> None:
    (tree.root / "room" / "start.py").write_text(WAYS[way])
    found = tree.way_to("room.start", ("torch",))
    assert found is not None
    assert found[0] == "room.start"
    assert found[-1].split(".")[0] == "torch"


def test_an_import_for_type_checkers_only_is_none(tree: SourceTree) -> None:
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n"
    (tree.root / "room" / "start.py").write_text(source)
    assert tree.way_to("room.start", ("torch",)) is None
