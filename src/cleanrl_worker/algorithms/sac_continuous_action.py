"""Soft actor-critic, for continuous actions and vector observations."""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import torch
from torch import Tensor, nn

from cleanrl_worker.accelerated.layers import on_cpu
from cleanrl_worker.accelerated.sac import SACKernel
from cleanrl_worker.agents.continuous import GaussianActor, QNetwork
from cleanrl_worker.evaluation.policies import BoxPolicy
from cleanrl_worker.kit.accelerate import Forward, Gradient
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.kit.box_actions import BoxActions
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.replay import Replay
from cleanrl_worker.kit.run import LOG_EVERY, Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.state import Held
from cleanrl_worker.kit.torch_backend import Adam, Target, load_weights

LOGGED = ("qf1_values", "qf2_values", "qf1_loss", "qf2_loss")


@dataclass
class Args(CommonArgs):
    """Soft actor-critic, for continuous actions and vector observations."""

    exp_name: str = "sac_continuous_action"
    """the name of the experiment, part of the name of the results folder"""
    env_id: str = "Pendulum-v1"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    total_timesteps: PositiveInt = 1_000_000
    """the budget: environment steps over all environments together"""
    num_envs: PositiveInt = 1
    """the number of environments that are stepped together, with one update per step of each"""
    buffer_size: PositiveInt = 1_000_000
    """the number of transitions in the replay buffer"""
    gamma: Fraction = 0.99
    """the discount factor"""
    tau: Fraction = 0.005
    """the fraction by which the target networks move towards the networks at each update"""
    batch_size: PositiveInt = 256
    """the number of transitions per update"""
    learning_starts: NonNegativeInt = 5_000
    """the number of random environment steps before the first update"""
    policy_lr: NonNegative = 3e-4
    """the learning rate of the policy"""
    q_lr: NonNegative = 1e-3
    """the learning rate of the Q networks, and of alpha if it is tuned"""
    policy_frequency: PositiveInt = 2
    """the policy is updated after this many updates of the Q networks, and then as many times"""
    target_network_frequency: PositiveInt = 1
    """updates of the Q networks per update of their targets"""
    alpha: Annotated[float, Bounds(minimum=1e-10)] = 0.2
    """the weight of the entropy if it is not tuned"""
    autotune: bool = True
    """tune the weight of the entropy to reach a target entropy, minus the number of action dimensions"""


class Temperature(nn.Module):
    """Alpha, the weight of the entropy, learned as its logarithm."""

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.log_alpha = nn.Parameter(torch.tensor([math.log(alpha)]))


class Batch(NamedTuple):
    """Transitions in rows: arrays, or tensors in a loss; `noise` makes the policy's actions."""

    obs: Any
    next_obs: Any
    actions: Any
    rewards: Any
    dones: Any
    noise: Any


def critic_loss(
    critics: nn.ModuleList,
    actor: GaussianActor,
    target_critics: nn.ModuleList,
    temperature: Temperature,
    args: Args,
    batch: Batch,
) -> tuple[Tensor, Tensor]:
    """The loss of both Q networks, and what is logged of it in the order of `LOGGED`."""
    with torch.no_grad():
        next_actions, log_probs = actor.draw(batch.next_obs, batch.noise)
        first, second = (target(batch.next_obs, next_actions) for target in target_critics)
        soft_values = torch.minimum(first, second) - temperature.log_alpha.exp() * log_probs
        targets = batch.rewards + (1.0 - batch.dones) * args.gamma * soft_values
    values = [critic(batch.obs, batch.actions) for critic in critics]
    losses = [(value - targets).square().mean() for value in values]
    return losses[0] + losses[1], torch.stack([value.mean() for value in values] + losses)


def actor_loss(
    actor: GaussianActor, critics: nn.ModuleList, temperature: Temperature, batch: Batch
) -> tuple[Tensor, Tensor]:
    """The loss of the policy; it is logged with the mean log probability of the actions."""
    actions, log_probs = actor.draw(batch.obs, batch.noise)
    first, second = (critic(batch.obs, actions) for critic in critics)
    loss = (temperature.log_alpha.exp().detach() * log_probs - torch.minimum(first, second)).mean()
    return loss, torch.stack([loss, log_probs.mean()])


def train(run: Run[Args]) -> None:
    """Step all environments once, then update once for each of them, until the budget is used."""
    args, envs = run.args, run.envs
    space, obs_size = BoxActions(envs.action_space), math.prod(envs.observation_space.shape)
    actor = run.keep("actor", GaussianActor(obs_size, *space.bounds).to(run.device))
    critics = nn.ModuleList(QNetwork(obs_size, space.size) for _ in range(2)).to(run.device)
    critics = run.keep("critics", critics)
    temperature = run.keep("alpha", Temperature(1.0 if args.autotune else args.alpha).to(run.device))
    actor_optimizer = run.keep("actor_optimizer", Adam(actor))
    critic_optimizer = run.keep("critic_optimizer", Adam(critics))
    alpha_optimizer = run.keep("alpha_optimizer", Adam(temperature))
    target_critics = run.keep("target_critics", Target(critics, critic_optimizer))
    replay = run.keep("replay", Replay(run, args.buffer_size, space.shape, space.dtype))
    losses = run.keep("losses", Held())

    kernel, optimizers = None, (actor_optimizer, critic_optimizer)
    if args.kernels and on_cpu(actor, critics):
        kernel = SACKernel(actor, critics, temperature, target_critics, optimizers, args)
    act = Forward(actor.act, run.device, kernel and kernel.act)
    critic_gradient = Gradient(
        functools.partial(critic_loss, critics, actor, target_critics.net, temperature, args),
        critics,
        critic_optimizer,
        kernel and kernel.critic_gradient,
        moved=("rewards", "dones", "noise"),
        others=[actor_optimizer.weights, target_critics.weights, alpha_optimizer.weights],
    )
    actor_gradient = Gradient(
        functools.partial(actor_loss, actor, critics, temperature),
        actor,
        actor_optimizer,
        kernel and kernel.actor_gradient,
        moved=("noise",),
        others=[critic_optimizer.weights, alpha_optimizer.weights],
    )
    run.keep("critic_loss", critic_gradient)
    run.keep("actor_loss", actor_gradient)

    for update in run.updates(every=args.num_envs):
        if update.first_step < args.learning_starts:
            actions = space.random(args.num_envs)
        else:
            actions = act(replay.obs, space.noise(args.num_envs))
        replay.step(space.for_envs(actions), actions)

        for step in range(update.first_step + 1, update.last_step + 1):
            if step > args.learning_starts:
                sample = replay.sample(args.batch_size)
                batch = Batch(*sample, space.noise(args.batch_size))
                logged = dict(zip(LOGGED, critic_gradient(batch).tolist(), strict=True))
                critic_optimizer.step(args.q_lr)
                if step % args.policy_frequency == 0:
                    for _ in range(args.policy_frequency):
                        alpha = math.exp(temperature.log_alpha.item())
                        policy_loss, log_prob = actor_gradient(Batch(*sample, space.noise(args.batch_size)))
                        actor_optimizer.step(args.policy_lr)
                        alpha_loss = -alpha * (float(log_prob) - space.size)
                        if args.autotune:
                            # Alpha times a constant: the loss is its own slope along the logarithm of alpha.
                            alpha_optimizer.gradient.fill_(alpha_loss)
                            alpha_optimizer.step(args.q_lr)
                    logged |= {"actor_loss": float(policy_loss), "alpha": alpha, "alpha_loss": alpha_loss}
                if step % args.target_network_frequency == 0:
                    target_critics.follow(args.tau)
                losses.values.update(logged, qf_loss=(logged["qf1_loss"] + logged["qf2_loss"]) / 2.0)
            if step % LOG_EVERY == 0:
                run.log(step, losses.values)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file, which may hold the Q networks too."""
    actor = GaussianActor(math.prod(spaces.observation_space.shape), *BoxActions(spaces.action_space).bounds)
    load_weights(actor, weights[0] if isinstance(weights, tuple) else weights)
    return BoxPolicy(actor.act, spaces.action_space)


SPEC = AlgorithmSpec(
    name="sac_continuous_action",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("box",),
    observation_spaces=("vector", "grid"),
    model="actor",
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
