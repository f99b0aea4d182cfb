"""What a container may have counts, not what the machine below it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from cleanrl_worker.config import footprint
from mosaic.contract import machine, process
from mosaic.contract.errors import UserError
from mosaic.contract.machine import Machine
from mosaic.contract.process import memory_limit

GB = 2**30


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("0::/\n", {"memory.max": f"{4 * GB}\n"}, 4 * GB),
        ("0::/user/run\n", {"user/memory.max": str(2 * GB), "user/run/memory.max": "max\n"}, 2 * GB),
        ("0::/\n", {"memory.max": "max\n"}, 2**63),
        ("4:memory:/docker/1\n0::/\n", {"memory/memory.limit_in_bytes": str(3 * GB)}, 3 * GB),
        ("4:memory:/a\n", {"memory/a/memory.limit_in_bytes": str(GB), "memory.max": "1"}, GB),
        ("", {}, 2**63),
    ],
)
def test_the_least_limit_of_a_group_and_of_those_around_it_counts(
    groups: str, files: dict[str, str], limit: int, tmp_path: Path
) -> None:
    (tmp_path / "groups").write_text(groups)
    for name, text in files.items():
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).write_text(text)
    assert memory_limit(tmp_path / "groups", tmp_path / "root") == limit


def test_a_machine_without_groups_has_no_limit(tmp_path: Path) -> None:
    assert memory_limit(tmp_path / "none", tmp_path) == 2**63


def test_neither_a_slot_nor_a_buffer_gets_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (machine, process):
        monkeypatch.setattr(module, "memory_limit", lambda: GB)
    assert Machine.detect().memory_mb == 1024
    with pytest.raises(UserError, match=r"would need 7,\d{3} MB of memory, but this machine has 1,073 MB"):
        footprint.check_replay(1_000_000, (84, 84, 4))
