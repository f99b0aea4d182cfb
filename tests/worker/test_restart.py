"""A run that faults goes on from its last checkpoint."""

from __future__ import annotations

import os
from pathlib import Path

from mosaic.client import Client, train_config
from mosaic.contract.events import LifecycleReader


def test_a_restarted_run_goes_on_from_its_last_checkpoint_and_ends_the_same(client: Client) -> None:
    def config() -> dict[str, object]:
        params = {"checkpoint_every": 4_000}
        made = train_config("ppo", "CartPole-v1", total_timesteps=60_000, params=params)
        made["schedule"] = {"max_restarts": 1}
        return made

    whole, broken = client.submit(config()), client.submit(config())
    for chunk in client.logs(broken.run_id, stream="events", follow=True):
        if b"checkpoint_saved" in chunk:
            break
    training_pid = client.get(broken.run_id).training_pid
    assert training_pid is not None
    os.kill(training_pid, 9)
    runs = [client.wait(run.run_id, timeout=120) for run in (whole, broken)]
    assert [run.outcome for run in runs] == ["completed", "completed"]
    assert [entry.status for entry in runs[1].history].count("FAULT") == 1
    models = [next(Path(run.run_dir).glob("runs/*/ppo.cleanrl_model")).read_bytes() for run in runs]
    assert models[0] == models[1]
    assert len(list(Path(runs[1].run_dir).glob("runs/*"))) == 1
    events = LifecycleReader(Path(runs[1].run_dir) / "logs" / "events.jsonl").poll()
    saved = [event.payload["step"] for event in events if event.event == "checkpoint_saved"]
    assert saved == sorted(saved)
    returns = [client.metrics(run.run_id).series("charts/episodic_return") for run in runs]
    assert list(returns[0].steps) == list(returns[1].steps)
    assert list(returns[0].values) == list(returns[1].values)
