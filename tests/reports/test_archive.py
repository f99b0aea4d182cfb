"""Runs as one file: what goes in comes out elsewhere, and what others have made of such a file is refused."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import RunMosaic
from mosaic.client import Client
from mosaic.client.archive import export_runs, import_archive
from mosaic.client.daemon import stop_daemon
from mosaic.contract.errors import ConflictError, MosaicError, StorageError, UserError
from mosaic.contract.paths import VarPaths
from support.ended_runs import EndedRun


@pytest.fixture
def elsewhere(tmp_path: Path, leak_marks: list[str]) -> Iterator[Path]:
    """Another machine, as far as a folder can be one."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    leak_marks.append(str(folder))
    yield folder
    stop_daemon(VarPaths(folder))


def exported(var: Path, *made: EndedRun, name: str = "run.tar", **how: Any) -> Path:
    for one in made:
        one.write(VarPaths(var))
    path = var.parent / name
    with Client.connect(var) as client:
        export_runs(client, [one.run_id for one in made], path, **how)
    return path


def imported(folder: Path, path: Path, **how: Any) -> list[Any]:
    with Client.connect(folder) as client:
        return import_archive(client, path, **how)


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "tar.zst"])
def test_a_run_is_the_same_elsewhere(var: Path, elsewhere: Path, ending: str) -> None:
    made = EndedRun(tags=("paper", "ünïcode"), notes="as they were", params={"gamma": 0.9})
    run = made.write(VarPaths(var))
    (run.run_dir / "deep" / "er").mkdir(parents=True)
    (run.run_dir / "deep" / "er" / ("ü" * 100)).write_bytes(b"")
    (run.run_dir / "curves").symlink_to(run.event_files)
    path = var.parent / f"run.{ending}"
    with Client.connect(var) as client:
        before = client.get(made.run_id)
        export_runs(client, [made.run_id], path)
    (one,) = imported(elsewhere, path)
    assert (one.run_id, one.archived_id, one.new) == (made.run_id, made.run_id, True)
    with Client.connect(elsewhere) as client:
        after = client.get(made.run_id)
        assert client.metrics(made.run_id).last("charts/episodic_return")
    for name in (
        "run_name",
        "tags",
        "notes",
        "status",
        "outcome",
        "submitted_at",
        "ended_at",
        "headline",
        "config",
    ):
        assert getattr(after, name) == getattr(before, name), name
    place = VarPaths(elsewhere).run(made.run_id)
    assert after.run_dir == str(place.run_dir) and (place.run_dir / "curves").resolve() == place.event_files
    own, theirs = files_of(run.run_dir), files_of(place.run_dir)
    assert own.keys() == theirs.keys()
    assert {name for name in own if own[name] != theirs[name]} == {"analytics.json", "logs/events.jsonl"}
    assert json.loads(theirs["analytics.json"])["artifacts"]["tensorboard"]["log_dir"] == str(
        place.event_files
    )
    assert str(var).encode() not in b"".join(theirs.values())
    assert (
        VarPaths(elsewhere).kept_logs(made.run_id).joinpath("supervisor.stderr.log").read_text()
        == "all well\n"
    )
    assert list(VarPaths(elsewhere).imports.iterdir()) == []


def test_the_same_run_gives_the_same_bytes(var: Path) -> None:
    made = EndedRun()
    first = exported(var, made).read_bytes()
    with Client.connect(var) as client:
        export_runs(client, [made.run_id], var.parent / "again.tar")
    assert (var.parent / "again.tar").read_bytes() == first


def test_what_is_there_already_is_told_and_other_content_is_refused(var: Path, elsewhere: Path) -> None:
    made = EndedRun()
    path = exported(var, made)
    assert [one.new for one in imported(elsewhere, path)] == [True]
    assert [one.new for one in imported(elsewhere, path)] == [False]
    assert [one.new for one in imported(var, path)] == [False]
    # Back from elsewhere its files say the same.
    with Client.connect(elsewhere) as client:
        export_runs(client, [made.run_id], var.parent / "back.tar")
    assert [one.new for one in imported(var, var.parent / "back.tar")] == [False]
    (VarPaths(elsewhere).run(made.run_id).checkpoints / "step-000000001000.npz").write_bytes(b"other")
    with pytest.raises(ConflictError, match=r"already exists with other files.*--as-new"):
        imported(elsewhere, path)
    (one,) = imported(elsewhere, path, as_new=True)
    assert one.new and one.run_id != made.run_id == one.archived_id
    with Client.connect(elsewhere) as client:
        assert client.get(one.run_id).worker_config["run_id"] == one.run_id
        assert len(client.runs()) == 2
    assert made.run_id.encode() not in VarPaths(elsewhere).run(one.run_id).manifest.read_bytes()


def test_checkpoints_may_stay_behind(var: Path, elsewhere: Path) -> None:
    made = EndedRun()
    path = exported(var, made, checkpoints=False)
    imported(elsewhere, path)
    assert not VarPaths(elsewhere).run(made.run_id).checkpoints.exists()
    assert VarPaths(elsewhere).run(made.run_id).manifest.exists()


def test_a_run_without_its_folder_is_not_exported(var: Path) -> None:
    made = EndedRun()
    shutil.rmtree(made.write(VarPaths(var)).run_dir)
    gone = pytest.raises(ConflictError, match=f"folder of run {made.run_id} is gone")
    with Client.connect(var) as client, gone:
        export_runs(client, [made.run_id], var.parent / "run.tar")
    assert not list(var.parent.glob("*run.tar*"))


def test_a_removed_run_comes_back(var: Path) -> None:
    made = EndedRun()
    path = exported(var, made)
    with Client.connect(var) as client:
        client.remove(made.run_id)
        assert [one.new for one in import_archive(client, path)] == [True]
        assert client.get(made.run_id).outcome == "completed"


Change = Callable[[list[tuple[tarfile.TarInfo, bytes]]], object]


def altered(path: Path, change: Change) -> Path:
    """The archive with other members."""
    with tarfile.open(path) as tar:
        members = [(member, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]
    change(members)
    with tarfile.open(path, "w") as tar:
        for member, data in members:
            tar.addfile(member, io.BytesIO(data))
    return path


def listed(change: Callable[[dict[str, Any]], object]) -> Change:
    """A change of the list in front."""

    def apply(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        told = json.loads(members[0][1])
        change(told)
        data = json.dumps(told).encode()
        members[0][0].size = len(data)
        members[0] = members[0][0], data

    return apply


def renamed(name: str) -> Change:
    """A file of another name, in the list as well."""

    def apply(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        old = members[-1][0].name
        members[-1][0].name = f"{old.partition('/')[0]}/{name}"
        listed(lambda told: told["files"][-1].update(name=members[-1][0].name))(members)

    return apply


def as_type(kind: bytes, target: str = "/etc/passwd") -> Change:
    def apply(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        member = members[-1][0]
        member.type, member.linkname, member.size = kind, target, 0

    return apply


def twice(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    members.append(members[-1])
    listed(lambda told: told["files"].append(told["files"][-1]))(members)


def damaged(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    place = next(n for n, (member, _) in enumerate(members) if member.name.endswith(".npz"))
    members[place] = members[place][0], bytes(len(members[place][1]))


def recorded(change: Callable[[dict[str, Any]], object]) -> Change:
    """A change of the run's record, with the right sum of it in the list."""

    def apply(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        place = next(n for n, (member, _) in enumerate(members) if member.name.endswith("record.json"))
        told = json.loads(members[place][1])
        change(told)
        data = json.dumps(told).encode()
        members[place][0].size = len(data)
        members[place] = members[place][0], data
        summed = hashlib.sha256(data).hexdigest()
        listed(lambda told: told["files"][place - 1].update(sha256=summed, size=len(data)))(members)

    return apply


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (renamed("folder/../../../../evil"), "leads outside"),
        (renamed("folder//evil"), "leads outside"),
        (renamed("evil.json"), "is not part of a run"),
        (renamed("folder"), "is not part of a run"),
        (lambda members: setattr(members[-1][0], "name", "/etc/evil"), "where .* belongs"),
        (as_type(tarfile.SYMTYPE), "is a link"),
        (as_type(tarfile.LNKTYPE), "is a link"),
        (as_type(tarfile.CHRTYPE), "is a device"),
        (as_type(tarfile.FIFOTYPE), "is a device"),
        (as_type(tarfile.DIRTYPE), "is a folder"),
        (as_type(tarfile.GNUTYPE_SPARSE), "not a(?: plain)? file|is a device"),
        (twice, "two files of one name"),
        (damaged, "its sum is not the one"),
        (renamed(f"folder/{'n' * 300}"), "longer than the name of a file"),
        (renamed("folder/" + "/".join(["d" * 200] * 30)), "longer than the name of a file"),
        (recorded(lambda told: told["row"].update(status="EXEC")), "it has not ended"),
        (recorded(lambda told: told["row"].update(tags="a")), r"makes no sense \(tags"),
        (recorded(lambda told: told["row"].update(ended_at="late")), r"makes no sense \(ended_at"),
        (recorded(lambda told: told["row"].update(outcome="well")), "'well' is not a valid Outcome"),
        (recorded(lambda told: told["history"][0].update(status="ODD")), "'ODD' is not a valid RunStatus"),
        (lambda members: members.pop(), "it is cut short"),
        (lambda members: members.append((tarfile.TarInfo("more"), b"")), "which its list does not name"),
        (lambda members: members.reverse(), "is not an archive"),
        (listed(lambda told: told.update(format=99)), "has format 99"),
        (listed(lambda told: told.update(runs=[])), "belongs to none|no run"),
        (listed(lambda told: told["runs"].append(told["runs"][0])), "one of them twice"),
        (listed(lambda told: told["runs"][0].update(run_id="../../etc")), "its list makes no sense"),
        (listed(lambda told: told["runs"][0].update(links={"a": "../../b"})), "leads outside"),
        (listed(lambda told: told["files"][-1].update(size=10**15)), "says more than it holds|room"),
        (listed(lambda told: told["files"][-1].update(size=-1)), "the size of"),
        (listed(lambda told: told.pop("files")), "its list makes no sense"),
    ],
)
def test_what_others_have_made_of_it_is_refused_in_a_sentence(
    var: Path, elsewhere: Path, change: Change, said: str
) -> None:
    made = EndedRun()
    path = altered(exported(var, made), change)
    with Client.connect(elsewhere) as client:
        with pytest.raises(MosaicError, match=said) as refused:
            import_archive(client, path)
        assert refused.value.exit_code in (1, 2) and "\n" not in str(refused.value)
        assert client.runs() == []
    assert not list(VarPaths(elsewhere).trainer.glob("imports/*"))
    assert not list(VarPaths(elsewhere).runs.iterdir())
    assert not (var.parent / "evil").exists()


@pytest.mark.parametrize("at_its_start", [False, True])
def test_what_the_daemon_refuses_stands_in_nobodys_way(
    var: Path, elsewhere: Path, at_its_start: bool
) -> None:
    made = EndedRun()
    path, staged = exported(var, made), VarPaths(elsewhere).staged(made.run_id)

    def lay_ready() -> None:
        (staged.folder / "folder").mkdir(parents=True)
        (staged.folder / "config.json").write_text(json.dumps(made.config))
        (staged.folder / "record.json").write_text("{}")
        staged.mark.touch()

    if at_its_start:
        lay_ready()
    with Client.connect(elsewhere) as client:
        if not at_its_start:
            lay_ready()
            with pytest.raises(UserError, match="not those of an ended run"):
                client.adopt(made.run_id)
        assert client.runs() == [] and not staged.mark.exists()
        assert [one.new for one in import_archive(client, path)] == [True]


def test_a_header_that_would_fill_the_memory_is_refused(var: Path, elsewhere: Path) -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 8**11 - 1
    path = var.parent / "evil.tar"
    path.write_bytes(header.tobuf(tarfile.USTAR_FORMAT) + bytes(10240))
    with pytest.raises(MosaicError, match="a name in it is"):
        imported(elsewhere, path)


def test_a_bomb_is_refused_before_anything_is_unpacked(var: Path, elsewhere: Path) -> None:
    made = EndedRun()
    path = exported(var, made)
    altered(path, listed(lambda told: told["files"][-1].update(size=900_000_000)))
    bomb = path.with_suffix(".tar.gz")
    bomb.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(MosaicError, match="would become 900"):
        imported(elsewhere, bomb)


@pytest.mark.parametrize("ending", ["tar", "tar.gz"])
def test_a_file_that_is_cut_short_is_refused_wherever_that_is(
    var: Path, elsewhere: Path, ending: str
) -> None:
    path = exported(var, EndedRun(), name=f"run.{ending}")
    whole = path.read_bytes()
    with Client.connect(elsewhere) as client:
        # After the last file a tar has zeros, which nobody misses.
        content = whole.rstrip(b"\0")
        for share in (0.0, 0.01, 0.1, 0.3, 0.5, 0.8, 0.99):
            path.write_bytes(content[: int(len(content) * share)])
            with pytest.raises(MosaicError, match=r"cut short|is not an archive|is damaged"):
                import_archive(client, path)
        assert client.runs() == []


def test_what_is_no_archive_is_told_in_a_sentence(var: Path, run_mosaic: RunMosaic, tmp_path: Path) -> None:
    for name, data in (("a.tar", b"hello"), ("b.tar.gz", b"\x1f\x8bnonsense"), ("c.tar", os.urandom(5000))):
        (tmp_path / name).write_bytes(data)
        done = run_mosaic("import", str(tmp_path / name), check=False)
        assert done.returncode == 2 and "Traceback" not in done.stderr and name in done.stderr
    for name, said in (("nothing.tar", "does not exist"), ("var", "is a folder")):
        done = run_mosaic("import", str(tmp_path / name), check=False)
        assert done.returncode == 2 and said in done.stderr


def test_a_file_that_changes_meanwhile_is_noticed(var: Path) -> None:
    made = EndedRun()
    run = made.write(VarPaths(var))

    def change(done: int, total: int, what: str) -> None:
        if what == "writes":
            run.manifest.write_text("{}" + " " * run.manifest.stat().st_size)

    with (
        Client.connect(var) as client,
        pytest.raises(ConflictError, match="has changed while it was exported"),
    ):
        export_runs(client, [made.run_id], var.parent / "run.tar", progress=change)
    assert not (var.parent / "run.tar").exists() and not list(var.parent.glob(".run.tar*"))


def test_a_full_disk_leaves_nothing(var: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = exported(var, EndedRun())
    resource = pytest.importorskip("resource")
    with Client.connect(elsewhere) as client:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        monkeypatch.setattr(signal, "SIGXFSZ", signal.SIGXFSZ)
        old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
        try:
            with pytest.raises(StorageError, match="nothing was imported"):
                import_archive(client, path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, old)
        assert list(VarPaths(elsewhere).imports.iterdir()) == [] and client.runs() == []
        assert [one.new for one in import_archive(client, path)] == [True]


@pytest.mark.parametrize(
    "point", ["adopt.folder", "adopt.logs", "adopt.record", "adopt.config", "adopt.files", "adopt.written"]
)
def test_a_daemon_that_is_killed_meanwhile_completes_it(
    var: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    made = EndedRun()
    path = exported(var, made)
    stop_daemon(VarPaths(elsewhere))
    monkeypatch.setenv("MOSAIC_CRASH_POINT", point)
    with Client.connect(elsewhere) as client:
        # The daemon that is started in the place of the killed one gets to its end.
        monkeypatch.delenv("MOSAIC_CRASH_POINT")
        assert [one.new for one in import_archive(client, path)] == [True]
        found = client.get(made.run_id)
        assert found.outcome == "completed" and [entry.status for entry in found.history] == ["TERM"]
    assert (
        files_of(VarPaths(elsewhere).run(made.run_id).run_dir).keys()
        == files_of(VarPaths(var).run(made.run_id).run_dir).keys()
    )
    assert list(VarPaths(elsewhere).imports.iterdir()) == []


def test_an_import_that_is_killed_leaves_nothing_that_counts(var: Path, elsewhere: Path) -> None:
    made = EndedRun()
    path = exported(var, made)
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom mosaic.client import Client\n"
        "from mosaic.client.archive import import_archive\n"
        "client = Client.connect(Path(sys.argv[1]))\n"
        "def kill(done, total, what):\n    if done > total / 2: os.kill(os.getpid(), 9)\n"
        "import_archive(client, Path(sys.argv[2]), progress=kill)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(elsewhere), str(path)], timeout=60)
    assert done.returncode == -9
    paths = VarPaths(elsewhere)
    assert paths.staged(made.run_id).folder.exists() and not list(paths.runs.iterdir())
    with Client.connect(elsewhere) as client:
        assert client.runs() == []
    # A daemon that starts sweeps it, and so does the next import.
    stop_daemon(paths)
    with Client.connect(elsewhere) as client:
        assert list(paths.imports.iterdir()) == []
        assert [one.new for one in import_archive(client, path)] == [True]


def test_a_trained_run_is_evaluated_and_goes_on_elsewhere(
    var: Path, elsewhere: Path, run_mosaic: RunMosaic
) -> None:
    run_mosaic("train", "ppo", "CartPole-v1", "--total-timesteps", "2k", "--set", "checkpoint_every=1000")
    archive = var.parent / "run.tar.gz"
    run_mosaic("export", "last", "-o", str(archive))
    # Whatever still led to the old place would find nothing there.
    stop_daemon(VarPaths(var))
    var.rename(var.parent / "gone")
    there = {"MOSAIC_VAR": str(elsewhere)}
    run_mosaic("import", str(archive), env=there)
    shown = json.loads(run_mosaic("show", "last", "--json", env=there).stdout)
    assert shown["outcome"] == "completed" and shown["run_dir"].startswith(str(elsewhere))
    told = json.loads(run_mosaic("eval", shown["run_id"], "--episodes", "2", "--json", env=there).stdout)
    assert str(elsewhere) in json.dumps(told)
    run_mosaic("train", "--resume", shown["run_id"], "--extend", "1k", env=there)
    states = [one["outcome"] for one in json.loads(run_mosaic("runs", "--json", env=there).stdout)]
    assert states == ["completed"] * 3
    var.mkdir()
