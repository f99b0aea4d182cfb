"""Soft actor-critic for pictures and discrete actions, as in games of Atari."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from cleanrl_worker.agents.nature import FEATURES, NatureCNN
from cleanrl_worker.algorithms.sac_continuous_action import Temperature
from cleanrl_worker.evaluation.policies import CategoricalPolicy
from cleanrl_worker.kit.accelerate import Forward, Gradient
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.kit.discrete_actions import DiscreteActions
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.replay import Replay, Sample
from cleanrl_worker.kit.run import LOG_EVERY, Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.state import Held
from cleanrl_worker.kit.torch_backend import Adam, Target, keep_freed_memory, load_weights
from cleanrl_worker.wrappers.atari import atari_defaults, atari_options, wrap_atari

LOGGED = ("qf1_values", "qf2_values", "qf1_loss", "qf2_loss")


@dataclass
class Args(CommonArgs):
    """Soft actor-critic for discrete actions, with images as observations."""

    exp_name: str = "sac_atari"
    """the name of the experiment, part of the name of the results folder"""
    env_id: str = "ALE/BeamRider-v5"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    total_timesteps: PositiveInt = 5_000_000
    """the budget: environment steps over all environments together"""
    num_envs: PositiveInt = 1
    """the number of environments that are stepped together"""
    buffer_size: PositiveInt = 1_000_000
    """the number of transitions in the replay buffer; each frame is stored once"""
    gamma: Fraction = 0.99
    """the discount factor"""
    tau: Fraction = 1.0
    """the fraction by which the target networks move towards the networks at each update; 1: copies"""
    batch_size: PositiveInt = 64
    """the number of transitions per update"""
    learning_starts: NonNegativeInt = 20_000
    """the number of random environment steps before the first update"""
    policy_lr: NonNegative = 3e-4
    """the learning rate of the policy"""
    q_lr: NonNegative = 3e-4
    """the learning rate of the Q networks, and of alpha if it is tuned"""
    update_frequency: PositiveInt = 4
    """environment steps between two updates"""
    target_network_frequency: PositiveInt = 8_000
    """environment steps between two updates of the target networks"""
    alpha: Annotated[float, Bounds(minimum=1e-10)] = 0.2
    """the weight of the entropy if it is not tuned"""
    autotune: bool = True
    """tune the weight of the entropy to reach a target entropy"""
    target_entropy_scale: Fraction = 0.89
    """the target entropy, as a fraction of the entropy of random actions"""
    frame_stack: PositiveInt = 4
    """the number of newest frames in an observation"""
    episodic_life: bool = True
    """in Atari games, end the learner's episode when a life is lost; returns are those of whole games"""
    clip_rewards: bool = True
    """in Atari games, clip rewards to their sign for learning; returns are those of the game"""


class _Pictures(nn.Module):
    """The convolutions of the Nature paper and a hidden layer."""

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        self.conv = NatureCNN(shape, orthogonal=False)
        hidden = self.conv[-2]
        # The hidden layer has a name of its own.
        del self.conv[-2:]
        self.fc1 = hidden

    def features(self, pictures: Tensor) -> Tensor:
        return torch.relu(self.fc1(self.conv(pictures)))


class Actor(_Pictures):
    """A logit for each action."""

    def __init__(self, shape: Sequence[int], num_actions: int) -> None:
        super().__init__(shape)
        self.fc_logits = nn.Linear(FEATURES, num_actions)
        self.apply(begin)

    def forward(self, pictures: Tensor) -> Tensor:
        logits: Tensor = self.fc_logits(self.features(pictures))
        return logits


class QNetwork(_Pictures):
    """A value for each action."""

    def __init__(self, shape: Sequence[int], num_actions: int) -> None:
        super().__init__(shape)
        self.fc_q = nn.Linear(FEATURES, num_actions)
        self.apply(begin)

    def forward(self, pictures: Tensor) -> Tensor:
        values: Tensor = self.fc_q(self.features(pictures))
        return values


def begin(layer: nn.Module) -> None:
    """Give a layer the weights of He and others for relu, and no bias, to begin with."""
    if isinstance(layer, nn.Linear | nn.Conv2d):
        nn.init.kaiming_normal_(layer.weight)
        assert layer.bias is not None
        nn.init.zeros_(layer.bias)


def critic_loss(
    critics: nn.ModuleList,
    actor: nn.Module,
    target_critics: nn.ModuleList,
    temperature: Temperature,
    gamma: float,
    batch: Sample,
) -> tuple[Tensor, Tensor]:
    """The loss of both Q networks, and what is logged of it in the order of `LOGGED`."""
    with torch.no_grad():
        log_probs = actor(batch.next_obs).log_softmax(dim=1)
        first, second = (target(batch.next_obs) for target in target_critics)
        soft_values = torch.minimum(first, second) - temperature.log_alpha.exp() * log_probs
        # The mean over all actions, by how likely they are: no action has to be drawn.
        next_values = (log_probs.exp() * soft_values).sum(dim=1)
        targets = batch.rewards + (1.0 - batch.dones) * gamma * next_values
    chosen = batch.actions[:, None]
    values = [critic(batch.obs).gather(1, chosen).squeeze(1) for critic in critics]
    losses = [(value - targets).square().mean() for value in values]
    return losses[0] + losses[1], torch.stack([value.mean() for value in values] + losses)


def actor_loss(
    actor: nn.Module, critics: nn.ModuleList, temperature: Temperature, batch: Sample
) -> tuple[Tensor, Tensor]:
    """The loss of the policy; it is logged with the policy's entropy."""
    with torch.no_grad():
        first, second = (critic(batch.obs) for critic in critics)
        values = torch.minimum(first, second)
    log_probs = actor(batch.obs).log_softmax(dim=1)
    probs = log_probs.exp()
    loss = (probs * (temperature.log_alpha.exp().detach() * log_probs - values)).mean()
    entropy = -(probs * log_probs).sum(dim=1).mean()
    return loss, torch.stack([loss, entropy])


def train(run: Run[Args]) -> None:
    """Step all environments once, then update as often as their steps ask for, until the budget is used."""
    keep_freed_memory()
    args, envs = run.args, run.envs
    actions = DiscreteActions(envs.action_space)
    shape, (num_actions,) = envs.observation_space.shape, actions.nvec
    actor = run.keep("actor", Actor(shape, num_actions).to(run.device))
    critics = nn.ModuleList(QNetwork(shape, num_actions) for _ in range(2)).to(run.device)
    critics = run.keep("critics", critics)
    temperature = run.keep("alpha", Temperature(1.0 if args.autotune else args.alpha).to(run.device))
    actor_optimizer = run.keep("actor_optimizer", Adam(actor, eps=1e-4))
    critic_optimizer = run.keep("critic_optimizer", Adam(critics, eps=1e-4))
    alpha_optimizer = run.keep("alpha_optimizer", Adam(temperature, eps=1e-4))
    target_critics = run.keep("target_critics", Target(critics, critic_optimizer))
    replay = run.keep("replay", Replay(run, args.buffer_size, (), "int64"))
    losses = run.keep("losses", Held())

    logits_of = Forward(actor, run.device)
    written = functools.partial(critic_loss, critics, actor, target_critics.net, temperature, args.gamma)
    critic_gradient = run.keep("critic_loss", Gradient(written, critics, critic_optimizer))
    written = functools.partial(actor_loss, actor, critics, temperature)
    actor_gradient = run.keep("actor_loss", Gradient(written, actor, actor_optimizer))
    target_entropy = args.target_entropy_scale * math.log(num_actions)

    for update in run.updates(every=args.num_envs):
        # The greatest of logits plus Gumbel noise is a sample of their distribution.
        scores = -torch.empty(args.num_envs, num_actions).exponential_().log_().numpy()
        if update.first_step >= args.learning_starts:
            scores = scores + logits_of(replay.obs)
        chosen = actions.best(scores)
        replay.step(actions.for_envs(chosen), chosen[:, 0])

        for step in range(update.first_step + 1, update.last_step + 1):
            if step > args.learning_starts:
                if step % args.update_frequency == 0:
                    batch = replay.sample(args.batch_size)
                    logged = dict(zip(LOGGED, critic_gradient(batch).tolist(), strict=True))
                    critic_optimizer.step(args.q_lr)
                    policy_loss, entropy = actor_gradient(batch).tolist()
                    actor_optimizer.step(args.policy_lr)
                    alpha = math.exp(temperature.log_alpha.item())
                    alpha_loss = alpha * (entropy - target_entropy) / num_actions
                    if args.autotune:
                        # Alpha times a constant: the loss is its own slope along the logarithm of alpha.
                        alpha_optimizer.gradient.fill_(alpha_loss)
                        alpha_optimizer.step(args.q_lr)
                    losses.values.update(
                        logged,
                        qf_loss=(logged["qf1_loss"] + logged["qf2_loss"]) / 2.0,
                        actor_loss=policy_loss,
                        alpha=alpha,
                        alpha_loss=alpha_loss,
                        entropy=entropy,
                    )
                if step % args.target_network_frequency == 0:
                    target_critics.follow(args.tau)
            if step % LOG_EVERY == 0:
                run.log(step, losses.values)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    actor = load_weights(Actor(spaces.observation_space.shape, int(spaces.action_space.n)), weights)
    return CategoricalPolicy(actor, None, spaces.action_space, images=True)


SPEC = AlgorithmSpec(
    name="sac_atari",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("discrete",),
    observation_spaces=("image",),
    flat_observations=False,
    wrap=lambda env, args: wrap_atari(env, args, args.frame_stack),
    env_defaults=atari_defaults,
    atari=lambda args: atari_options(args, args.frame_stack),
    model="actor",
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
