"""Strange input at every door, a little of it; `benchmarks/fuzz.py` throws far more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz_doors.calls import NOT_FUZZED, SERVICE, Town, call_doors
from fuzz_doors.configs import config_doors, make_user_folder
from fuzz_doors.files import file_doors
from fuzz_doors.knocking import Door, knock

from mosaic.contract.paths import VAR_VARIABLE

EXAMPLES = 60
CALLS = [method.name for method in SERVICE.methods if method.name not in NOT_FUZZED]


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """Where the one who asks keeps files: right ones, noise, folders and pipes."""
    make_user_folder(tmp_path / "user")
    return tmp_path / "user"


@pytest.fixture
def doors(tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Door]:
    """The doors that are files and configs, by name."""
    folder, var = tmp_path / "inside", tmp_path / "inside" / "var"
    var.mkdir(parents=True)
    monkeypatch.setenv(VAR_VARIABLE, str(var))
    return {door.name: door for door in [*config_doors(folder, var, user), *file_doors(folder, var)]}


@pytest.mark.parametrize(
    "name",
    [
        *("run config", "worker config", "worker config file"),
        *("events", "event files", "manifests and summaries", "checkpoints", "policy cards", "models"),
    ],
)
def test_files_and_configs_are_read_or_refused(doors: dict[str, Door], name: str) -> None:
    tally = knock(doors[name], EXAMPLES)
    assert not tally.faults, tally.report()
    assert tally.tried >= EXAMPLES


@pytest.fixture
def town(tmp_path: Path, leak_marks: list[str]) -> Iterator[Town]:
    """A daemon with a run in each state."""
    leak_marks.append(str(tmp_path / "town" / "var"))
    with Town(tmp_path / "town") as made:
        yield made


def test_every_call_is_answered_or_refused(town: Town, user: Path) -> None:
    doors = call_doors(town, user)
    assert {door.name for door in doors} >= {f"call {name}" for name in CALLS}
    bad = []
    for door in doors:
        tally = knock(door, EXAMPLES)
        bad += [f"{door.name}: {tally.report()}"] if tally.faults else []
    assert not bad, "\n\n".join(bad)
