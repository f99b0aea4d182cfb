"""The live view: what it knows and what it draws."""

from __future__ import annotations

import io
import time
from typing import Any

import pytest
from rich.console import Console

from mosaic.cli.live.board import Board
from mosaic.cli.live.panel import render
from mosaic.cli.live.views import PlainView, plain_line
from mosaic.client import HistoryEntry, RunHeadline, RunRecord

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
        "worker_type": "cleanrl",
        "status": status,
        "outcome": None,
        "reason": None,
        "run_dir": f"/data/mosaic/trainer/runs/{run_id}",
        "tags": [],
        "submitted_at": time.time(),
        "started_at": None,
        "ended_at": None,
        "exit_code": None,
        "supervisor_pid": None,
        "training_pid": None,
        "config": {
            "metadata": {"worker": {"config": {"algo": "ppo", "env_id": "CartPole-v1", "seed": number}}}
        },
        "headline": {},
        "worker": {},
        "history": [entry],
    }
    return RunRecord(**{**fields, **changes})


def drawn(board: Board, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(render(board))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def move(board: Board, run: RunRecord, seq: int, status: str, **fields: Any) -> None:
    entry = {"outcome": None, "reason": None, "at": time.time(), **fields}
    board.apply(HistoryEntry(seq, run.run_id, status, **entry))


def test_a_waiting_run_says_why() -> None:
    text = drawn(Board.of([record(reason="waits for 2 more CPUs")]))
    assert "waiting for 2 more CPUs" in text
    assert "ppo on CartPole-v1, seed 1" in text
    assert "01M7GDQ48Q692K09GV9V0QZ0E1" in text


def test_a_training_run_shows_all_its_numbers_in_80_columns() -> None:
    run = record()
    board = Board.of([run])
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


@pytest.mark.parametrize("width", [80, 100, 200])
def test_several_runs_have_a_row_each(width: int) -> None:
    runs = [record(number) for number in range(1, 6)]
    board = Board.of(runs)
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
    text = drawn(Board.of([run]))
    assert "last –   mean –" in text
    assert "left" not in text


def test_an_update_that_is_old_or_of_another_run_changes_nothing() -> None:
    run = record(5, status="EXEC")
    board = Board.of([run])
    assert board.apply(HistoryEntry(4, run.run_id, "HSHK", None, None, 0.0)) is None
    assert board.apply(HistoryEntry(9, "another", "TERM", "failed", None, 0.0)) is None
    assert board.rows[run.run_id].status == "EXEC"


def test_a_restarted_run_begins_anew() -> None:
    run = record(status="EXEC", headline=dict(HEADLINE))
    board = Board.of([run])
    move(board, run, 2, "FAULT", reason="the process is gone")
    assert "failed  the process is gone" in drawn(board)
    move(board, run, 3, "INIT", reason="starts again")
    assert board.rows[run.run_id].headline == {}
    assert not board.all_ended()


def test_the_board_is_done_when_every_run_has_ended() -> None:
    runs = [record(1), record(2)]
    board = Board.of(runs)
    move(board, runs[0], 3, "TERM", outcome="cancelled")
    assert not board.all_ended()
    assert board.last_seq == 2
    move(board, runs[1], 4, "TERM", outcome="completed")
    assert board.all_ended()


def test_plain_lines_tell_each_state_once(capsys: pytest.CaptureFixture[str]) -> None:
    run = record(reason="waits for its turn")
    board = Board.of([run])
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
    assert lines == ["waiting for its turn", "starting", "training"]


def test_a_plain_line_holds_the_numbers() -> None:
    board = Board.of([record(status="EXEC", headline=dict(HEADLINE))])
    line = plain_line(next(iter(board.rows.values())), several=True)
    assert line == (
        "ppo on CartPole-v1, seed 1: training  62 %, 310,272 of 500,000 steps, 15,300 steps/s, "
        "return 500.0 (mean 487.3), 0:12 left"
    )
