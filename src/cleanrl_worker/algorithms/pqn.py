"""Q-learning from fresh rollouts, without target network and replay buffer, for discrete actions."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from cleanrl_worker.agents.q_networks import NormedQNetwork
from cleanrl_worker.kernels import pqn as pqn_kernel
from cleanrl_worker.training.advantages import Floats
from cleanrl_worker.training.common import Fraction, NonNegative, PositiveInt
from cleanrl_worker.training.exploration import EpsilonGreedy, ExplorationArgs
from cleanrl_worker.training.on_policy import Rollout, collect, estimate, first_observations, minibatches
from cleanrl_worker.training.policies import GreedyPolicy, Policy, Spaces
from cleanrl_worker.training.radam import RAdam
from cleanrl_worker.training.run import Run, open_run
from cleanrl_worker.training.script import run_script
from cleanrl_worker.training.state import Held, State
from cleanrl_worker.training.stopping import StopSignals
from cleanrl_worker.training.weights import load_weights, unflatten

ACTION_SPACES = ("discrete",)
OBSERVATION_SPACES = ("vector", "grid")
LOGGED = ("td_loss", "q_values")


@dataclass
class Args(ExplorationArgs):
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

    def __init__(self, policy: EpsilonGreedy, args: Args, run: Run, steps: int, global_step: int) -> None:
        self.actions = np.zeros((steps, args.num_envs), dtype=np.int64)
        self._policy = policy
        self._first_action = int(run.envs.action_space.start)
        self._global_step = global_step

    def act(self, t: int, obs: Floats) -> list[int]:
        """The actions of step `t`, one for each environment."""
        actions = self._policy.act(obs, self._global_step + t * len(obs))
        self.actions[t] = actions
        return [action + self._first_action for action in actions]


def compute_returns(learner: Learner, rollout: Rollout, args: Args) -> Floats:
    """Q(lambda) targets: what was earned, mixed at each step with the best value known of where it led."""
    best, gains = estimate(lambda obs: learner.values(obs).max(axis=1), rollout, args.gamma, args.q_lambda)
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
    writer = run.writer
    optimizer = RAdam(network)
    learner = make_learner(network, optimizer, args)
    policy = EpsilonGreedy(args, learner.values, int(run.envs.action_space.n))
    loop = Held(global_step=0, iteration=0, obs=first_observations(args, run))
    run.resume(loop, optimizer=optimizer)
    global_step, iteration, obs = (loop.values[name] for name in ("global_step", "iteration", "obs"))
    total_steps = args.total_timesteps // args.num_envs
    num_iterations = math.ceil(total_steps / args.num_steps)

    while global_step // args.num_envs < total_steps:
        progress = iteration / num_iterations if args.anneal_lr else 0.0
        learning_rate = args.learning_rate * (1.0 - progress)
        steps = min(args.num_steps, total_steps - global_step // args.num_envs)
        explorer = Explorer(policy, args, run, steps, global_step)
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
        writer.add_scalar("charts/epsilon", policy.epsilon, global_step)
        run.add_losses(losses, global_step)
        run.between_updates(global_step, loop, global_step=global_step, iteration=iteration, obs=obs)


def checkpoint_weights(parts: State, spaces: Spaces, args: Args) -> Any:
    """The weights in a full checkpoint, in the form of a model file."""
    network = NormedQNetwork(math.prod(spaces.observation_space.shape), int(spaces.action_space.n))
    return unflatten(network, parts["optimizer"])


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    network = NormedQNetwork(math.prod(spaces.observation_space.shape), int(spaces.action_space.n))
    return GreedyPolicy(load_weights(network, weights), spaces.action_space, args.end_e)


def main(argv: Sequence[str] | None = None) -> int:
    """Train as the command line says; returns the exit code."""
    return run_script(Args, train, argv)


if __name__ == "__main__":
    sys.exit(main())
