"""The live view: what it knows and what it draws."""

from __future__ import annotations

import io
import re
import time
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from mosaic.cli.live.board import Board
from mosaic.cli.live.views import PlainView, plain_line, render
from mosaic.client import Client, HistoryEntry, RunHeadline, RunRecord
from support.records import plain_record
from support.runs import long_config, wait_for_status
from support.terminal import at_terminal

HEADLINE = {
    "step": 310_272,
    "total_steps": 500_000,
    "sps": 15_300.4,
    "last_return": 500.0,
    "mean_return": 487.31,
    "episodes": 1203,
    "progress": 0.62,
    "phase": "training",
    "time_shares": {"env": 0.31, "update": 0.52, "act": 0.17, "other": 0.0},
}


def record(number: int = 1, status: str = "INIT", **changes: Any) -> RunRecord:
    run_id = f"01M7GDQ48Q692K09GV9V0QZ0E{number}"
    entry = HistoryEntry(number, run_id, status, None, None, time.time())
    fields: dict[str, Any] = {
        "run_id": run_id,
        "run_name": "ppo-cartpole-v1",
        "status": status,
        "run_dir": f"/data/mosaic/trainer/runs/{run_id}",
        "submitted_at": time.time(),
        "config": {
            "metadata": {"worker": {"config": {"algo": "ppo", "env_id": "CartPole-v1", "seed": number}}}
        },
        "history": [entry],
    }
    return plain_record(**{**fields, **changes})


def drawn(board: Board, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(render(board))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def move(board: Board, run: RunRecord, seq: int, status: str, **fields: Any) -> None:
    entry = {"outcome": None, "reason": None, "at": time.time(), **fields}
    board.apply(HistoryEntry(seq, run.run_id, status, **entry))


def test_an_evaluation_that_tells_little_is_shown() -> None:
    text = drawn(Board([record(status="EXEC", headline={"evaluation": {"batch": 3, "mean": 1.5}})]))
    assert "3   mean 1.5 ± –   – to –" in text


def test_a_waiting_run_says_why() -> None:
    text = drawn(Board([record(reason="waits for 2 more CPUs")]))
    assert "waiting for 2 more CPUs" in text
    assert "ppo on CartPole-v1, seed 1" in text
    assert "01M7GDQ48Q692K09GV9V0QZ0E1" in text


def test_a_training_run_shows_all_its_numbers_in_80_columns() -> None:
    run = record()
    board = Board([run])
    move(board, run, 2, "HSHK")
    assert "starting" in drawn(board)
    move(board, run, 3, "EXEC")
    board.apply(RunHeadline(run.run_id, HEADLINE))
    text = drawn(board)
    for part in (
        "training",
        "62 %",
        "0:12 left",
        "310,272 of 500,000",
        "15,300 per second",
        "last 500.0",
        "mean 487.3",
        "update 52 %, env 31 %, act 17 %",
        run.run_dir,
    ):
        assert part in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("width", [36, 40, 60])
def test_a_narrow_terminal_shows_fewer_numbers_and_each_in_full(width: int) -> None:
    runs = [replace(record(number), run_id=f"{number}1M7GDQ48Q6") for number in range(1, 4)]
    board = Board(runs)
    for run in runs:
        move(board, run, 10 + run.history[-1].seq, "EXEC")
        board.apply(RunHeadline(run.run_id, HEADLINE))
    several = drawn(board, width).splitlines()
    assert max(map(len, several)) <= width
    rows = [line for line in several if "training" in line]
    assert len(rows) == 3 and all("62 %" in line and "…" not in line for line in rows)
    del board.rows[runs[1].run_id], board.rows[runs[2].run_id]
    one = drawn(board, width).splitlines()
    assert max(map(len, one)) <= width


def test_the_panel_follows_the_size_of_its_terminal(client: Client) -> None:
    run = client.submit(long_config())
    wait_for_status(client, run.run_id, "EXEC")
    with at_terminal("watch", run.run_id, may_change=True) as terminal:
        terminal.read_until("folder")
        terminal.resize(40)
        # What the terminal has made of the wider lines is wiped before the panel is drawn anew.
        terminal.read_until(r"\x1b\[2J\x1b\[H(.|\n)*folder")
        lines = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", terminal.seen[terminal.seen.index("\x1b[2J") :])
        assert max(len(line) for line in re.split(r"[\r\n]+", lines)) <= 40
        terminal.resize(100)
        terminal.read_until(r"[^\r\n]{90}")
        assert "\x1b[2J" not in terminal.seen
        client.cancel(run.run_id)
        assert terminal.wait() == 1
    client.wait(run.run_id, timeout=60)


@pytest.mark.parametrize("width", [80, 100, 200])
def test_several_runs_have_a_row_each(width: int) -> None:
    runs = [record(number) for number in range(1, 6)]
    board = Board(runs)
    for run in runs[:2]:
        move(board, run, 10 + run.history[-1].seq, "EXEC")
        board.apply(RunHeadline(run.run_id, HEADLINE))
    lines = drawn(board, width).splitlines()
    rows = [line for line in lines if line.split()[:1] and line.split()[0] in "12345"]
    assert len(rows) == 5
    assert all("training" in line and "500.0" in line and "487.3" in line for line in rows[:2])
    assert all("waiting" in line for line in rows[2:])
    assert max(map(len, lines)) <= width


def test_numbers_that_are_not_known_yet_are_dashes() -> None:
    run = record(status="EXEC", headline={"step": 100, "progress": None, "last_return": None})
    text = drawn(Board([run]))
    assert "mean –   last –" in text
    assert "left" not in text


def test_an_update_that_is_old_or_of_another_run_changes_nothing() -> None:
    run = record(5, status="EXEC")
    board = Board([run])
    assert board.apply(HistoryEntry(4, run.run_id, "HSHK", None, None, 0.0)) is None
    assert board.apply(HistoryEntry(9, "another", "TERM", "failed", None, 0.0)) is None
    assert board.rows[run.run_id].status == "EXEC"


def test_a_restarted_run_says_why_and_begins_anew() -> None:
    run = record(status="EXEC", headline=dict(HEADLINE), started_at=time.time() - 100)
    board = Board([run])
    move(board, run, 2, "FAULT", reason="the process is gone")
    assert "failed  the process is gone" in drawn(board)
    sentence = "restart 1 of 2 after: the process is gone"
    move(board, run, 3, "INIT", reason=sentence)
    row = board.rows[run.run_id]
    assert (row.headline, row.state) == ({}, "restarting")
    assert sentence in drawn(board)
    board.apply(RunHeadline(run.run_id, {"phase": "waiting", "waits_for": "waits for 1 more CPU"}))
    assert row.state == "waiting"
    assert "1 of 2 after: the process is gone" in drawn(board)
    move(board, run, 4, "HSHK")
    assert (row.state, sentence in drawn(board)) == ("restarting", True)
    move(board, run, 5, "EXEC")
    assert "1 of 2 after: the process is gone" in drawn(board)
    # The clock goes on from the first start.
    assert (row.elapsed() or 0) >= 100


def test_what_is_known_of_an_earlier_start_is_not_shown_as_new() -> None:
    history = [
        HistoryEntry(1, "x", "INIT", None, "waits for its turn", 0.0),
        HistoryEntry(2, "x", "FAULT", None, "gone", 1.0),
        HistoryEntry(3, "x", "INIT", None, "restart 1 of 1 after: gone", 2.0),
    ]
    run = record(reason="waits for 1 more CPU", headline=dict(HEADLINE), history=history)
    text = drawn(Board([run]))
    assert "waiting for 1 more CPU" in text
    assert "1 of 1 after: gone" in text
    assert "310,272" not in text


def test_what_a_run_waits_for_is_shown_as_it_changes() -> None:
    run = record(reason="waits behind 2 runs in the queue")
    board = Board([run])
    assert "waiting behind 2 runs in the queue" in drawn(board)
    board.apply(RunHeadline(run.run_id, {"phase": "waiting", "waits_for": "waits for 1 more CPU"}))
    assert "waiting for 1 more CPU" in drawn(board)
    move(board, run, 2, "HSHK")
    board.apply(RunHeadline(run.run_id, {"phase": "waiting", "waits_for": "waits for 1 more CPU"}))
    assert "starting" in drawn(board)


def test_a_paused_run_says_so_and_how_to_go_on() -> None:
    now = time.time()
    run = record(status="EXEC", headline=dict(HEADLINE), started_at=now - 500)
    board = Board([run])
    move(board, run, 2, "PAUSE", reason="paused by the user", at=now - 400)
    text = drawn(board)
    for part in ("paused for 6:4", "62 %", f"resume {run.run_id}", "1:40"):
        assert part in text
    assert "left" not in text
    assert max(map(len, text.splitlines())) <= 80
    move(board, run, 3, "EXEC", at=now - 100)
    assert int(board.rows[run.run_id].elapsed() or 0) == 200
    history = [
        HistoryEntry(1, "x", "EXEC", None, None, now - 500),
        HistoryEntry(2, "x", "PAUSE", None, None, now - 400),
        HistoryEntry(3, "x", "EXEC", None, None, now - 100),
    ]
    again = Board([record(status="EXEC", started_at=now - 500, history=history)])
    assert [int(row.elapsed() or 0) for row in again.rows.values()] == [200]


def test_several_runs_say_why_they_wait_and_start_again() -> None:
    runs = [record(1, status="PAUSE"), record(2, reason="waits behind 1 run in the queue"), record(3)]
    board = Board(runs)
    move(board, runs[2], 9, "INIT", reason="restart 2 of 3 after: exit code 5")
    text = drawn(board)
    for part in (
        "paused",
        "waiting",
        "restarting",
        "waiting behind 1 run",
        "seed 3: restart 2 of 3 after: exit",
    ):
        assert part in text


def test_the_board_is_done_when_every_run_has_ended() -> None:
    runs = [record(1), record(2)]
    board = Board(runs)
    move(board, runs[0], 3, "TERM", outcome="cancelled")
    assert board.live
    assert board.last_seq == 2
    move(board, runs[1], 4, "TERM", outcome="completed")
    assert not board.live


def test_plain_lines_tell_each_state_once(capsys: pytest.CaptureFixture[str]) -> None:
    run = record(reason="waits for its turn")
    board = Board([run])
    with PlainView(board) as view:
        for seq, status in ((2, "HSHK"), (3, "RDY"), (4, "EXEC")):
            entry = HistoryEntry(seq, run.run_id, status, None, None, time.time())
            row = board.apply(entry)
            assert row is not None
            view.show(row, entry)
        for _ in range(20):
            news = RunHeadline(run.run_id, HEADLINE)
            row = board.apply(news)
            assert row is not None
            view.show(row, news)
    first, *lines = capsys.readouterr().out.splitlines()
    assert run.run_id in first
    assert lines[:2] == ["waiting for its turn", "starting"]
    assert lines[2].startswith("training  62 %") and len(lines) == 3


def test_a_run_that_starts_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    run = record(reason="waits for its turn")
    board = Board([run])
    updates: list[HistoryEntry | RunHeadline] = [
        HistoryEntry(2, run.run_id, "HSHK", None, None, time.time()),
        HistoryEntry(3, run.run_id, "EXEC", None, None, time.time()),
        RunHeadline(run.run_id, {"phase": "importing", "total_steps": 500_000}),
        RunHeadline(run.run_id, {"phase": "making environments", "total_steps": 500_000}),
        RunHeadline(run.run_id, {"phase": "first steps", "total_steps": 500_000}),
    ]
    seen = []
    with PlainView(board) as view:
        for update in updates:
            row = board.apply(update)
            assert row is not None
            view.show(row, update)
            seen.append(drawn(board).splitlines()[1].strip())
    started = ["starting", "starting: importing", "starting: making environments", "training"]
    assert capsys.readouterr().out.splitlines()[1:] == ["waiting for its turn", *started]
    assert seen == ["starting", *started]


def test_a_run_that_waits_for_space_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    run = record(status="EXEC")
    board = Board([run])
    waits, goes_on = HEADLINE | {"phase": "waiting for space"}, HEADLINE | {"phase": "training"}
    with PlainView(board) as view:
        for headline in (waits, waits, goes_on):
            update = RunHeadline(run.run_id, headline)
            row = board.apply(update)
            assert row is not None
            view.show(row, update)
    lines = capsys.readouterr().out.splitlines()[-2:]
    assert [line.split("  ")[0] for line in lines] == ["waiting for space", "training"]


def test_plain_lines_tell_what_a_run_waits_for_and_why_it_starts_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = record(reason="waits behind 1 run in the queue")
    board = Board([run])
    updates: list[HistoryEntry | RunHeadline] = [
        RunHeadline(run.run_id, {"phase": "waiting", "waits_for": "waits for 1 more CPU"}),
        HistoryEntry(2, run.run_id, "EXEC", None, None, time.time()),
        HistoryEntry(3, run.run_id, "PAUSE", None, "paused by the user", time.time()),
        HistoryEntry(4, run.run_id, "EXEC", None, None, time.time()),
        HistoryEntry(5, run.run_id, "FAULT", None, "exit code 5", time.time()),
        HistoryEntry(6, run.run_id, "INIT", None, "restart 1 of 1 after: exit code 5", time.time()),
        HistoryEntry(7, run.run_id, "HSHK", None, None, time.time()),
    ]
    with PlainView(board) as view:
        for update in updates:
            row = board.apply(update)
            assert row is not None
            view.show(row, update)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "waiting behind 1 run in the queue",
        "waiting for 1 more CPU",
        "training",
        "paused",
        "training",
        "failed (exit code 5)",
        "restart 1 of 1 after: exit code 5",
    ]


def test_a_plain_line_holds_the_numbers() -> None:
    board = Board([record(status="EXEC", headline=dict(HEADLINE))])
    line = plain_line(next(iter(board.rows.values())), several=True)
    assert line == (
        "ppo on CartPole-v1, seed 1: training  62 %, 310,272 of 500,000 steps, 15,300 steps/s, "
        "mean return 487.3 (last 500.0), 0:12 left"
    )


def test_an_evaluation_shows_how_far_it_is_and_its_newest_batch() -> None:
    asked = {"algo": "ppo", "env_id": "CartPole-v1", "seed": 1, "extras": {"mode": "policy_eval"}}
    run = record(config={"metadata": {"worker": {"config": asked}}})
    board = Board([run])
    move(board, run, 2, "EXEC")
    batch = {"batch": 3, "target_episodes": 1000, "mean": 112.34, "std": 20.0, "min": 90.1, "max": 142.6}
    told = {**HEADLINE, "total_steps": None, "episodes": 150, "progress": 0.15, "evaluation": batch}
    board.apply(RunHeadline(run.run_id, told))
    text = drawn(board)
    for part in ("evaluating", "150 of 1,000 episodes", "15 %", "mean 112.3 ± 20.0", "90.1 to 142.6"):
        assert part in text
    line = plain_line(next(iter(board.rows.values())), several=False)
    assert line.startswith("evaluating  150 of 1,000 episodes, ")
    move(board, run, 3, "TERM", outcome="completed")
    assert next(iter(board.rows.values())).state == "completed"
