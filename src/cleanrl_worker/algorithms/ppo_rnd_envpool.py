"""Proximal policy optimisation that also looks for what is new, for games that hardly ever pay.

New is what a network cannot guess yet: the features that another one, drawn at random, has of a picture.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cleanrl_worker.agents.curiosity import CuriousAgent, RandomDistillation
from cleanrl_worker.evaluation.policies import CategoricalPolicy
from cleanrl_worker.kit.accelerate import Floats, Gradient, take
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, PositiveInt
from cleanrl_worker.kit.discrete_actions import DiscreteActions
from cleanrl_worker.kit.normalise import RunningMoments
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.rollout import Rollout, explained_variance, flat, gae_of_values
from cleanrl_worker.kit.rollout import advantages as advantages_of
from cleanrl_worker.kit.run import Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.state import Held, State
from cleanrl_worker.kit.torch_backend import Adam, keep_freed_memory, load_weights
from cleanrl_worker.wrappers.atari import atari_defaults, atari_options, wrap_atari

LOGGED = ("value_loss", "policy_loss", "entropy", "old_approx_kl", "approx_kl", "clipfrac", "fwd_loss")


STICKY = 0.25
"""How likely a game of Atari takes the last action again, unless its keyword arguments say otherwise."""


@dataclass
class Args(CommonArgs):
    """PPO with random network distillation, which rewards novelty, for discrete actions and images."""

    exp_name: str = "ppo_rnd_envpool"
    """the name of the experiment, part of the name of the results folder"""
    env_id: str = "ALE/MontezumaRevenge-v5"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    total_timesteps: PositiveInt = 2_000_000_000
    """the budget: environment steps over all environments together"""
    learning_rate: NonNegative = 1e-4
    """the learning rate of Adam"""
    num_envs: PositiveInt = 128
    """the number of environments that are stepped together"""
    num_steps: PositiveInt = 128
    """the number of steps per environment in a rollout"""
    anneal_lr: bool = True
    """anneal the learning rate linearly to zero over the run"""
    gamma: Fraction = 0.999
    """the discount factor of extrinsic rewards, those of the game"""
    int_gamma: Fraction = 0.99
    """the discount factor of intrinsic rewards"""
    gae_lambda: Fraction = 0.95
    """lambda of generalised advantage estimation"""
    num_minibatches: PositiveInt = 4
    """the number of minibatches per pass over a rollout"""
    update_epochs: PositiveInt = 4
    """the number of passes over each rollout"""
    norm_adv: bool = True
    """normalise the advantages of each minibatch"""
    clip_coef: NonNegative = 0.1
    """the clip range: how far the probability ratio may move from 1"""
    clip_vloss: bool = True
    """clip the value loss in the same way"""
    ent_coef: NonNegative = 0.001
    """the weight of the entropy bonus"""
    vf_coef: NonNegative = 0.5
    """the weight of the value loss"""
    max_grad_norm: NonNegative = 0.5
    """the maximum norm of the gradient"""
    target_kl: Annotated[float | None, Bounds(minimum=0.0)] = None
    """end an update early if the mean KL divergence of an epoch exceeds this; none: never"""
    update_proportion: Fraction = 0.25
    """the fraction of each minibatch on which the predictor is trained"""
    int_coef: NonNegative = 1.0
    """the weight of intrinsic advantages"""
    ext_coef: NonNegative = 2.0
    """the weight of extrinsic advantages"""
    num_iterations_obs_norm_init: PositiveInt = 50
    """rollouts of random actions at the start of a new run, to initialise the observation statistics"""
    frame_stack: PositiveInt = 4
    """the number of newest frames in an observation"""
    episodic_life: bool = True
    """in Atari games, end the learner's episode when a life is lost; returns are those of whole games"""
    clip_rewards: bool = True
    """in Atari games, clip rewards to their sign for learning; returns are those of the game"""


class Batch(NamedTuple):
    """Steps in rows: arrays, or tensors in the loss. `actions` has a column for each choice."""

    obs: Any
    actions: Any
    log_probs: Any
    advantages: Any
    returns: Any
    values: Any
    int_returns: Any
    frames: Any
    """The newest frame of each observation."""


class Frames:
    """The newest frames of observations, normalised by what has been seen."""

    def __init__(self, shape: tuple[int, ...], device: Any) -> None:
        self._first = shape[0] < min(shape[1:])
        self.size = shape[1:] if self._first else shape[:2]
        self._moments = RunningMoments(np.zeros(self.size), np.ones(self.size))
        self._device = device

    def newest(self, obs: NDArray[Any]) -> NDArray[Any]:
        """The newest frame of each observation."""
        return obs[:, -1] if self._first else obs[..., -1]

    def observe(self, obs: NDArray[Any]) -> None:
        """Learn what frames look like."""
        self._moments.update(self.newest(obs).astype(np.float64))

    def normalise(self, frames: Tensor) -> Tensor:
        """Frames of mean 0 and variance 1, cut at ±5."""
        mean, var = (torch.as_tensor(one).float() for one in (self._moments.mean, self._moments.var))
        mean, deviation = mean.to(self._device), (var + 1e-8).sqrt().to(self._device)
        return ((frames - mean) / deviation).clamp_(-5.0, 5.0)

    def state(self) -> State:
        return self._moments.state()

    def load(self, state: State) -> None:
        self._moments.load(state)


def ppo_loss(
    agent: CuriousAgent, distillation: RandomDistillation, frames: Frames, args: Args, batch: Batch
) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    logits, values, int_values = agent(batch.obs)
    # Choices made at once are independent: their log probabilities and entropies add up.
    each = [part.log_softmax(dim=1) for part in logits.split(agent.nvec, dim=1)]
    entropy = torch.stack([-(part.exp() * part).sum(1).mean() for part in each]).sum()
    chosen = [part.gather(1, batch.actions[:, column, None]) for column, part in enumerate(each)]
    log_ratio = torch.cat(chosen, dim=1).sum(1) - batch.log_probs
    ratio = log_ratio.exp()

    advantages = batch.advantages
    if args.norm_adv and len(advantages) > 1:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    clipped_ratio = ratio.clamp(1.0 - args.clip_coef, 1.0 + args.clip_coef)
    policy_loss = -torch.minimum(advantages * ratio, advantages * clipped_ratio).mean()

    error = (values - batch.returns).square()
    if args.clip_vloss:
        clipped_values = batch.values + (values - batch.values).clamp(-args.clip_coef, args.clip_coef)
        error = torch.maximum(error, (clipped_values - batch.returns).square())
    value_loss = 0.5 * error.mean() + 0.5 * (int_values - batch.int_returns).square().mean()

    guesses = distillation(frames.normalise(batch.frames))
    learned = (torch.rand(len(guesses), device=guesses.device) < args.update_proportion).float()
    fwd_loss = (guesses * learned).sum() / learned.sum().clamp(min=1.0)

    with torch.no_grad():
        old_approx_kl = -log_ratio.mean()
        approx_kl = (ratio - 1.0).mean() + old_approx_kl
        clipfrac = (ratio != clipped_ratio).float().mean()
        logged = torch.stack([value_loss, policy_loss, entropy, old_approx_kl, approx_kl, clipfrac, fwd_loss])
    loss = policy_loss - args.ent_coef * entropy + args.vf_coef * value_loss + fwd_loss
    return loss, logged


@torch.no_grad()
def look(agent: CuriousAgent, obs: NDArray[Any], device: Any) -> tuple[Floats, Floats, Floats]:
    """Logits and both values of observations."""
    logits, values, int_values = (np.asarray(one.cpu()) for one in agent(torch.from_numpy(obs).to(device)))
    return logits, values, int_values


@torch.no_grad()
def novelty_of(distillation: RandomDistillation, frames: Frames, obs: NDArray[Any], device: Any) -> Floats:
    """How new the newest frames of observations are."""
    newest = torch.from_numpy(np.ascontiguousarray(frames.newest(obs))).to(device)
    return np.asarray(0.5 * distillation(frames.normalise(newest)).cpu())


def act_at_random(run: Run[Args], frames: Frames) -> None:
    """Let `frames` see what random actions lead to; nothing of it is counted or learned from."""
    args, envs = run.args, run.envs
    obs = np.zeros((args.num_envs, *envs.observation_space.shape), envs.obs_dtype)
    envs.reset(args.seed, out=obs)
    envs.action_space.seed(args.seed)
    for _ in range(args.num_iterations_obs_norm_init * args.num_steps):
        run.preparing()
        envs.step([envs.action_space.sample() for _ in range(args.num_envs)], obs)
        frames.observe(obs)


def scale_novelty(novelty: Floats, returns: RunningMoments, past: Held, gamma: float) -> Floats:
    """Rewards for what is new, (step, environment), over the deviation of their discounted sums so far."""
    running = np.empty(novelty.shape)
    now = past.values["running"]
    for step, reward in enumerate(novelty):
        # No episode's end cuts it: what was seen once is not new in the next one either.
        now = running[step] = now * gamma + reward
    past.values["running"] = now.copy()
    returns.merge(float(running.mean()), float(running.var()), running.size)
    scaled: Floats = (novelty / np.sqrt(returns.var + 1e-8)).astype(np.float32)
    return scaled


def train(run: Run[Args]) -> None:
    """Rollout and update in turn until the step budget is used; the last rollout may be shorter."""
    keep_freed_memory()
    args, envs = run.args, run.envs
    actions = DiscreteActions(envs.action_space)
    shape = envs.observation_space.shape
    agent = run.keep("agent", CuriousAgent(shape, actions.nvec).to(run.device))
    frames = run.keep("frames", Frames(shape, run.device))
    distillation = run.keep("distillation", RandomDistillation(frames.size).to(run.device))
    learned = torch.nn.ModuleList([agent, distillation.predictor])
    optimizer = run.keep("optimizer", Adam(learned, eps=1e-5))
    int_returns = run.keep("int_returns", RunningMoments(0.0, 1.0))
    past = run.keep("int_past", Held(running=np.zeros(args.num_envs)))
    if run.is_new:
        run.begin_phase(1, "random steps, to see what observations are like")
        act_at_random(run, frames)
    run.begin_phase(2, "training")
    rollout = run.keep("rollout", Rollout(run, args.num_steps))
    loss = functools.partial(ppo_loss, agent, distillation, frames, args)
    gradient = run.keep("loss", Gradient(loss, learned, optimizer))

    for update in run.updates(every=args.num_envs * args.num_steps):
        learning_rate = args.learning_rate * (1.0 - update.progress if args.anneal_lr else 1.0)
        # The greatest of logits plus Gumbel noise is a sample of their distribution.
        noise_shape = (update.steps, args.num_envs, sum(actions.nvec))
        noise = -torch.empty(noise_shape).exponential_().log_().numpy()
        for t, obs in enumerate(rollout.collect(update)):
            logits, seen, new = look(agent, obs, run.device)
            chosen = actions.best(logits + noise[t])
            rollout.step(actions.for_envs(chosen), logits=logits, actions=chosen, values=seen, int_values=new)

        reached = rollout.all_obs[1:]
        novelty = np.stack([novelty_of(distillation, frames, obs, run.device) for obs in reached])
        int_rewards = scale_novelty(novelty, int_returns, past, args.int_gamma)
        for obs in rollout.obs:
            frames.observe(obs)

        _, last, last_new = look(agent, rollout.all_obs[-1], run.device)
        final = [obs for _, _, obs in rollout.final_obs]
        final_values = look(agent, np.stack(final), run.device)[1] if final else None
        values = np.concatenate((rollout["values"], last[None]))
        int_values = np.concatenate((rollout["int_values"], last_new[None]))
        ext = gae_of_values(rollout, values, final_values, args.gamma, args.gae_lambda)
        no_ends = np.zeros_like(int_rewards)
        new_advantages = advantages_of(
            int_rewards, no_ends, int_values[:-1], int_values[1:], args.int_gamma, args.gae_lambda
        )
        batch = Batch(
            obs=flat(rollout.obs),
            actions=flat(rollout["actions"]),
            log_probs=actions.log_probs(flat(rollout["logits"]), flat(rollout["actions"])),
            advantages=(args.ext_coef * ext + args.int_coef * new_advantages).reshape(-1),
            returns=(ext + values[:-1]).reshape(-1),
            values=values[:-1].reshape(-1),
            int_returns=(new_advantages + int_values[:-1]).reshape(-1),
            frames=frames.newest(flat(rollout.obs)),
        )
        for _ in range(args.update_epochs):
            logged = []
            for rows in run.minibatches(len(batch.obs), args.num_minibatches):
                logged.append(gradient(take(batch, rows)))
                optimizer.step(learning_rate, args.max_grad_norm)
            losses = dict(zip(LOGGED, np.mean(logged, axis=0).tolist(), strict=True))
            if args.target_kl is not None and losses["approx_kl"] > args.target_kl:
                break
        explained = explained_variance(batch.values, batch.returns)
        if explained is not None:
            losses["explained_variance"] = explained
        curiosity = float(novelty.mean())
        run.log(update.last_step, losses, learning_rate=learning_rate, curiosity_reward=curiosity)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    nvec = DiscreteActions(spaces.action_space).nvec
    agent = load_weights(CuriousAgent(spaces.observation_space.shape, nvec), weights)
    return CategoricalPolicy(agent.logits, agent.value, spaces.action_space, images=True)


def sticky_defaults(env_id: str) -> Mapping[str, Any]:
    """How a game of Atari is made: as for the other algorithms, but with actions that stick."""
    usual = atari_defaults(env_id)
    return {**usual, "repeat_action_probability": STICKY} if usual else usual


SPEC = AlgorithmSpec(
    name="ppo_rnd_envpool",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("discrete", "multi_discrete", "multi_binary"),
    observation_spaces=("image",),
    flat_observations=False,
    wrap=lambda env, args: wrap_atari(env, args, args.frame_stack),
    env_defaults=sticky_defaults,
    atari=lambda args: dataclasses.replace(atari_options(args, args.frame_stack), sticky=STICKY),
    env_backend="envpool",
    exact=False,
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
