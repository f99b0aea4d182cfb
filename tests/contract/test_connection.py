"""`daemon.json`: written for its owner only, read with care."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from mosaic.contract.connection import DaemonAddress, LockHolder, identity_of
from mosaic.contract.process import ProcessIdentity, boot_id

ADDRESS = DaemonAddress("127.0.0.1:50055", 4321, "0.1.0", "t0ken")


def test_an_address_survives_its_file_and_only_the_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    ADDRESS.write(path)
    assert DaemonAddress.read(path) == ADDRESS
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_calls_carry_the_token_and_the_folder() -> None:
    assert replace(ADDRESS, folder="2a-7").metadata() == (("authorization", "Bearer t0ken 2a-7"),)
    assert ADDRESS.metadata() == (("authorization", "Bearer t0ken"),), "as an earlier release knows it"


def test_a_copied_file_means_no_daemon(tmp_path: Path) -> None:
    for name in ("original", "copy"):
        (tmp_path / name).mkdir()
    bound = replace(ADDRESS, folder=identity_of(tmp_path / "original"))
    for name in ("original", "copy"):
        bound.write(tmp_path / name / "daemon.json")
    assert DaemonAddress.read(tmp_path / "original" / "daemon.json") == bound
    assert DaemonAddress.read(tmp_path / "copy" / "daemon.json") is None


def _own_lock(folder: Path) -> LockHolder:
    own = ProcessIdentity.of(os.getpid())
    assert own is not None
    return LockHolder(own.pid, own.start, boot_id(), identity_of(folder), str(folder))


def _write(holder: LockHolder, path: Path) -> None:
    handle = os.open(path, os.O_RDWR | os.O_CREAT)
    holder.write(handle)
    os.close(handle)


def test_a_lock_names_its_holder_as_long_as_that_lives_and_in_no_copy(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    path, copy = tmp_path / "daemon.lock", tmp_path / "copy" / "daemon.lock"
    assert LockHolder.living(path) is None
    longer = replace(_own_lock(tmp_path), doing="something that takes many words to say")
    _write(longer, path)
    assert LockHolder.living(path) == longer
    _write(_own_lock(tmp_path), path)
    assert LockHolder.living(path) == _own_lock(tmp_path), "what a longer one left behind does not matter"
    copy.write_bytes(path.read_bytes())
    assert (LockHolder.read(copy), LockHolder.living(copy)) == (_own_lock(tmp_path), None)
    for ended in (replace(longer, start=longer.start + 1), replace(longer, boot="another")):
        _write(ended, path)
        assert LockHolder.living(path) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "7", '{"pid": 1}', '{"pid": "x", "start": 1}', "\0" * 99]
)
def test_a_lock_that_says_nothing_names_nobody(text: str, tmp_path: Path) -> None:
    (tmp_path / "daemon.lock").write_text(text)
    assert LockHolder.living(tmp_path / "daemon.lock") is None


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
