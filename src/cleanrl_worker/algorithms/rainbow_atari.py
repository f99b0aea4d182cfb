"""Rainbow: Q-learning with six improvements, for pictures and discrete actions."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor

from cleanrl_worker.agents.noisy import RainbowNetwork
from cleanrl_worker.evaluation.policies import NoisyPolicy, open_distribution
from cleanrl_worker.kit.accelerate import Forward, Gradient
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.kit.discrete_actions import linear_schedule
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.prioritised import PrioritisedReplay, PrioritisedSample
from cleanrl_worker.kit.run import LOG_EVERY, Run, run_algorithm
from cleanrl_worker.kit.spec import ARGS, AlgorithmSpec
from cleanrl_worker.kit.state import Held
from cleanrl_worker.kit.torch_backend import Adam, Target, keep_freed_memory
from cleanrl_worker.wrappers.atari import atari_defaults, atari_options, wrap_atari

LOGGED = ("td_loss", "q_values")


@dataclass
class Args(CommonArgs):
    """Rainbow: Q-learning with six improvements, with images as observations."""

    exp_name: str = "rainbow_atari"
    """the name of the experiment, part of the name of the results folder"""
    env_id: str = "ALE/Breakout-v5"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    total_timesteps: PositiveInt = 10_000_000
    """the budget: environment steps over all environments together"""
    learning_rate: NonNegative = 6.25e-5
    """the learning rate of Adam"""
    num_envs: PositiveInt = 1
    """the number of environments that are stepped together"""
    buffer_size: PositiveInt = 1_000_000
    """the number of transitions in the replay buffer; each frame is stored once"""
    gamma: Fraction = 0.99
    """the discount factor"""
    tau: Fraction = 1.0
    """the fraction by which the target network moves towards the network at each update; 1: a copy"""
    target_network_frequency: PositiveInt = 8_000
    """environment steps between two updates of the target network"""
    batch_size: PositiveInt = 32
    """the number of transitions per update"""
    learning_starts: NonNegativeInt = 80_000
    """the number of environment steps before the first update"""
    train_frequency: PositiveInt = 4
    """environment steps between two updates"""
    n_step: Annotated[int, Bounds(minimum=1, maximum=1_000)] = 3
    """the number of steps of the multi-step return"""
    prioritized_replay_alpha: Fraction = 0.5
    """how strongly transitions with a large loss are preferred; 0: not at all"""
    prioritized_replay_beta: Fraction = 0.4
    """the initial exponent of the importance weights; it rises linearly to 1 over the run"""
    prioritized_replay_eps: Annotated[float, Bounds(minimum=1e-9)] = 1e-6
    """the number added to each priority, so that every transition can be drawn"""
    n_atoms: Annotated[int, Bounds(minimum=2, maximum=10_000)] = 51
    """the number of atoms of the distribution of returns"""
    v_min: float = -10.0
    """the minimum return of the distribution"""
    v_max: float = 10.0
    """the maximum return of the distribution"""
    frame_stack: PositiveInt = 4
    """the number of newest frames in an observation"""
    episodic_life: bool = True
    """in Atari games, end the learner's episode when a life is lost; returns are those of whole games"""
    clip_rewards: bool = True
    """in Atari games, clip rewards to their sign for learning; returns are those of the game"""


def make_network(spaces: Spaces, args: Args) -> RainbowNetwork:
    """The network for these spaces."""
    shape, num_actions = spaces.observation_space.shape, int(spaces.action_space.n)
    return RainbowNetwork(shape, num_actions, args.n_atoms, args.v_min, args.v_max)


def rainbow_loss(
    network: RainbowNetwork, target: RainbowNetwork, args: Args, batch: PrioritisedSample
) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`, then that of each row.

    Every pass draws noise of its own, one for all rows.
    """
    each = torch.arange(len(batch.actions), device=batch.actions.device)
    with torch.no_grad():
        # The network chooses the next action, its target says what that is worth.
        best = network(batch.next_obs, network.draw_noise()).argmax(dim=1)
        next_probs = target.logits(batch.next_obs, target.draw_noise())[each, best].softmax(dim=1)
        discounts = batch.discounts * (1.0 - batch.dones)
        target_probs = project(next_probs, batch.rewards, discounts, target.support, args)
    log_probs = network.logits(batch.obs, network.draw_noise())[each, batch.actions].log_softmax(dim=1)
    losses = -(target_probs * log_probs).sum(dim=1)
    loss = (batch.weights * losses).mean()
    mean_value = (log_probs.detach().exp() @ network.support).mean()
    return loss, torch.cat((torch.stack([loss.detach(), mean_value]), losses.detach()))


def project(probs: Tensor, rewards: Tensor, discounts: Tensor, atoms: Tensor, args: Args) -> Tensor:
    """The distributions of rewards plus discounted next return, brought back onto the atoms.

    Each probability is shared between the two atoms around the return it moved to.
    """
    moved = rewards.unsqueeze(1) + discounts.unsqueeze(1) * atoms
    spacing = (args.v_max - args.v_min) / (args.n_atoms - 1)
    places = (moved.clamp(args.v_min, args.v_max) - args.v_min) / spacing
    lower = places.long().clamp(max=args.n_atoms - 2)
    upper_share = (places - lower) * probs
    projected = torch.zeros_like(probs)
    projected.scatter_add_(1, lower, probs - upper_share)
    return projected.scatter_add_(1, lower + 1, upper_share)


def train(run: Run[Args]) -> None:
    """Step all environments once, then update as often as their steps ask for, until the budget is used."""
    keep_freed_memory()
    args, envs = run.args, run.envs
    first_action = int(envs.action_space.start)
    network = run.keep("network", make_network(envs, args).to(run.device))
    optimizer = run.keep("optimizer", Adam(network, eps=1.5e-4))
    target = run.keep("target", Target(network, optimizer))
    replay = PrioritisedReplay(
        run,
        args.buffer_size,
        "int64",
        steps=args.n_step,
        gamma=args.gamma,
        alpha=args.prioritized_replay_alpha,
        eps=args.prioritized_replay_eps,
    )
    run.keep("replay", replay)
    losses = run.keep("losses", Held())
    # Noise is what explores: another one for each environment and step.
    values_of = Forward(lambda obs: network(obs, network.draw_noise(len(obs))), run.device)
    loss = functools.partial(rainbow_loss, network, target.net, args)
    gradient = run.keep("loss", Gradient(loss, network, optimizer))

    for update in run.updates(every=args.num_envs):
        beta = linear_schedule(args.prioritized_replay_beta, 1.0, args.total_timesteps, update.first_step)
        actions = values_of(replay.obs).argmax(axis=1).tolist()
        replay.step([action + first_action for action in actions], actions)

        for step in range(update.first_step + 1, update.last_step + 1):
            if step > args.learning_starts:
                if step % args.train_frequency == 0:
                    batch = replay.draw(args.batch_size, beta)
                    logged = gradient(batch)
                    optimizer.step(args.learning_rate)
                    replay.learned(batch.rows, logged[len(LOGGED) :])
                    losses.values.update(zip(LOGGED, logged[: len(LOGGED)].tolist(), strict=True))
                if step % args.target_network_frequency == 0:
                    target.follow(args.tau)
            if step % LOG_EVERY == 0:
                run.log(step, losses.values, beta=beta)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file: its weights, and the arguments that say over which returns they spread."""
    network, _ = open_distribution(weights, args, functools.partial(make_network, spaces))
    return NoisyPolicy(
        network,
        lambda obs, generator: network(obs, network.draw_noise(len(obs), generator)),
        spaces.action_space,
    )


SPEC = AlgorithmSpec(
    name="rainbow_atari",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("discrete",),
    observation_spaces=("image",),
    flat_observations=False,
    wrap=lambda env, args: wrap_atari(env, args, args.frame_stack),
    env_defaults=atari_defaults,
    atari=lambda args: atari_options(args, args.frame_stack),
    model={"model_weights": "network", "args": ARGS},
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
