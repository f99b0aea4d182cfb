"""The file in which a script tells its phases."""

from __future__ import annotations

from pathlib import Path

import pytest

from mosaic.contract.errors import StorageError
from mosaic.contract.phases import Phase, announce_phase, forget_phases, read_phase


def test_the_newest_phase_is_told(tmp_path: Path) -> None:
    assert read_phase(tmp_path) is None
    announce_phase(tmp_path, 1, "empty  rooms\n")
    announce_phase(tmp_path, 2, "doors")
    assert read_phase(tmp_path, 3) == Phase(2, "doors", 3)
    assert str(read_phase(tmp_path, 3)) == "phase 2 of 3 (doors)"
    assert str(read_phase(tmp_path)) == "phase 2 (doors)"
    forget_phases(tmp_path)
    assert read_phase(tmp_path) is None


def test_a_phase_beyond_the_last_raises_the_count(tmp_path: Path) -> None:
    announce_phase(tmp_path, 4, "")
    assert str(read_phase(tmp_path, 3)) == "phase 4 of 4"


def test_lines_that_are_torn_or_no_phases_are_passed_over(tmp_path: Path) -> None:
    announce_phase(tmp_path, 1, "x" * 1000)
    with (tmp_path / "phases.jsonl").open("a") as file:
        file.write('[]\n{"phase": "many", "text": ""}\n{"phase": 2, "te')
    found = read_phase(tmp_path)
    assert found is not None
    assert (found.number, len(found.text)) == (1, 200)


def test_many_phases_are_read_from_the_end(tmp_path: Path) -> None:
    for number in range(1, 500):
        announce_phase(tmp_path, number, "y" * 200)
    found = read_phase(tmp_path)
    assert found is not None and found.number == 499


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be written: No such file or directory"):
        announce_phase(tmp_path / "gone", 1, "")
