"""Distributional Q-learning over a fixed set of returns, for discrete actions and vector observations."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cleanrl_worker.agents.q_networks import DistributionalQNetwork
from cleanrl_worker.kernels import c51 as c51_kernel
from cleanrl_worker.training.common import Bounds
from cleanrl_worker.training.off_policy import learn
from cleanrl_worker.training.optimizer import Adam
from cleanrl_worker.training.policies import GreedyPolicy, Policy, Spaces
from cleanrl_worker.training.q_learning import ActionNumbers, Learner, QLearning, QLearningArgs
from cleanrl_worker.training.replay import Sample
from cleanrl_worker.training.run import open_run
from cleanrl_worker.training.script import run_script
from cleanrl_worker.training.state import State
from cleanrl_worker.training.stopping import StopSignals
from cleanrl_worker.training.targets import Target
from cleanrl_worker.training.weights import Misfit, load_weights, unflatten
from mosaic.contract.errors import UserError

ACTION_SPACES = ("discrete",)
OBSERVATION_SPACES = ("vector", "grid")
LOGGED = ("loss", "q_values")
_IN_MODEL = ("n_atoms", "v_min", "v_max", "end_e")
"""The arguments in a model file that say how it is played."""


@dataclass
class Args(QLearningArgs):
    """Distributional Q-learning over a fixed set of returns, for discrete actions and vector observations."""

    exp_name: str = "c51"
    """the name of this experiment, part of the results folder's name"""
    n_atoms: Annotated[int, Bounds(minimum=2)] = 101
    """over how many returns the distribution of an action's return is spread"""
    v_min: float = -100.0
    """the least of these returns"""
    v_max: float = 100.0
    """the greatest of these returns"""


class TorchLearner:
    """The update rule."""

    def __init__(
        self,
        network: DistributionalQNetwork,
        target: Target[DistributionalQNetwork],
        optimizer: Adam,
        args: Args,
    ) -> None:
        self._network = network
        self._target = target.net
        self._optimizer = optimizer
        self._args = args
        self._device = next(network.parameters()).device

    @torch.no_grad()
    def values(self, obs: NDArray[Any]) -> NDArray[np.float32]:
        return np.asarray(self._network(torch.from_numpy(obs).to(self._device)).cpu())

    def learn(self, sample: Sample) -> NDArray[np.float32]:
        """One update; gives what is logged, in the order of `LOGGED`."""
        obs, next_obs, actions, rewards, dones = (
            torch.from_numpy(column).to(self._device) for column in vars(sample).values()
        )
        each = torch.arange(len(actions), device=self._device)
        with torch.no_grad():
            next_probs = self._target.logits(next_obs).softmax(dim=2)
            best = (next_probs @ self._target.atoms).argmax(dim=1)
            target_probs = self._project(next_probs[each, best], rewards, dones)
        log_probs = self._network.logits(obs)[each, actions].log_softmax(dim=1)
        loss = -(target_probs * log_probs).sum(dim=1).mean()
        self._optimizer.update(loss, self._args.learning_rate, max_grad_norm=math.inf)
        mean_value = (log_probs.detach().exp() @ self._network.atoms).mean()
        return np.asarray(torch.stack([loss.detach(), mean_value]).cpu())

    def _project(self, probs: Tensor, rewards: Tensor, dones: Tensor) -> Tensor:
        """The distributions of reward plus discounted next return, brought back onto the atoms.

        Each probability is shared between the two atoms around the return it moved to.
        """
        args, atoms = self._args, self._network.atoms
        moved = rewards.unsqueeze(1) + args.gamma * (1.0 - dones).unsqueeze(1) * atoms
        places = (moved.clamp(args.v_min, args.v_max) - args.v_min) * (
            (args.n_atoms - 1) / (args.v_max - args.v_min)
        )
        lower = places.long().clamp(max=args.n_atoms - 2)
        upper_share = (places - lower) * probs
        projected = torch.zeros_like(probs)
        projected.scatter_add_(1, lower, probs - upper_share)
        return projected.scatter_add_(1, lower + 1, upper_share)


def make_learner(
    network: DistributionalQNetwork,
    target: Target[DistributionalQNetwork],
    optimizer: Adam,
    args: Args,
) -> Learner:
    """A kernel where one fits the network and is wanted, else torch."""
    if args.kernels and c51_kernel.fits(network):
        return c51_kernel.C51Kernel(network, target, optimizer, args)
    return TorchLearner(network, target, optimizer, args)


def train(args: Args, stop: StopSignals) -> None:
    """Train from the first step to the last, and leave curves and weights in the results folder."""
    if not args.v_min < args.v_max:
        raise UserError(f"v_min is {args.v_min}, which is not less than v_max, {args.v_max}; lower it.")
    with open_run("c51", args, args.num_envs, stop) as run:
        actions = ActionNumbers(run.envs.action_space)
        obs_size = math.prod(run.envs.observation_space.shape)
        network = DistributionalQNetwork(obs_size, actions.count, args.n_atoms, args.v_min, args.v_max)
        network.to(run.device)
        # A resumed run ends with the file that it would have written without a break.
        settings = {name: value for name, value in dataclasses.asdict(args).items() if name != "resume_from"}
        run.model = {"model_weights": network, "args": settings}
        optimizer = Adam(network, eps=0.01 / args.batch_size)
        target = Target(network, optimizer)
        learner = make_learner(network, target, optimizer, args)
        q_learning = QLearning(args, learner, target, actions, LOGGED)
        learn(args, run, q_learning, actions, optimizer=optimizer, target=target)


def _network_for(spaces: Spaces, args: Args) -> DistributionalQNetwork:
    obs_size, actions = math.prod(spaces.observation_space.shape), int(spaces.action_space.n)
    return DistributionalQNetwork(obs_size, actions, args.n_atoms, args.v_min, args.v_max)


def checkpoint_weights(parts: State, spaces: Spaces, args: Args) -> Any:
    """The weights in a full checkpoint, in the form of a model file."""
    network = _network_for(spaces, args)
    return {"model_weights": unflatten(network, parts["optimizer"]), "args": dataclasses.asdict(args)}


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file: its weights, and the arguments that say over which returns they spread."""
    if not isinstance(weights, dict) or weights.keys() != {"model_weights", "args"}:
        raise Misfit("it has no model_weights and args")
    if not all(isinstance(part, dict) for part in weights.values()):
        raise Misfit("its model_weights and args are no tables by name")
    told = {name: weights["args"][name] for name in _IN_MODEL if name in weights["args"]}
    known = dataclasses.replace(args, **told)
    try:
        network = _network_for(spaces, known)
        explores = float(known.end_e)
    except (TypeError, ValueError, RuntimeError) as error:
        raise Misfit(f"its args say {told}, which is no distribution of returns") from error
    # Not every script stores the atoms, which follow from the arguments.
    load_weights(network, {"atoms": network.atoms, **weights["model_weights"]})
    return GreedyPolicy(network, spaces.action_space, explores)


def main(argv: Sequence[str] | None = None) -> int:
    """Train as the command line says; returns the exit code."""
    return run_script(Args, train, argv)


if __name__ == "__main__":
    sys.exit(main())
