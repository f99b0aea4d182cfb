"""Networks for vectors whose outputs depend on what was seen before in the episode."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from cleanrl_worker.agents.mlp import init_layer


class GRUAgent(nn.Module):
    """A policy over discrete actions and a value, on a tanh layer and a GRU of the same width.

    The memory of an environment is one row, zero at the start of an episode.
    """

    def __init__(self, obs_size: int, num_actions: int | Sequence[int], hidden: int = 64) -> None:
        super().__init__()
        self.nvec = (num_actions,) if isinstance(num_actions, int) else tuple(num_actions)
        self.memory_size = hidden
        self.network = nn.Sequential(init_layer(nn.Linear(obs_size, hidden)), nn.Tanh())
        self.gru = nn.GRU(hidden, hidden)
        for name, parameter in self.gru.named_parameters():
            if "bias" in name:
                nn.init.zeros_(parameter)
            else:
                nn.init.orthogonal_(parameter, 1.0)
        # An update gate that begins open for what is remembered lets gradients reach far back from the start.
        nn.init.ones_(self.gru.get_parameter("bias_ih_l0")[hidden : 2 * hidden])
        self.actor = init_layer(nn.Linear(hidden, sum(self.nvec)), gain=0.01)
        self.critic = init_layer(nn.Linear(hidden, 1), gain=1.0)

    def step(self, obs: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits, values and the next memory for one observation of each environment."""
        logits, values, memory = self(obs[None], memory, memory.new_zeros(1, len(obs)))
        return logits[0], values[0], memory

    def forward(self, obs: Tensor, memory: Tensor, starts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits and values of sequences (step, environment, …), and the memory after them.

        Where `starts` is 1 an episode begins, and with it the memory. Between such steps the GRU runs through
        all of them at once.
        """
        features = self.network(obs)
        begins = [*starts.any(dim=1).nonzero().flatten().tolist(), len(obs)]
        if begins[0] > 0:
            begins.insert(0, 0)
        outputs = []
        for begin, end in itertools.pairwise(begins):
            memory = memory * (1.0 - starts[begin])[:, None]
            found, last = self.gru(features[begin:end], memory[None].contiguous())
            outputs.append(found)
            memory = last[0]
        seen = torch.cat(outputs)
        return self.actor(seen), torch.squeeze(self.critic(seen), -1), memory
