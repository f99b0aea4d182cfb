"""`daemon.json`: written for its owner only, read with care."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from mosaic.contract.connection import DaemonAddress

ADDRESS = DaemonAddress("127.0.0.1:50055", 4321, "0.1.0", "t0ken")


def test_an_address_survives_its_file_and_only_the_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    ADDRESS.write(path)
    assert DaemonAddress.read(path) == ADDRESS
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_calls_carry_the_token() -> None:
    assert ADDRESS.metadata() == (("authorization", "Bearer t0ken"),)


def test_a_file_of_a_later_version_with_more_fields_still_reads(tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    ADDRESS.write(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "colour": "blue"}))
    assert DaemonAddress.read(path) == ADDRESS


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", '{"address": "127.0.0.1:1"}'])
def test_a_file_that_says_nothing_means_no_daemon(text: str, tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    assert DaemonAddress.read(path) is None
    path.write_text(text)
    assert DaemonAddress.read(path) is None
