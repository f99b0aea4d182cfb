"""Proximal policy optimisation in JAX for games of Atari that EnvPool steps in parallel threads."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from cleanrl_worker.agents.jax_nature import NatureAgent
from cleanrl_worker.evaluation.jax_policies import CategoricalPolicy
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, PositiveInt
from cleanrl_worker.kit.discrete_actions import DiscreteActions, choice_slices
from cleanrl_worker.kit.jax_backend import Tree, load_tree, shapes_of
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.rollout import Rollout, explained_variance, flat, gae_of_values
from cleanrl_worker.kit.run import Run, run_algorithm
from cleanrl_worker.kit.spec import ARGS, AlgorithmSpec, split_model
from cleanrl_worker.wrappers.atari import atari_defaults, atari_options, wrap_atari

LOGGED = ("value_loss", "policy_loss", "entropy", "old_approx_kl", "approx_kl", "clipfrac")
MODEL = {"0": ARGS, "1": {"0": "agent.network", "1": "agent.actor", "2": "agent.critic"}}
"""As Flax writes lists."""


@dataclass
class Args(CommonArgs):
    """Proximal policy optimisation in JAX for Atari games with EnvPool."""

    exp_name: str = "ppo_atari_envpool_xla_jax"
    """the name of the experiment, part of the name of the results folder"""
    env_id: str = "ALE/Breakout-v5"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    total_timesteps: PositiveInt = 10_000_000
    """the budget: environment steps over all environments together"""
    learning_rate: NonNegative = 2.5e-4
    """the learning rate of Adam"""
    num_envs: PositiveInt = 8
    """the number of environments that are stepped together"""
    num_steps: PositiveInt = 128
    """the number of steps per environment in a rollout"""
    anneal_lr: bool = True
    """anneal the learning rate linearly to zero over the run"""
    gamma: Fraction = 0.99
    """the discount factor"""
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
    ent_coef: NonNegative = 0.01
    """the weight of the entropy bonus"""
    vf_coef: NonNegative = 0.5
    """the weight of the value loss"""
    max_grad_norm: NonNegative = 0.5
    """the maximum norm of the gradient"""
    target_kl: Annotated[float | None, Bounds(minimum=0.0)] = None
    """end an update early if the mean KL divergence of an epoch exceeds this; none: never"""
    frame_stack: PositiveInt = 4
    """the number of newest frames in an observation"""
    episodic_life: bool = True
    """in Atari games, end the learner's episode when a life is lost; returns are those of whole games"""
    clip_rewards: bool = True
    """in Atari games, clip rewards to their sign for learning; returns are those of the game"""


class Form(NamedTuple):
    """What of the arguments is compiled into an update."""

    norm_adv: bool
    clip_coef: float
    clip_vloss: bool
    ent_coef: float
    vf_coef: float
    max_grad_norm: float

    def optimizer(self, learning_rate: Any) -> Any:
        """Adam, on a gradient of limited norm."""
        limit = optax.clip_by_global_norm(self.max_grad_norm)
        return optax.chain(limit, optax.adam(learning_rate, eps=1e-5))


class Batch(NamedTuple):
    """Steps in rows. `actions` has a column for each choice."""

    obs: Any
    actions: Any
    log_probs: Any
    advantages: Any
    returns: Any
    values: Any


look = jax.jit(NatureAgent.apply, static_argnums=0)
"""Logits and values of observations, compiled once for each number of them."""


def log_probs_of(agent: NatureAgent, logits: jax.Array, actions: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Log probabilities of actions, and the mean entropy. Choices made at once are independent."""
    each = [jax.nn.log_softmax(logits[:, part]) for part in choice_slices(agent.nvec)]
    chosen = [jnp.take_along_axis(part, actions[:, column, None], axis=1) for column, part in enumerate(each)]
    entropy = sum(-(jnp.exp(part) * part).sum(axis=1).mean() for part in each)
    return jnp.concatenate(chosen, axis=1).sum(axis=1), jnp.asarray(entropy)


def draw(agent: NatureAgent, params: Any, key: Any, obs: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Actions drawn for observations, their log probabilities, and the values of the observations."""
    logits, values = agent.apply(params, obs)
    # The greatest of logits plus Gumbel noise is a sample of their distribution.
    scores = logits + jax.random.gumbel(key, logits.shape)
    actions = jnp.stack([scores[:, part].argmax(axis=1) for part in choice_slices(agent.nvec)], axis=1)
    return actions, log_probs_of(agent, logits, actions)[0], values


compiled_draw = jax.jit(draw, static_argnums=0)


def ppo_loss(params: Any, agent: NatureAgent, form: Form, batch: Batch) -> tuple[jax.Array, jax.Array]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    logits, values = agent.apply(params, batch.obs)
    log_probs, entropy = log_probs_of(agent, logits, batch.actions)
    log_ratio = log_probs - batch.log_probs
    ratio = jnp.exp(log_ratio)

    advantages = batch.advantages
    if form.norm_adv:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    clipped_ratio = jnp.clip(ratio, 1.0 - form.clip_coef, 1.0 + form.clip_coef)
    policy_loss = -jnp.minimum(advantages * ratio, advantages * clipped_ratio).mean()

    error = jnp.square(values - batch.returns)
    if form.clip_vloss:
        clipped_values = batch.values + jnp.clip(values - batch.values, -form.clip_coef, form.clip_coef)
        error = jnp.maximum(error, jnp.square(clipped_values - batch.returns))
    value_loss = 0.5 * error.mean()

    old_approx_kl = -log_ratio.mean()
    approx_kl = (ratio - 1.0).mean() + old_approx_kl
    clipfrac = (ratio != clipped_ratio).mean()
    logged = jnp.stack([value_loss, policy_loss, entropy, old_approx_kl, approx_kl, clipfrac])
    return policy_loss - form.ent_coef * entropy + form.vf_coef * value_loss, logged


@functools.partial(jax.jit, static_argnums=(0, 1))
def learn(
    agent: NatureAgent, form: Form, learning_rate: float, params: Any, moments: Any, batch: Batch
) -> tuple[Any, Any, jax.Array]:
    """Parameters and moments after one step of Adam on a minibatch, and what is logged."""
    slopes, logged = jax.grad(ppo_loss, has_aux=True)(params, agent, form, batch)
    moves, moments = form.optimizer(learning_rate).update(slopes, moments)
    return optax.apply_updates(params, moves), moments, logged


class Learner:
    """An agent and its optimizer, which learn from rollouts."""

    def __init__(self, run: Run[Any], rollout: Rollout) -> None:
        args, envs = run.args, run.envs
        self._run = run
        self._rollout = rollout
        self._form = Form(*(getattr(args, name) for name in Form._fields))
        self.actions = DiscreteActions(envs.action_space)
        self.agent = NatureAgent(self.actions.nvec)
        first = self.agent.init(run.backend.key(), rollout.all_obs[-1])
        self.params = run.keep("agent", Tree(first))
        init = jax.jit(self._form.optimizer(args.learning_rate).init)
        self._moments = run.keep("optimizer", Tree(init(first)))

    def learn(self, learning_rate: float) -> dict[str, float]:
        """Learn from the rollout in epochs and minibatches; gives the losses of the last epoch."""
        args, rollout = self._run.args, self._rollout
        batch = self._batch()
        for _ in range(args.update_epochs):
            logged = []
            for rows in self._run.minibatches(len(batch.obs), args.num_minibatches):
                part = Batch(*(column[rows] for column in batch))
                self.params.value, self._moments.value, found = learn(
                    self.agent, self._form, learning_rate, self.params.value, self._moments.value, part
                )
                logged.append(np.asarray(found))
            losses = dict(zip(LOGGED, np.mean(logged, axis=0).tolist(), strict=True))
            if args.target_kl is not None and losses["approx_kl"] > args.target_kl:
                break
        explained = explained_variance(flat(rollout["values"]), batch.returns)
        return losses if explained is None else {**losses, "explained_variance": explained}

    def _batch(self) -> Batch:
        """The steps of the rollout in rows, with advantages that end where episodes do."""
        args, rollout = self._run.args, self._rollout
        last_values = self._values(rollout.all_obs[-1])
        final = [obs for _, _, obs in rollout.final_obs]
        final_values = np.concatenate([self._values(obs[None]) for obs in final]) if final else None
        values = np.concatenate((rollout["values"], last_values[None]))
        advantages = gae_of_values(rollout, values, final_values, args.gamma, args.gae_lambda)
        columns = (rollout.obs, rollout["actions"], rollout["log_probs"])
        returns = advantages + values[:-1]
        return Batch(*map(flat, (*columns, advantages, returns, values[:-1])))

    def _values(self, obs: NDArray[Any]) -> NDArray[np.float32]:
        return np.asarray(look(self.agent, self.params.value, obs)[1])


def train(run: Run[Args]) -> None:
    """Rollout and update in turn until the step budget is used; the last rollout may be shorter."""
    args = run.args
    rollout = run.keep("rollout", Rollout(run, args.num_steps))
    learner = Learner(run, rollout)
    agent, actions = learner.agent, learner.actions

    for update in run.updates(every=args.num_envs * args.num_steps):
        learning_rate = args.learning_rate * (1.0 - update.progress if args.anneal_lr else 1.0)
        for obs in rollout.collect(update):
            chosen, log_probs, values = map(
                np.asarray, compiled_draw(agent, learner.params.value, run.backend.key(), obs)
            )
            rollout.step(actions.for_envs(chosen), actions=chosen, log_probs=log_probs, values=values)
        run.log(update.last_step, learner.learn(learning_rate), learning_rate=learning_rate)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    agent = NatureAgent(DiscreteActions(spaces.action_space).nvec)
    params = load_tree(shapes_of(agent, spaces.observation_space.shape), split_model(MODEL, weights)["agent"])
    return CategoricalPolicy(functools.partial(look, agent, params), spaces.action_space, images=True)


SPEC = AlgorithmSpec(
    name="ppo_atari_envpool_xla_jax",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("discrete", "multi_discrete", "multi_binary"),
    observation_spaces=("image",),
    flat_observations=False,
    wrap=lambda env, args: wrap_atari(env, args, args.frame_stack),
    env_defaults=atari_defaults,
    atari=lambda args: atari_options(args, args.frame_stack),
    env_backend="envpool",
    model=MODEL,
    backend="jax",
    requires=("jax",),
    exact=False,
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
