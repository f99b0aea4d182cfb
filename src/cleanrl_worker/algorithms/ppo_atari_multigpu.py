"""Proximal policy optimisation for pictures in several processes, each with environments of its own.

The loss is that of `ppo_atari.ppo_loss`. Each process plays its environments and computes the gradient of its
share of every minibatch; all take the step along the mean of these gradients, so that their networks stay the
same. The result is that of one process with all environments.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from cleanrl_worker.agents.nature import NatureAgent
from cleanrl_worker.algorithms import ppo_atari
from cleanrl_worker.algorithms.ppo_atari import LOGGED, Batch, look, ppo_loss
from cleanrl_worker.kit.accelerate import Floats, Gradient, take
from cleanrl_worker.kit.args import Bounds, PositiveInt
from cleanrl_worker.kit.discrete_actions import DiscreteActions
from cleanrl_worker.kit.ranks import Rank, Ranks, average, gather
from cleanrl_worker.kit.rollout import Rollout, explained_variance, flat, gae_of_values
from cleanrl_worker.kit.run import Run, Update, run_algorithm
from cleanrl_worker.kit.state import Stateful
from cleanrl_worker.kit.torch_backend import Adam, ModuleState, keep_freed_memory
from mosaic.contract.errors import UserError


@dataclass
class Args(ppo_atari.Args):
    """Proximal policy optimisation for discrete actions and images, in several processes."""

    exp_name: str = "ppo_atari_multigpu"
    """the name of the experiment, part of the name of the results folder"""
    world_size: Annotated[int, Bounds(minimum=1, maximum=64)] = 2
    """the number of processes: on the CPU, or each on its own GPU if there are any"""
    num_envs: PositiveInt = 8
    """the number of environments per process"""
    num_minibatches: PositiveInt = 4
    """the number of minibatches per pass over the rollouts; each has rows of every process"""


class Turn(NamedTuple):
    """What all processes do in an update; all random numbers are drawn by the first one."""

    update: Update
    learning_rate: float
    noise: Floats
    """For the actions: (step, environment of all processes, logit)."""
    orders: list[list[NDArray[np.int64]]]
    """The rows of each minibatch, for each epoch; the same in every process."""


@dataclass
class Share:
    """What one process has: the network and its optimizer, which are everywhere the same, and its rollout."""

    run: Run[Args] | Rank
    rank: int
    agent: NatureAgent
    optimizer: Adam
    gradient: Gradient[Batch]
    rollout: Rollout

    @classmethod
    def make(cls, run: Any, rank: int) -> Share:
        args, envs = run.args, run.envs
        nvec = DiscreteActions(envs.action_space).nvec
        agent = run.keep("agent", NatureAgent(envs.observation_space.shape, nvec).to(run.device))
        optimizer = run.keep("optimizer", Adam(agent, eps=1e-5))
        rollout = run.keep("rollout", Rollout(run, args.num_steps))
        # Advantages are normalised over the shares of all processes, before the loss sees them.
        loss = functools.partial(ppo_loss, agent, dataclasses.replace(args, norm_adv=False))
        return cls(run, rank, agent, optimizer, Gradient(loss, agent, optimizer), rollout)


def take_turn(share: Share, turn: Turn) -> dict[str, float]:
    """One process's part of an update; gives the losses, which are those of all."""
    args, rollout, agent, device = share.run.args, share.rollout, share.agent, share.run.device
    actions = DiscreteActions(share.run.envs.action_space)
    own = slice(share.rank * args.num_envs, (share.rank + 1) * args.num_envs)
    for t, obs in enumerate(rollout.collect(turn.update)):
        logits, seen = look(agent, obs, device)
        chosen = actions.best(logits + turn.noise[t, own])
        rollout.step(actions.for_envs(chosen), logits=logits, actions=chosen, values=seen)

    last_values = look(agent, rollout.all_obs[-1], device)[1]
    final = [obs for _, _, obs in rollout.final_obs]
    final_values = look(agent, np.stack(final), device)[1] if final else None
    values = np.concatenate((rollout["values"], last_values[None]))
    advantages = gae_of_values(rollout, values, final_values, args.gamma, args.gae_lambda)
    batch = Batch(
        obs=flat(rollout.obs),
        actions=flat(rollout["actions"]),
        log_probs=actions.log_probs(flat(rollout["logits"]), flat(rollout["actions"])),
        advantages=advantages.reshape(-1),
        returns=(advantages + values[:-1]).reshape(-1),
        values=values[:-1].reshape(-1),
    )
    # A row for each process, so that the rows of a minibatch are the same in each.
    everywhere = gather(np.stack((batch.advantages, batch.values))[None], 0, device)
    losses: dict[str, float] = {}
    for order in turn.orders:
        logged = np.zeros(len(LOGGED), np.float32)
        for rows in order:
            part = take(batch, rows)
            of_all = everywhere[:, 0, rows]
            if args.norm_adv and of_all.size > 1:
                normalised = (part.advantages - of_all.mean()) / (of_all.std(ddof=1) + 1e-8)
                part = part._replace(advantages=normalised.astype(np.float32))
            logged += share.gradient(part) / len(order)
            average(share.optimizer.gradient)
            share.optimizer.step(turn.learning_rate, args.max_grad_norm)
        means = torch.from_numpy(logged).to(device)
        average(means)
        losses = dict(zip(LOGGED, means.cpu().tolist(), strict=True))
        if args.target_kl is not None and losses["approx_kl"] > args.target_kl:
            break
    explained = explained_variance(everywhere[:, 1], everywhere.sum(axis=1))
    return losses if explained is None else {**losses, "explained_variance": explained}


def train(run: Run[Args]) -> None:
    """Update together until the step budget is used: the first process, which is the run."""
    keep_freed_memory()
    args = run.args
    if run.device.type == "cuda":
        torch.cuda.set_device(0)
    with Ranks(run, args.world_size) as ranks:
        share = Share.make(run, 0)
        run.keep("ranks", ranks)
        shared: dict[str, Stateful] = {"agent": ModuleState(share.agent), "optimizer": share.optimizer}
        logits = sum(share.agent.nvec)
        for update in run.updates(every=args.world_size * args.num_envs * args.num_steps):
            # The greatest of logits plus Gumbel noise is a sample of their distribution.
            shape = (update.steps, args.world_size * args.num_envs, logits)
            noise = -torch.empty(shape).exponential_().log_().numpy()
            rows = update.steps * args.num_envs
            orders = [run.minibatches(rows, args.num_minibatches) for _ in range(args.update_epochs)]
            learning_rate = args.learning_rate * (1.0 - update.progress if args.anneal_lr else 1.0)
            turn = Turn(update, learning_rate, noise, orders)
            ranks.begin(turn, shared)
            with ranks.watched():
                losses = take_turn(share, turn)
            run.add_episodes(ranks.finish(), update.last_step)
            run.log(update.last_step, losses, learning_rate=learning_rate)


def follow(rank: Rank) -> None:
    """Take part in the updates: every process but the first."""
    keep_freed_memory()
    share = Share.make(rank, rank.number)
    for told in rank.turns(shared=("agent", "optimizer")):
        take_turn(share, Turn(*told))


def check(args: Args) -> None:
    """Raise UserError for more processes than there are GPUs, and for what each would do by itself."""
    gpus = torch.cuda.device_count() if args.cuda else 0
    if 0 < gpus < args.world_size:
        raise UserError(
            f"world_size is {args.world_size}, but the run has {gpus} GPU{'s' * (gpus > 1)}, and each "
            "process needs one of its own; lower it, or set cuda to false."
        )
    if args.curriculum:
        raise UserError(
            "ppo_atari_multigpu does not support curricula, because each of its processes would go "
            "through them separately: use ppo_atari."
        )


SPEC = dataclasses.replace(ppo_atari.SPEC, name="ppo_atari_multigpu", args=Args, train=train, check=check)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
