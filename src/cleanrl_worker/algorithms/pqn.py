"""Q-learning from fresh rollouts, without target network and replay buffer, for discrete actions."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from cleanrl_worker.agents.q_networks import NormedQNetwork
from cleanrl_worker.kernels import pqn as pqn_kernel
from cleanrl_worker.training.advantages import Floats, estimate_advantages
from cleanrl_worker.training.common import CommonArgs, Fraction, NonNegative, PositiveInt
from cleanrl_worker.training.exploration import epsilon_greedy, linear_schedule
from cleanrl_worker.training.on_policy import Rollout, collect, minibatches
from cleanrl_worker.training.radam import RAdam
from cleanrl_worker.training.run import Run, open_run
from cleanrl_worker.training.script import run_script
from cleanrl_worker.training.state import Held
from cleanrl_worker.training.stopping import StopSignals

ACTION_SPACES = ("discrete",)
OBSERVATION_SPACES = ("box",)
LOGGED = ("td_loss", "q_values")


@dataclass
class Args(CommonArgs):
    """Q-learning from fresh rollouts, without target network and replay buffer, for discrete actions."""

    exp_name: str = "pqn"
    """the name of this experiment, part of the results folder's name"""
    learning_rate: NonNegative = 2.5e-4
    """the learning rate of RAdam"""
    num_envs: PositiveInt = 4
    """how many environments are stepped together"""
    num_steps: PositiveInt = 128
    """how many steps each environment takes between two updates"""
    num_minibatches: PositiveInt = 4
    """into how many minibatches a rollout is cut"""
    update_epochs: PositiveInt = 4
    """how often each rollout is learned from"""
    anneal_lr: bool = True
    """let the learning rate fall to zero over the run"""
    gamma: Fraction = 0.99
    """the discount factor"""
    start_e: Fraction = 1.0
    """the share of random actions at the start"""
    end_e: Fraction = 0.05
    """the share of random actions once exploration has ended"""
    exploration_fraction: Fraction = 0.5
    """over which part of the run the share of random actions falls"""
    max_grad_norm: NonNegative = 10.0
    """the greatest norm of the gradient"""
    q_lambda: Fraction = 0.65
    """lambda of Q(lambda): 0 looks one step ahead, 1 to the end of the rollout"""


class Learner(Protocol):
    """Values actions and learns: in torch here, or by a kernel that computes the same."""

    def values(self, obs: Floats) -> Floats: ...
    def learn(
        self, obs: Floats, actions: NDArray[np.int64], returns: Floats, learning_rate: float
    ) -> Floats: ...


class TorchLearner:
    """The update rule."""

    def __init__(self, network: NormedQNetwork, optimizer: RAdam, args: Args) -> None:
        self._network = network
        self._optimizer = optimizer
        self._args = args
        self._device = next(network.parameters()).device

    @torch.no_grad()
    def values(self, obs: Floats) -> Floats:
        return np.asarray(self._network(torch.from_numpy(obs).to(self._device)).cpu())

    def learn(self, obs: Floats, actions: NDArray[np.int64], returns: Floats, learning_rate: float) -> Floats:
        """One minibatch; gives what is logged, in the order of `LOGGED`."""
        inputs, taken, targets = (torch.from_numpy(part).to(self._device) for part in (obs, actions, returns))
        values = self._network(inputs).gather(1, taken.unsqueeze(1)).squeeze(1)
        loss = (values - targets).square().mean()
        self._optimizer.update(loss, learning_rate, self._args.max_grad_norm)
        return np.asarray(torch.stack([loss, values.mean()]).detach().cpu())


def make_learner(network: NormedQNetwork, optimizer: RAdam, args: Args) -> Learner:
    """A kernel where one fits the network and is wanted, else torch."""
    if args.kernels and pqn_kernel.fits(network):
        return pqn_kernel.PQNKernel(network, optimizer, args)
    return TorchLearner(network, optimizer, args)


class Explorer:
    """Draws the actions of one rollout, and keeps them."""

    def __init__(self, learner: Learner, args: Args, run: Run, steps: int, global_step: int) -> None:
        self.actions = np.zeros((steps, args.num_envs), dtype=np.int64)
        self.epsilon = args.start_e
        self._learner = learner
        self._args = args
        self._num_actions = int(run.envs.action_space.n)
        self._first_action = int(run.envs.action_space.start)
        self._global_step = global_step

    def act(self, t: int, obs: Floats) -> list[int]:
        """The actions of step `t`, one for each environment."""
        args, step = self._args, self._global_step + t * self._args.num_envs
        duration = args.exploration_fraction * args.total_timesteps
        self.epsilon = linear_schedule(args.start_e, args.end_e, duration, step)
        actions = epsilon_greedy(self._learner.values, obs, self.epsilon, self._num_actions)
        self.actions[t] = actions
        return [action + self._first_action for action in actions]


def compute_returns(learner: Learner, rollout: Rollout, args: Args) -> Floats:
    """Q(lambda) targets: what was earned, mixed at each step with the best value known of where it led."""
    steps, num_envs = rollout.rewards.shape
    best = learner.values(rollout.obs.reshape((steps + 1) * num_envs, -1)).max(axis=1)
    best = best.reshape(steps + 1, num_envs)
    next_best = best[1:] * (1.0 - rollout.dones)
    if rollout.final_obs:
        at, indices, observations = zip(*rollout.final_obs, strict=True)
        next_best[list(at), list(indices)] = learner.values(np.stack(observations)).max(axis=1)
    best = best[:-1]
    gains = estimate_advantages(rollout.rewards, rollout.dones, best, next_best, args.gamma, args.q_lambda)
    returns: Floats = best + gains
    return returns


def update(
    learner: Learner, obs: Floats, actions: NDArray[np.int64], returns: Floats, rate: float, args: Args
) -> dict[str, float]:
    """Learn from the steps of a rollout; returns the means of the last epoch."""
    means: list[float] = []
    for _ in range(args.update_epochs):
        parts = minibatches(len(obs), args.num_minibatches)
        logged = [learner.learn(obs[rows], actions[rows], returns[rows], rate) for rows in parts]
        means = np.mean(logged, axis=0).tolist()
    return dict(zip(LOGGED, means, strict=True))


def train(args: Args, stop: StopSignals) -> None:
    """Train from the first step to the last, and leave curves and weights in the results folder."""
    with open_run("pqn", args, args.num_envs, stop) as run:
        obs_size = math.prod(run.envs.observation_space.shape)
        network = NormedQNetwork(obs_size, int(run.envs.action_space.n)).to(run.device)
        run.model = network
        learn(args, network, run)


def learn(args: Args, network: NormedQNetwork, run: Run) -> None:
    """Rollout and update in turn until the step budget is used; the last rollout may be shorter."""
    envs, writer = run.envs, run.writer
    optimizer = RAdam(network)
    learner = make_learner(network, optimizer, args)
    shape = (args.num_envs, *envs.observation_space.shape)
    obs = np.zeros((args.num_envs, math.prod(shape[1:])), dtype=np.float32)
    envs.reset(args.seed, out=obs.reshape(shape))
    loop = Held(global_step=0, iteration=0, obs=obs)
    run.resume(loop, optimizer=optimizer)
    global_step, iteration, obs = (loop.values[name] for name in ("global_step", "iteration", "obs"))
    total_steps = args.total_timesteps // args.num_envs
    num_iterations = math.ceil(total_steps / args.num_steps)

    while iteration < num_iterations:
        progress = iteration / num_iterations if args.anneal_lr else 0.0
        learning_rate = args.learning_rate * (1.0 - progress)
        steps = min(args.num_steps, total_steps - global_step // args.num_envs)
        explorer = Explorer(learner, args, run, steps, global_step)
        rollout = collect(run, explorer, obs, steps, global_step, None)
        obs = rollout.obs[-1]
        global_step += steps * args.num_envs
        iteration += 1

        run.watch.enter("update")
        returns = compute_returns(learner, rollout, args)
        flat_obs = rollout.obs[:-1].reshape(returns.size, -1)
        losses = update(
            learner, flat_obs, explorer.actions.reshape(-1), returns.reshape(-1), learning_rate, args
        )

        run.watch.enter("log")
        writer.add_scalar("charts/learning_rate", learning_rate, global_step)
        writer.add_scalar("charts/epsilon", explorer.epsilon, global_step)
        run.add_losses(losses, global_step)
        run.between_updates(global_step, loop, global_step=global_step, iteration=iteration, obs=obs)


def main(argv: Sequence[str] | None = None) -> int:
    """Train as the command line says; returns the exit code."""
    return run_script(Args, train, argv)


if __name__ == "__main__":
    sys.exit(main())
