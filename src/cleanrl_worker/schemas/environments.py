"""The environments that are known without importing gymnasium, which algorithm fits which, and what steps
them: Python, EnvPool or ALE's vector."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cleanrl_worker.schemas.model import AlgoSchema, known_schema, shipped_algorithms
from cleanrl_worker.schemas.spaces import action_kind, observation_kind
from mosaic.contract.capabilities import EnvironmentFamily
from mosaic.contract.errors import UserError, closest

PROCGEN = "procgen"
"""The family of the games that only EnvPool has."""
_OLD_ATARI = re.compile(r"(\w+)NoFrameskip-v[04]")
_PETTINGZOO = "pettingzoo/"
CATALOG_FILE = Path(__file__).with_name("environments.json")
PYTHON, ENVPOOL, ALE = "python", "envpool", "ale"
EXTRAS = {ENVPOOL: "envpool", ALE: "atari"}
"""The optional set of packages that each compiled backend is in."""
TITLES = {ENVPOOL: "EnvPool", ALE: "ALE's vector"}
FAMILIES = {
    one.name: one
    for one in (
        EnvironmentFamily("classic", "Classic control", "ppo", "CartPole-v1"),
        EnvironmentFamily("toy_text", "Toy text", "pqn", "FrozenLake-v1"),
        EnvironmentFamily("box2d", "Box2D", "ppo", "LunarLander-v3"),
        EnvironmentFamily("mujoco", "MuJoCo", "ppo_continuous_action", "Hopper-v5"),
        EnvironmentFamily(
            "dm_control", "DeepMind Control", "rpo_continuous_action", "dm_control/cartpole-balance-v0"
        ),
        EnvironmentFamily("minigrid", "MiniGrid", "ppo", "MiniGrid-Empty-5x5-v0"),
        EnvironmentFamily("babyai", "BabyAI", "ppo", "BabyAI-GoToRedBallNoDists-v0"),
        EnvironmentFamily("atari", "Atari", "ppo_atari", "ALE/Pong-v5"),
        EnvironmentFamily(
            "pettingzoo", "PettingZoo's Atari", "ppo_pettingzoo_ma_atari", "pettingzoo/pong_v3"
        ),
        EnvironmentFamily(PROCGEN, "Procgen", "ppo_procgen", "StarpilotEasy-v0"),
        EnvironmentFamily("mosaic", "Small tasks of MOSAIC", "ppo_atari", "mosaic/Catch-v0"),
    )
}
"""The families of the catalog in the order in which they are told, each with an example that trains."""


@dataclass(frozen=True)
class EnvironmentEntry:
    """One environment: its family, the extra that installs it, its spaces, its episode limit."""

    env_id: str
    family: str
    extra: str | None
    observation: Mapping[str, Any]
    action: Mapping[str, Any]
    max_episode_steps: int | None
    draws: bool = True
    """Whether it says that it can give pictures, as all in the catalog do."""
    backends: Sequence[str] = (PYTHON,)
    """What can step it."""
    players: int = 1
    """How many agents it has; spaces are those of each."""

    @property
    def drawn_by(self) -> str | None:
        """The optional set that draws it, where that is known; what installs an environment draws it."""
        return self.extra or ("classic" if self.family in ("classic", "toy_text") else None)


@functools.cache
def load_environments() -> Mapping[str, EnvironmentEntry]:
    """All environments of the catalog by their ids."""
    data = json.loads(CATALOG_FILE.read_text("utf-8"))
    return MappingProxyType({name: EnvironmentEntry(name, **entry) for name, entry in data.items()})


def find_environment(env_id: str) -> EnvironmentEntry | None:
    """The catalog's entry, or None when the catalog does not have this id."""
    old = _OLD_ATARI.fullmatch(env_id)
    known = load_environments()
    entry = known.get(f"ALE/{old[1]}-v5" if old else env_id) or known.get(f"{_PETTINGZOO}{env_id}")
    return replace(entry, env_id=env_id) if entry is not None and old else entry


def check_environment(env_id: str, probe: Callable[[str], EnvironmentEntry]) -> EnvironmentEntry:
    """What is known of an environment; an id that nobody knows raises UserError.

    `probe` asks the training interpreter about ids that are not in the catalog.
    """
    try:
        return find_environment(env_id) or probe(env_id)
    except UserError as error:
        if ":" in env_id:
            raise
        # What is recommended is what can be trained on.
        near = closest(env_id, [name for name, entry in load_environments().items() if _fitting(entry)])
        if near:
            raise UserError(f"There is no environment '{env_id}'{near}") from error
        raise


_MEANT = {
    "fixed_box": " (low = high in some of them)",
    "empty": " (a shape with 0 in it)",
    "dict": " (with an image in them)",
    "tuple": " (with an image in them)",
}


def check_fit(algo: str, entry: EnvironmentEntry) -> None:
    """Raise UserError when `algo` cannot train on the environment's spaces."""
    schema = known_schema(algo)
    if schema is None:
        return
    if schema.wraps and entry.family == PROCGEN:
        raise UserError(
            f"{schema.name} preprocesses observations, which EnvPool does only for Atari games; "
            f"{_advice(entry, 'image')}, because {entry.env_id} exists only in EnvPool."
        )
    for role, allowed, kind in _roles(schema, entry):
        if kind not in allowed:
            raise UserError(
                f"{schema.name} takes {_either(allowed)} {role}s, but {entry.env_id} has {kind} {role}s"
                f"{_MEANT.get(kind, '')}; {_advice(entry, kind)}."
            )
    if not _has_its_players(schema, entry):
        one = f"{schema.name} trains one agent, but {entry.env_id} is a game of {entry.players} players"
        if schema.several_players:
            one = f"{schema.name} trains all players of a game, but {entry.env_id} has one agent"
        fitting = _fitting(entry)
        raise UserError(f"{one}; {f'use {fitting}' if fitting else 'choose another environment'}.")


def _has_its_players(schema: AlgoSchema, entry: EnvironmentEntry) -> bool:
    return schema.several_players == (entry.players > 1)


def check_seats(num_envs: int, curriculum: bool, entry: EnvironmentEntry) -> None:
    """Raise UserError when the players of so many games cannot be `num_envs`."""
    if entry.players > 1 and num_envs % entry.players:
        raise UserError(
            f"num_envs is {num_envs}, but it counts the players, and {entry.env_id} has {entry.players}: "
            f"give a multiple of {entry.players}."
        )
    if entry.players > 1 and curriculum:
        raise UserError(
            f"{entry.env_id} is a multiplayer game, which curricula do not support: leave it out."
        )


def find_takers(algorithms: Iterable[str], entry: EnvironmentEntry) -> tuple[str, ...]:
    """Those of some algorithms that train on an environment as it is, on their own usual backend."""
    action, observation = action_kind(entry.action), observation_kind(entry.observation)
    return tuple(
        algo
        for algo in algorithms
        if (schema := known_schema(algo)) is not None
        and action in schema.action_spaces
        and observation in schema.observation_spaces
        and schema.env_backend in entry.backends
        # What compiled backends show, they prepare for games of Atari only.
        and (schema.env_backend == PYTHON or not schema.wraps or entry.family == "atari")
        and _has_its_players(schema, entry)
    )


def _roles(schema: AlgoSchema, entry: EnvironmentEntry) -> list[tuple[str, tuple[str, ...], str]]:
    return [
        ("action", schema.action_spaces, action_kind(entry.action)),
        ("observation", schema.observation_spaces, observation_kind(entry.observation)),
    ]


def _either(names: tuple[str, ...]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _advice(entry: EnvironmentEntry, kind: str) -> str:
    fitting = _fitting(entry)
    if fitting:
        return f"use {fitting}"
    if kind == "image":
        return "choose an environment with vector observations, or give a script of your own as a file"
    return "choose another environment"


def _fitting(entry: EnvironmentEntry) -> str:
    """The first of our algorithms that can train on an environment; empty for none."""
    return next(iter(find_takers(shipped_algorithms(), entry)), "")


_PROCGEN_GAMES = frozenset(
    (
        *("bigfish", "bossfight", "caveflyer", "chaser", "climber", "coinrun", "dodgeball", "fruitbot"),
        *("heist", "jumper", "leaper", "maze", "miner", "ninja", "plunder", "starpilot"),
    )
)
_ENVPOOL_ATARI = re.compile(r"([A-Z]\w+)-v5")
_OF_MUJOCO = re.compile(
    r"(Ant|HalfCheetah|Hopper|Humanoid|HumanoidStandup|InvertedDoublePendulum|InvertedPendulum|Pusher|Reacher"
    r"|Swimmer|Walker2d)-v5"
)


def choose_backend(asked: str, usual: str) -> str:
    """The backend of a run; `usual` is what `auto` means for its algorithm."""
    return usual if asked == "auto" else asked


def gymnasium_id(env_id: str, backend: str) -> str:
    """An environment by the id under which everything else knows it: EnvPool calls Atari games `Pong-v5`, and
    PettingZoo one of its own `pong_v3`; scripts for Procgen call its easy games by their names alone."""
    if backend == ENVPOOL and env_id in _PROCGEN_GAMES:
        return f"{env_id.title()}Easy-v0"
    if f"{_PETTINGZOO}{env_id}" in load_environments():
        return f"{_PETTINGZOO}{env_id}"
    match = _ENVPOOL_ATARI.fullmatch(env_id)
    if backend != ENVPOOL or match is None or _OF_MUJOCO.fullmatch(env_id):
        return env_id
    return f"{match[1]}NoFrameskip-v4"


def check_backend(algo: str, backend: str, env_id: str, curriculum: bool, capture_video: bool) -> None:
    """Raise UserError when a backend cannot do what else a run asks for."""
    if backend == PYTHON:
        entry = find_environment(env_id)
        if entry is not None and entry.family == PROCGEN:
            # Another backend helps only an algorithm that can play such a game.
            check_fit(algo, entry)
            raise UserError(f"{env_id} exists only in EnvPool: use env_backend envpool.")
        return
    what = ""
    if curriculum:
        what = "does not support curricula"
    elif capture_video:
        what = "records no videos (capture_video)"
    elif ":" in env_id:
        what = f"supports only its own environments, and {env_id} comes from a Python module"
    if what:
        raise UserError(f"env_backend {backend} {what}: use env_backend python.")


def explain_backend(backend: str, env_id: str, lives: bool) -> str:
    """What differs from Python environments, in one line. `lives`: a lost life ends an episode."""
    parts = [f"{TITLES[backend]} steps {env_id}: episodes start from other random numbers than in Python"]
    if backend == ENVPOOL and lives:
        parts.append("after a lost life up to 30 frames pass unplayed and uncounted")
    if backend == ALE and lives:
        parts.append("after a lost life only the policy presses FIRE")
    parts.append("a resumed run starts new episodes")
    parts.append("evaluations are played in Python if it has the environment")
    return "; ".join(parts) + "."
