"""CrossQ, for continuous actions and vector observations: SAC with normalised batches, without targets."""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from cleanrl_worker.agents.continuous import HIDDEN, GaussianActor
from cleanrl_worker.algorithms.sac_continuous_action import Batch, Temperature
from cleanrl_worker.evaluation.policies import BoxPolicy
from cleanrl_worker.kit.accelerate import Forward, Gradient
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.kit.box_actions import BoxActions
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.replay import Replay
from cleanrl_worker.kit.run import LOG_EVERY, Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.state import Held
from cleanrl_worker.kit.torch_backend import Adam, load_weights

LOGGED = ("qf1_values", "qf2_values", "qf1_loss", "qf2_loss")
MOMENTUM = 0.01
"""How far a batch moves the statistics that are used outside of updates."""


@dataclass
class Args(CommonArgs):
    """CrossQ, for continuous actions and vector observations."""

    exp_name: str = "crossq"
    """the name of the experiment, part of the name of the results folder"""
    env_id: str = "Pendulum-v1"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    total_timesteps: PositiveInt = 1_000_000
    """the budget: environment steps over all environments together"""
    num_envs: PositiveInt = 1
    """the number of environments that are stepped together, with one update per step of each"""
    critic_width: PositiveInt = 256
    """the number of units in each of the two hidden layers of a Q network"""
    buffer_size: PositiveInt = 1_000_000
    """the number of transitions in the replay buffer"""
    gamma: Fraction = 0.99
    """the discount factor"""
    batch_size: Annotated[int, Bounds(minimum=2)] = 256
    """the number of transitions per update"""
    learning_starts: NonNegativeInt = 5_000
    """the number of random environment steps before the first update"""
    policy_lr: NonNegative = 1e-3
    """the learning rate of the policy"""
    q_lr: NonNegative = 1e-3
    """the learning rate of the Q networks, and of alpha if it is tuned"""
    adam_beta: Annotated[float, Bounds(minimum=0.0, maximum=0.999)] = 0.5
    """Adam's beta1: the weight of earlier gradients in its running mean"""
    policy_frequency: PositiveInt = 3
    """updates of the Q networks per update of the policy"""
    alpha: Annotated[float, Bounds(minimum=1e-10)] = 0.2
    """the weight of the entropy if it is not tuned"""
    autotune: bool = True
    """tune the weight of the entropy to reach a target entropy, minus the number of action dimensions"""


class NormedActor(GaussianActor):
    """SAC's policy whose inputs and hidden layers are normalised by the statistics of batches."""

    def __init__(self, obs_size: int, low: Tensor, high: Tensor) -> None:
        super().__init__(obs_size, low, high)
        self.norm0, self.norm1, self.norm2 = (
            nn.BatchNorm1d(size, momentum=MOMENTUM) for size in (obs_size, HIDDEN, HIDDEN)
        )

    def features(self, obs: Tensor) -> Tensor:
        hidden = self.norm1(torch.relu(self.fc1(self.norm0(obs))))
        features: Tensor = self.norm2(torch.relu(self.fc2(hidden)))
        return features


class NormedQNetwork(nn.Module):
    """The expected discounted return after an action, normalised in the same way."""

    def __init__(self, obs_size: int, action_size: int, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(obs_size + action_size, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, 1)
        self.norm0, self.norm1, self.norm2 = (
            nn.BatchNorm1d(size, momentum=MOMENTUM) for size in (obs_size + action_size, width, width)
        )

    def forward(self, obs: Tensor, actions: Tensor) -> Tensor:
        hidden = self.norm1(torch.relu(self.fc1(self.norm0(torch.cat([obs, actions], dim=1)))))
        values: Tensor = self.fc3(self.norm2(torch.relu(self.fc2(hidden)))).squeeze(1)
        return values


def critic_loss(
    critics: nn.ModuleList, actor: NormedActor, temperature: Temperature, args: Args, batch: Batch
) -> tuple[Tensor, Tensor]:
    """The loss of both Q networks, and what is logged of it in the order of `LOGGED`."""
    with torch.no_grad():
        next_actions, log_probs = actor.draw(batch.next_obs, batch.noise)
    # What was done and what would be done next are one batch: the same statistics normalise both.
    obs = torch.cat([batch.obs, batch.next_obs])
    actions = torch.cat([batch.actions, next_actions])
    critics.train()
    (first, next_first), (second, next_second) = (critic(obs, actions).chunk(2) for critic in critics)
    critics.eval()
    soft_values = torch.minimum(next_first, next_second) - temperature.log_alpha.exp() * log_probs
    targets = (batch.rewards + (1.0 - batch.dones) * args.gamma * soft_values).detach()
    losses = [(values - targets).square().mean() for values in (first, second)]
    return losses[0] + losses[1], torch.stack([first.mean(), second.mean(), *losses])


def actor_loss(
    actor: NormedActor, critics: nn.ModuleList, temperature: Temperature, batch: Batch
) -> tuple[Tensor, Tensor]:
    """The loss of the policy; it is logged with the mean log probability of the actions."""
    actor.train()
    actions, log_probs = actor.draw(batch.obs, batch.noise)
    actor.eval()
    first, second = (critic(batch.obs, actions) for critic in critics)
    loss = (temperature.log_alpha.exp().detach() * log_probs - torch.minimum(first, second)).mean()
    return loss, torch.stack([loss, log_probs.mean()])


def train(run: Run[Args]) -> None:
    """Step all environments once, then update once for each of them, until the budget is used."""
    args, envs = run.args, run.envs
    space, obs_size = BoxActions(envs.action_space), math.prod(envs.observation_space.shape)
    # Outside of their own updates networks are normalised by what they have seen before.
    actor = run.keep("actor", NormedActor(obs_size, *space.bounds).to(run.device).eval())
    each = (NormedQNetwork(obs_size, space.size, args.critic_width) for _ in range(2))
    critics = run.keep("critics", nn.ModuleList(each).to(run.device).eval())
    temperature = run.keep("alpha", Temperature(1.0 if args.autotune else args.alpha).to(run.device))
    actor_optimizer = run.keep("actor_optimizer", Adam(actor, beta_1=args.adam_beta))
    critic_optimizer = run.keep("critic_optimizer", Adam(critics, beta_1=args.adam_beta))
    alpha_optimizer = run.keep("alpha_optimizer", Adam(temperature, beta_1=args.adam_beta))
    replay = run.keep("replay", Replay(run, args.buffer_size, space.shape, space.dtype))
    losses = run.keep("losses", Held())

    act = Forward(actor.act, run.device)
    written = functools.partial(critic_loss, critics, actor, temperature, args)
    critic_gradient = run.keep("critic_loss", Gradient(written, critics, critic_optimizer))
    written = functools.partial(actor_loss, actor, critics, temperature)
    actor_gradient = run.keep("actor_loss", Gradient(written, actor, actor_optimizer))

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
                    alpha = math.exp(temperature.log_alpha.item())
                    batch = Batch(*sample, space.noise(args.batch_size))
                    policy_loss, log_prob = actor_gradient(batch).tolist()
                    actor_optimizer.step(args.policy_lr)
                    alpha_loss = -alpha * (log_prob - space.size)
                    if args.autotune:
                        # Alpha times a constant: the loss is its own slope along the logarithm of alpha.
                        alpha_optimizer.gradient.fill_(alpha_loss)
                        alpha_optimizer.step(args.q_lr)
                    logged |= {"actor_loss": policy_loss, "alpha": alpha, "alpha_loss": alpha_loss}
                losses.values.update(logged, qf_loss=(logged["qf1_loss"] + logged["qf2_loss"]) / 2.0)
            if step % LOG_EVERY == 0:
                run.log(step, losses.values)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    bounds = BoxActions(spaces.action_space).bounds
    actor = load_weights(NormedActor(math.prod(spaces.observation_space.shape), *bounds).eval(), weights)
    return BoxPolicy(actor.act, spaces.action_space)


SPEC = AlgorithmSpec(
    name="crossq",
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
