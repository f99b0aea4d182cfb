"""The Python API: submit runs to the trainer daemon, watch them, read what they leave behind.

>>> from mosaic.client import Client
>>> client = Client.connect()
>>> run = client.submit(train_config("ppo", "CartPole-v1", total_timesteps=50_000))
>>> client.wait(run.run_id).outcome
'completed'
"""

from mosaic.client.client import Client
from mosaic.client.configs import eval_config, list_policies, resume_config, train_config
from mosaic.client.records import (
    HealthRecord,
    HistoryEntry,
    PublishedItem,
    RunHeadline,
    RunPage,
    RunRecord,
    RunRemoved,
)
from mosaic.contract.run_filter import RunQuery

__all__ = [
    "Client",
    "HealthRecord",
    "HistoryEntry",
    "PublishedItem",
    "RunHeadline",
    "RunPage",
    "RunQuery",
    "RunRecord",
    "RunRemoved",
    "eval_config",
    "list_policies",
    "resume_config",
    "train_config",
]
