"""The committed protobuf code is what the generator makes of `trainer.proto` today."""

from __future__ import annotations

from pathlib import Path

import pytest

from mosaic.contract.proto.generate import GENERATED, HERE, generate


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("proto")
    generate(folder)
    return folder


@pytest.mark.parametrize("name", GENERATED)
def test_generated_code_is_fresh(name: str, fresh: Path) -> None:
    message = "run `.venv/bin/python -m mosaic.contract.proto.generate` and commit what it writes"
    assert (fresh / name).read_text() == (HERE / name).read_text(), message


def test_nothing_else_is_generated(fresh: Path) -> None:
    assert sorted(path.name for path in fresh.iterdir()) == sorted(GENERATED)
