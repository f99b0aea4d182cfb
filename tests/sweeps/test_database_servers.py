"""Studies in PostgreSQL and MariaDB: the real servers, their URL from a secret that no file keeps."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mosaic.client import Client
from mosaic.contract.errors import StorageError
from mosaic.sweeps.configs import sweep_config
from mosaic.sweeps.optuna_records import read_elsewhere
from mosaic.sweeps.search import Search
from mosaic.sweeps.study import COMPLETE, read_study
from support.databases import PASSWORD, mariadb, mariadb_program, postgres, postgres_programs
from sweeps.conftest import quick_spec

SERVERS = [
    pytest.param(
        postgres,
        id="postgresql",
        marks=pytest.mark.skipif(
            postgres_programs() is None, reason="PostgreSQL is not installed: apt-get install postgresql"
        ),
    ),
    pytest.param(
        mariadb,
        id="mariadb",
        marks=pytest.mark.skipif(
            mariadb_program() is None, reason="MariaDB is not installed: apt-get install mariadb-server"
        ),
    ),
]


@pytest.fixture(params=SERVERS)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    # Not in the test's own folder, which whoever the server runs as may not enter.
    with tempfile.TemporaryDirectory(prefix="mosaic-servers-") as folder:
        os.chmod(folder, 0o755)
        with request.param(Path(folder)) as url:
            yield url


def test_a_sweep_keeps_its_study_on_a_server(
    url: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWEEP_DB", url)
    spec = quick_spec(storage="@env:SWEEP_DB", study="shared", trials=4)
    run = client.wait(client.submit(sweep_config(spec)).run_id, 120)
    assert run.outcome == "completed", run.reason
    mirror = read_study(Path(run.run_dir))
    found = read_elsewhere("@env:SWEEP_DB", "shared", os.environ)
    assert mirror is not None
    assert [one.state for one in found.trials] == [COMPLETE] * 4
    assert [(one.params, one.runs) for one in found.trials] == [
        (one.params, one.runs) for one in mirror.trials
    ]
    for one, other in zip(found.trials, mirror.trials, strict=True):
        assert one.values == pytest.approx(other.values)
    files = [path for path in client.paths.root.rglob("*") if path.is_file()]
    assert [path for path in files if PASSWORD.encode() in path.read_bytes()] == []


def test_a_study_on_a_server_is_found_again_and_belongs_to_one_sweep(url: str, tmp_path: Path) -> None:
    spec = quick_spec(storage="@env:DB", study="one")
    first = Search(spec, "A", tmp_path, {"DB": url})
    asked = first.ask()
    assert [one.params for one in Search(spec, "A", tmp_path, {"DB": url}).open_trials()] == [asked.params]
    with pytest.raises(StorageError, match="in use by A"):
        Search(spec, "B", tmp_path, {"DB": url})
    with pytest.raises(StorageError) as caught:
        Search(spec, "B", tmp_path, {"DB": url.replace(PASSWORD, "wrong-and-secret")})
    assert "wrong-and-secret" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)
    assert "\n" not in str(caught.value)
