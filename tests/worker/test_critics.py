"""TQC and CrossQ, beside their losses: what they refuse, and which statistics of batches they keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cleanrl_worker.algorithms import crossq, tqc
from cleanrl_worker.algorithms.sac_continuous_action import Batch, Temperature
from cleanrl_worker.kit.accelerate import as_tensors
from cleanrl_worker.schemas.check import check_together
from mosaic.contract.errors import UserError

ROWS, OBS, ACTIONS = 6, 3, 2
LOW, HIGH = torch.tensor([-1.0, -2.0]), torch.tensor([1.0, 4.0])


def test_tqc_must_keep_a_quantile() -> None:
    values = vars(tqc.Args(n_quantiles=3, top_quantiles_to_drop=3))
    with pytest.raises(UserError, match="a critic has only 3 quantiles"):
        check_together(values)


def test_crossq_keeps_the_statistics_of_both_observations_and_of_no_policys_loss() -> None:
    torch.manual_seed(5)
    generator = np.random.default_rng(5)

    def drawn(*shape: int) -> Any:
        return generator.normal(size=shape).astype(np.float32)

    columns = (drawn(ROWS, OBS), drawn(ROWS, OBS), drawn(ROWS, ACTIONS), drawn(ROWS), drawn(ROWS))
    batch = Batch(*columns, drawn(ROWS, ACTIONS))
    actor = crossq.NormedActor(OBS, LOW, HIGH).eval()
    critics = nn.ModuleList(crossq.NormedQNetwork(OBS, ACTIONS, 8) for _ in range(2)).eval()
    given, temperature = as_tensors(batch, "cpu"), Temperature(0.3)
    with torch.no_grad():
        next_actions = actor.act(given.next_obs, given.noise).numpy()
    crossq.critic_loss(critics, actor, temperature, crossq.Args(), given)
    seen = np.concatenate((batch.obs, batch.next_obs)), np.concatenate((batch.actions, next_actions))
    both = np.concatenate(seen, axis=1)
    for net in critics:
        assert isinstance(net, crossq.NormedQNetwork)
        moved = crossq.MOMENTUM * both.mean(axis=0)
        np.testing.assert_allclose(net.norm0.running_mean, moved, rtol=1e-4, atol=1e-6)
        spread = 1.0 - crossq.MOMENTUM + crossq.MOMENTUM * both.var(axis=0, ddof=1)
        np.testing.assert_allclose(net.norm0.running_var, spread, rtol=1e-4)

    before = {name: tensor.clone() for name, tensor in critics.state_dict().items()}
    crossq.actor_loss(actor, critics, temperature, given)
    moved = crossq.MOMENTUM * batch.obs.mean(axis=0)
    np.testing.assert_allclose(actor.norm0.running_mean, moved, rtol=1e-4, atol=1e-6)
    for name, tensor in critics.state_dict().items():
        torch.testing.assert_close(tensor, before[name])
    assert not actor.training and not critics.training
