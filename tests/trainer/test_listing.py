"""Lists of runs: whatever is asked for comes in pages, as the window would find and sort it itself."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import pytest

from gym_gui.models.filters import STATES, RunFilter, counts_by_state, in_state, query_for, search_text
from gym_gui.models.run_table import RunTable
from gym_gui.models.runs import RunBook
from mosaic.client import Client, RunQuery, RunRecord, RunRemoved
from mosaic.client.configs import settings_of
from mosaic.contract.capabilities import parameter_defaults
from mosaic.contract.paths import VarPaths
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.run_filter import WHOLE
from mosaic.trainer.listing import Listing
from mosaic.trainer.registry import Registry
from support.runs import script_config

DRAW = random.Random(3)
ALGOS = ("ppo", "dqn", "c51", "/elsewhere/my_ppo.py", "Größe.py")
HEADLINES: list[dict[str, Any] | None] = [
    {"mean_return": 12.5, "step": 5000, "sps": 900.0, "episodes": 12, "progress": 0.5},
    {"mean_return": 480.0, "step": 500_000, "sps": 8000.5, "episodes": 999, "progress": 1.0},
    {"mean_return": None, "step": 0},
    {},
]


def fill(root: Path, count: int) -> VarPaths:
    """Ended, waiting and odd runs, straight into a database."""
    paths = VarPaths(root)
    paths.make()
    Registry(paths).close()
    with sqlite3.connect(paths.database) as database:
        for number in range(count):
            asked = {
                "run_id": f"{number:026d}",
                "algo": ALGOS[number % len(ALGOS)],
                "env_id": DRAW.choice(["CartPole-v1", "Acrobot-v1", "none", None]),
                "seed": DRAW.choice([1, 2, 3, None]),
                "total_timesteps": DRAW.choice([1000, 50_000]),
                "extras": {
                    "mode": DRAW.choice(["train", "policy_eval"]),
                    "notes": DRAW.choice(["", "first try"]),
                    "num_envs": DRAW.choice([1, 8]),
                    "algo_params": {
                        "learning_rate": DRAW.choice([0.001, 2.5e-4]),
                        "anneal_lr": number % 2 == 0,
                    },
                },
            }
            config = {
                "resources": {},
                "schedule": {"max_restarts": 0, "max_wallclock_minutes": None},
                "metadata": {
                    "worker": {"type": "cleanrl", "python": None, "config": asked},
                    "ui": {"notes": DRAW.choice([None, "second look", "ÄRGER"])},
                },
            }
            status = DRAW.choice(["TERM", "TERM", "TERM", "INIT", "FAULT", "PAUSE"])
            ended = 2000.0 + number if status == "TERM" else None
            row = {
                "run_id": asked["run_id"],
                "request_id": str(number),
                "run_name": DRAW.choice(["nightly", "Sweep", "ppo-cartpole-v1"]),
                "worker_type": "cleanrl",
                "config": json.dumps(config) if number != 7 else "{}",
                "tags": json.dumps(DRAW.sample(["paper", "Night", "größer"], DRAW.randrange(3))),
                "cpus": 1,
                "status": status,
                "outcome": DRAW.choice(["completed", "failed", "timed_out"]) if ended else None,
                "reason": DRAW.choice([None, "restart 1 of 2 after: x"]) if status == "INIT" else None,
                "submitted_at": 1000.0 + number,
                "started_at": 1500.0 + number if ended else None,
                "ended_at": ended,
                "headline": json.dumps(DRAW.choice(HEADLINES)),
                "priority": DRAW.choice([0, 0, 5]),
                "place": float(DRAW.randrange(100)),
            }
            marks = ", ".join("?" * len(row))
            database.execute(f"INSERT INTO runs ({', '.join(row)}) VALUES ({marks})", list(row.values()))
    database.close()
    return paths


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Listing, list[RunRecord]]]:
    """A list of 240 runs, and the same runs as the window knows them."""
    registry = Registry(fill(tmp_path_factory.mktemp("listing"), 240))
    listing = Listing(registry)
    yield listing, list(read(listing, RunQuery(fields=WHOLE)))
    registry.close()


def read(listing: Listing, query: RunQuery, size: int = 100) -> Iterator[RunRecord]:
    """All runs of a list, page by page."""
    from mosaic.trainer.service import _listed, _query

    class Alone:
        """An engine without live runs."""

        paths = VarPaths(Path("/nowhere"))
        waits_for = staticmethod(lambda run_id, ahead: None)
        live_headline = staticmethod(lambda run_id: None)

    cursor = ""
    while True:
        asked = _query(pb.ListRunsRequest(**vars(replace(query, limit=size, cursor=cursor))))
        page = asyncio.run(listing.page(asked))
        for run in page.runs:
            yield RunRecord.from_message(_listed(Alone(), run, page.ahead))  # type: ignore[arg-type]
        cursor = page.next_cursor
        if not cursor:
            return


FILTERS = (
    *("", "ppo", "cart", "nightly", "#paper", "seed 1", "none", "evaluation", "größe", "ÄRGER", "first try"),
    *("algo=ppo", "algo=my_ppo.py", "algo:pp", "algo!=ppo", "env=cartpole-v1", "env:bot", "env=*-v1"),
    *("tag=paper", "tag!=paper", "tag:gr", "tag=größer", "state=failed", "state:time", "state=restarting"),
    *("name=sweep", "notes:look", "notes=", "id:00000012", "seed=1", "seed>1", "return>400", "return<=12.5"),
    *("return!=480", "steps>=5k", "speed<1k", "episodes=12", "progress>=50%", "priority=5", "duration=500"),
    *("learning_rate=0.001", "learning_rate<0.001", "anneal_lr=true", "anneal_lr=false", "num_envs=8"),
    *("total_timesteps=50k", "mode=policy_eval", "worker=cleanrl", "gamma=0.99", "unheard_of=1", "env_id:a"),
    *('ppo return>1 "first try"', "algo=dqn tag=paper seed=2", "python=x", "age>1d", "age<1d"),
)


def test_the_daemon_finds_what_the_window_finds(many: tuple[Listing, list[RunRecord]]) -> None:
    listing, runs = many

    def settings(run: RunRecord) -> dict[str, Any]:
        return parameter_defaults(run.worker_type, str(run.worker_config.get("algo"))) | settings_of(run)

    for text in FILTERS:
        wanted = RunFilter(text=text)
        expected = [run.run_id for run in runs if wanted.finds(run, search_text(run), partial(settings, run))]
        assert [run.run_id for run in read(listing, query_for(wanted))] == expected, text
        page = asyncio.run(listing.page(RunQuery(filter=text, count=True, limit=1)))
        assert sum(page.counts.values()) == len(expected), text
    assert sum(bool(list(read(listing, query_for(RunFilter(text=text)), 1000))) for text in FILTERS) > 50


def test_the_states_of_the_window_are_found_and_counted(many: tuple[Listing, list[RunRecord]]) -> None:
    listing, runs = many
    counts = counts_by_state(asyncio.run(listing.page(RunQuery(count=True))).counts)
    for state in STATES:
        expected = [run.run_id for run in runs if in_state(run, state)]
        assert [run.run_id for run in read(listing, query_for(RunFilter(state)))] == expected
        assert counts[state] == len(expected) > 0


@pytest.mark.parametrize("descending", [False, True])
def test_the_daemon_sorts_as_the_table_does(many: tuple[Listing, list[RunRecord]], descending: bool) -> None:
    listing, runs = many
    book = RunBook()
    book.set_defaults({algo: parameter_defaults("cleanrl", algo) for algo in (*ALGOS, "None")})
    book.update(runs)
    table = RunTable(book)
    for key in (
        *("name", "tag", "algo", "env", "seed", "state", "return", "steps", "speed", "date", "duration"),
        *("priority", "episodes", "notes", "id", "learning_rate", "anneal_lr", "gamma", "num_envs"),
    ):
        table.sort(key, descending)
        table.look_again()
        found = [run.run_id for run in read(listing, query_for(RunFilter(), key, descending), size=37)]
        assert found == table.ids, key


def test_the_queue_is_in_the_order_in_which_runs_start(many: tuple[Listing, list[RunRecord]]) -> None:
    listing, runs = many
    waiting = sorted(
        (run for run in runs if run.status == "INIT"), key=lambda run: (-run.priority, run.place, run.run_id)
    )
    query = RunQuery(statuses=["INIT"], order_by="queue", ascending=True)
    assert [run.run_id for run in read(listing, query, size=5)] == [run.run_id for run in waiting]
    assert [run.run_id for run in read(listing, replace(query, ascending=False), size=5)] == [
        run.run_id for run in reversed(waiting)
    ]
    page = asyncio.run(listing.page(RunQuery(statuses=["INIT"], limit=1000)))
    assert [page.ahead[run.run_id] for run in waiting] == list(range(len(waiting)))


def test_ended_runs_come_by_their_end(many: tuple[Listing, list[RunRecord]]) -> None:
    listing, runs = many
    ended = sorted((run for run in runs if run.ended), key=lambda run: run.ended_at or 0)
    ids = [run.run_id for run in ended]
    assert [run.run_id for run in read(listing, RunQuery(order_by="ended"), 7)] == ids[::-1]
    old = RunQuery(order_by="ended", ascending=True, ended_before=ended[20].ended_at)
    assert [run.run_id for run in read(listing, old, 7)] == ids[:20]
    for times in (1, 2000):
        tags, without = ["paper"] * times, ["Night"] * times
        failed = RunQuery(statuses=["TERM"], outcomes=["failed"], tags=tags, without_tags=without)
        assert {run.run_id for run in read(listing, failed)} == {
            run.run_id
            for run in ended
            if run.outcome == "failed" and "paper" in run.tags and "Night" not in run.tags
        }


def test_a_list_has_only_what_was_asked_for(many: tuple[Listing, list[RunRecord]]) -> None:
    listing, runs = many
    (first, *_) = read(listing, RunQuery(fields=("run_id", "status")))
    assert (first.run_id, first.status) == (runs[0].run_id, runs[0].status)
    assert (first.run_name, first.config, first.headline) == ("", {}, {})
    for brief, whole in zip(read(listing, RunQuery()), runs, strict=True):
        names = ("algo", "env_id", "seed", "total_timesteps")
        assert [brief.worker_config.get(name) for name in names] == [
            whole.worker_config.get(name) for name in names
        ]
        assert (brief.notes, brief.headline, brief.tags) == (whole.notes, whole.headline, whole.tags)
        assert "resources" not in brief.config


def test_a_page_of_large_configs_ends_early_and_the_next_goes_on(tmp_path: Path) -> None:
    paths = fill(tmp_path, 12)
    with sqlite3.connect(paths.database) as database:
        # As an earlier release may have stored it.
        database.execute(
            "UPDATE runs SET config = json_set(config, '$.metadata.ui.big', hex(zeroblob(3000000)))"
        )
    database.close()
    registry = Registry(paths)
    listing = Listing(registry)
    page = asyncio.run(listing.page(RunQuery(fields=("config_json",))))
    assert len(page.runs) == 2 and page.next_cursor
    assert len(list(read(listing, RunQuery(fields=("run_id", "config_json"))))) == 12
    assert len(asyncio.run(listing.page(RunQuery())).runs) == 12
    registry.close()


def test_what_is_no_json_in_the_database_spoils_no_list(tmp_path: Path) -> None:
    paths = fill(tmp_path, 6)
    registry = Registry(paths)
    with sqlite3.connect(paths.database) as database:
        database.execute("""UPDATE runs SET headline = '{"mean_return": NaN}' WHERE position = 3""")
        database.execute("UPDATE runs SET config = '{torn' WHERE position = 4")
    database.close()
    listing = Listing(registry)
    for query in (
        RunQuery(),
        RunQuery(filter="return>1"),
        RunQuery(filter="ppo"),
        RunQuery(order_by="learning_rate"),
    ):
        assert asyncio.run(listing.page(query)).runs
    registry.close()


def test_a_client_reads_all_pages_and_hears_of_removed_runs(client: Client) -> None:
    runs = [client.submit(script_config("steps.py", tags=[f"t{number}"])) for number in range(3)]
    for run in runs:
        client.wait(run.run_id, timeout=60)
    ids = [run.run_id for run in reversed(runs)]
    assert [run.run_id for run in client.runs()] == ids
    assert [run.run_id for run in client.runs(limit=2)] == ids[:2]
    assert [run.run_id for run in client.runs(filter="tag=t1")] == [ids[1]]
    page = client.page(RunQuery(), 1, count=True)
    assert (page.total, page.counts) == (3, {("TERM", "completed"): 3})
    assert [run.run_id for run in client.page(RunQuery(), 5, page.cursor).runs] == ids[1:]
    assert client.runs()[0].config == client.get(ids[0]).config
    news: SimpleQueue[object] = SimpleQueue()

    def listen() -> None:
        for update in client.watch(since_seq=client.health().last_seq, headlines=True, timeout=60):
            news.put(update)
            if isinstance(update, RunRemoved):
                return

    listening = Thread(target=listen)
    listening.start()
    for number in range(600):
        client.label(ids[0], name=f"other {number}")
        with suppress(Empty):
            assert isinstance(news.get(timeout=0.1), RunRecord)
            break
    client.remove(ids[1])
    listening.join(60)
    told = [news.get() for _ in range(news.qsize())]
    assert told[-1] == RunRemoved(ids[1])
