"""A run's way through the daemon, with real processes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from mosaic.client import Client
from mosaic.contract.errors import ConflictError, NotFoundError, UserError
from mosaic.contract.events import LifecycleReader
from mosaic.contract.paths import VarPaths
from mosaic.contract.process import ProcessIdentity
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.trainer.intake import MOST_KEPT, keep_logs
from support.runs import end, long_config, script_config, wait_for_status


def test_a_run_goes_through_its_states_in_order_and_completes(client: Client) -> None:
    run = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    assert [entry.status for entry in run.history] == ["INIT", "HSHK", "RDY", "EXEC", "TERM"]
    assert (run.outcome, run.exit_code, run.reason) == ("completed", 0, None)
    assert run.worker["worker_kind"] == "cleanrl"
    assert run.worker["proto_version"] == "MOSAIC/1.0"
    assert run.worker["details"]["env_id"] == "None-v0"


def test_an_ended_run_leaves_the_files_of_the_contract(client: Client) -> None:
    run = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    paths, run_dir = client.paths, Path(run.run_dir)
    assert run_dir == paths.root / "trainer" / "runs" / run.run_id
    for file in ("analytics.json", "provenance.json", "supervisor.lock", "logs/cleanrl.stderr.log"):
        assert (run_dir / file).is_file(), file
    assert (run_dir / "logs/cleanrl.stdout.log").read_text() == "step=0\nstep=1\nstep=2\n"
    events = LifecycleReader(run_dir / "logs" / "events.jsonl").poll()
    assert events[0].event == "run_started"
    assert events[-1].event == "run_completed"
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert events[-1].payload["manifest"]["run_id"] == run.run_id
    kept = paths.root / "logs" / "trainer" / run.run_id
    assert (kept / "events.jsonl").read_bytes() == (run_dir / "logs" / "events.jsonl").read_bytes()
    assert (kept / "supervisor.stderr.log").read_text() == ""
    config = json.loads(paths.run_config(run.run_id).read_text())
    assert config["metadata"]["worker"]["config"]["run_id"] == run.run_id
    assert json.loads(paths.worker_config(run.run_id).read_text())["run_id"] == run.run_id


def test_a_script_that_fails_makes_a_failed_run_with_the_cause(client: Client) -> None:
    params = {"exit_code": 3, "complain": "no more coffee"}
    run = client.wait(client.submit(script_config("steps.py", params=params)).run_id, timeout=60)
    assert (run.outcome, run.exit_code) == ("failed", 3)
    assert run.reason == "no more coffee (exit code 3)"
    assert [entry.status for entry in run.history][-2:] == ["FAULT", "TERM"]
    assert run.history[-2].reason == run.reason


def test_cancel_really_ends_the_processes(client: Client) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    identities = [ProcessIdentity.of(pid) for pid in (run.supervisor_pid, run.training_pid) if pid]
    assert len(identities) == 2
    assert all(identities)
    client.cancel(run.run_id, "enough")
    run = client.wait(run.run_id, timeout=60)
    assert (run.outcome, run.reason) == ("cancelled", "enough")
    assert not any(identity.alive() for identity in identities if identity)
    events = LifecycleReader(Path(run.run_dir) / "logs" / "events.jsonl").poll()
    assert events[-1].event == "run_cancelled"


def test_cancelling_an_ended_run_says_that_it_has_ended(client: Client) -> None:
    run = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    with pytest.raises(ConflictError, match=r"has ended already \(completed\)"):
        client.cancel(run.run_id)


def test_a_killed_training_process_is_a_failed_run(client: Client) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    assert run.training_pid is not None
    os.kill(run.training_pid, 9)
    run = client.wait(run.run_id, timeout=60)
    assert run.outcome == "failed"
    assert "SIGKILL" in str(run.reason)


def test_a_submit_sent_twice_makes_one_run(client: Client) -> None:
    request = pb.SubmitRunRequest(config_json=json.dumps(script_config("steps.py")), request_id="the-same")
    first, second = (client._connection.call("SubmitRun", request) for _ in range(2))
    assert first.run_id == second.run_id
    assert len(client.runs()) == 1
    client.wait(first.run_id, timeout=60)


def test_runs_are_listed_newest_first_and_filtered(client: Client) -> None:
    runs = [
        client.wait(client.submit(script_config("steps.py", tags=tags)).run_id, timeout=60)
        for tags in (["a"], ["a", "b"], ["b"])
    ]
    newest_first = [run.run_id for run in reversed(runs)]
    assert [run.run_id for run in client.runs()] == newest_first
    assert [run.run_id for run in client.runs(tags=["a", "b"])] == [runs[1].run_id]
    assert [run.run_id for run in client.runs(limit=1)] == newest_first[:1]
    assert client.runs(statuses=["EXEC"]) == []


def test_a_run_is_found_by_the_beginning_of_its_id(client: Client) -> None:
    runs = [client.wait(client.submit(script_config("steps.py")).run_id, timeout=60) for _ in range(2)]
    first, second = runs[0].run_id, runs[1].run_id
    unique = next(first[:length] for length in range(1, 27) if not second.startswith(first[:length]))
    assert client.get(unique.lower()).run_id == first
    with pytest.raises(UserError, match="more than one run id"):
        client.get(first[:4])
    with pytest.raises(NotFoundError, match="There is no run 'ZZZZ'"):
        client.get("ZZZZ")
    with pytest.raises(UserError, match="is not a run id"):
        client.get("../etc")


def test_watching_replays_from_any_point_without_gap(client: Client) -> None:
    for _ in range(2):
        client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    last = client.health().last_seq
    for since in (0, 3, last - 1):
        seen = []
        for entry in client.watch(since_seq=since):
            seen.append(entry.seq)  # type: ignore[union-attr]
            if seen[-1] == last:
                break
        assert seen == list(range(since + 1, last + 1))


def test_removing_a_run_needs_its_end_and_takes_its_files(client: Client) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    with pytest.raises(ConflictError, match="cancel it first"):
        client.remove(run.run_id)
    end(client, run)
    assert client.remove(run.run_id) > 0
    assert not Path(run.run_dir).exists()
    assert not client.paths.run_config(run.run_id).exists()
    with pytest.raises(NotFoundError):
        client.get(run.run_id)
    assert client.runs() == []


def test_logs_are_followed_to_the_end_of_the_run(client: Client) -> None:
    run = client.submit(script_config("steps.py", steps=20, params={"pause": 0.02}))
    text = b"".join(client.logs(run.run_id, follow=True)).decode()
    assert text == "".join(f"step={step}\n" for step in range(20))
    with pytest.raises(UserError, match="is not a log of a run"):
        list(client.logs(run.run_id, stream="stdin"))


def test_what_a_run_printed_stays_when_its_folder_goes(client: Client) -> None:
    run = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    shutil.rmtree(run.run_dir)
    assert b"".join(client.logs(run.run_id)).decode() == "step=0\nstep=1\nstep=2\n"
    assert b"run_completed" in b"".join(client.logs(run.run_id, stream="events"))
    client.remove(run.run_id)
    assert client.paths.run_logs(run.run_id)["stdout"].read_text() == "step=0\nstep=1\nstep=2\n"


def test_of_a_long_log_the_last_lines_are_kept(tmp_path: Path) -> None:
    paths = VarPaths(tmp_path)
    run = paths.run("01RUN")
    run.logs.mkdir(parents=True)
    line = b"x" * 99 + b"\n"
    run.stdout.write_bytes(b"first\n" + line * (MOST_KEPT // 100))
    run.stderr.write_bytes(b"short\n")
    run.events.write_bytes(line * (MOST_KEPT // 100 + 5))
    keep_logs("01RUN", paths)
    kept = paths.kept_logs("01RUN")
    said, _, rest = (kept / run.stdout.name).read_bytes().partition(b"\n")
    assert said == b"[106 bytes before this were not kept]" and rest == line * (MOST_KEPT // 100 - 1)
    assert (kept / run.stderr.name).read_bytes() == b"short\n"
    assert (kept / run.events.name).read_bytes() == run.events.read_bytes(), "events are kept whole"
