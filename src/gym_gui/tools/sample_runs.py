"""Real runs of every kind, so that each view has something true to show."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mosaic.client import Client, RunRecord, eval_config, train_config

_MOST_SECONDS = 600.0
_LIVE_STEPS = 50_000_000


@dataclass(frozen=True)
class SampleRuns:
    """The runs by what they are there for."""

    seeds: list[RunRecord]
    """One configuration with three seeds."""
    other: RunRecord
    """Another algorithm on the same environment, with videos."""
    continuous: RunRecord
    evaluation: RunRecord
    failed: RunRecord
    live: RunRecord
    waiting: RunRecord


def make_runs(client: Client, folder: Path) -> SampleRuns:
    """Train all of them, or use those that an earlier call has left; takes a minute or two.

    Modules and scripts are looked for in `folder`.
    """
    desk = _Desk(client, folder)
    seeds = [desk.train("seeds", "ppo", "CartPole-v1", 60_000, seed=seed) for seed in (1, 2, 3)]
    other = desk.train("other", "dqn", "CartPole-v1", 30_000, params={"capture_video": True})
    continuous = desk.train("continuous", "ppo_continuous_action", "Pendulum-v1", 30_000)
    failed = desk.train("failed", str(_crashing_script(folder)), "Robot-v0", 10)
    for run in (*seeds, other, continuous, failed):
        client.wait(run.run_id, timeout=_MOST_SECONDS)
    evaluation = desk.evaluate("evaluation", seeds[0])
    client.wait(evaluation.run_id, timeout=_MOST_SECONDS)
    live = desk.train("live", "ppo", "CartPole-v1", _LIVE_STEPS, seed=7, params={"num_envs": 8})
    every_cpu = client.health().cpus
    waiting = desk.train("waiting", "sac_continuous_action", "Pendulum-v1", 20_000, cpus=every_cpu)
    _until_training(client, live)
    return SampleRuns(seeds, other, continuous, evaluation, failed, live, waiting)


class _Desk:
    """Submits a run unless one with this tag has ended already."""

    def __init__(self, client: Client, folder: Path) -> None:
        self._client = client
        self._folder = folder
        self._known = {
            (tag, run.worker_config.get("seed")): run
            for run in client.runs()
            if run.outcome in ("completed", "failed")
            for tag in run.tags
        }

    def train(self, tag: str, algo: str, env_id: str, steps: int, **options: Any) -> RunRecord:
        config = train_config(algo, env_id, total_timesteps=steps, tags=[tag], folder=self._folder, **options)
        return self._submit(tag, config)

    def evaluate(self, tag: str, run: RunRecord) -> RunRecord:
        config = eval_config(
            run.run_id,
            episodes=40,
            batch_size=10,
            tags=[tag],
            folder=self._folder,
            var=self._client.paths.root,
        )
        return self._submit(tag, config)

    def _submit(self, tag: str, config: dict[str, Any]) -> RunRecord:
        seed = config["metadata"]["worker"]["config"].get("seed")
        return self._known.get((tag, seed)) or self._client.submit(config)


def end_runs(client: Client) -> None:
    """Cancel what still lives or waits, and wait until it is gone."""
    live = [run for run in client.runs() if not run.ended]
    for run in sorted(live, key=lambda run: run.status != "INIT"):
        client.cancel(run.run_id, "the pictures are taken")
    for run in live:
        client.wait(run.run_id, timeout=_MOST_SECONDS)


def _until_training(client: Client, run: RunRecord) -> None:
    """Return when the run has numbers to show."""
    deadline = time.monotonic() + _MOST_SECONDS
    while not client.get(run.run_id).headline.get("episodes"):
        assert time.monotonic() < deadline, f"run {run.run_id} has no numbers yet"
        time.sleep(0.5)


def _crashing_script(folder: Path) -> Path:
    script = folder / "my_ppo.py"
    script.write_text('raise SystemExit("the replay buffer needs 24 GB, and 16 GB are free")\n', "utf-8")
    return script
