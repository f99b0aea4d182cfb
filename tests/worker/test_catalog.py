"""The catalog knows the environments and which algorithm fits them."""

from __future__ import annotations

import json

import gymnasium
import pytest

from cleanrl_worker.schemas.environments import (
    CATALOG_FILE,
    FAMILIES,
    EnvironmentEntry,
    check_environment,
    check_fit,
    find_environment,
    load_environments,
)
from cleanrl_worker.tools.generate_catalog import PAGE, describe_all, generate_page, load_json, to_text
from mosaic.contract.errors import UserError

OWN = EnvironmentEntry("mine:Own-v0", "custom", None, {"kind": "box"}, {"kind": "discrete", "n": 2}, None)


def test_catalog_is_fresh_and_keeps_entries_whose_package_is_missing() -> None:
    gymnasium.register("Needy-v0", "minigrid.not_installed:Needy")
    try:
        fresh = describe_all({**load_json(), "Needy-v0": {"family": "minigrid"}, "Gone-v0": {}})
    finally:
        del gymnasium.registry["Needy-v0"]
    assert fresh.pop("Needy-v0") == {"family": "minigrid", "backends": ["python"]}
    assert to_text(fresh) == CATALOG_FILE.read_text("utf-8")


def test_the_page_about_environments_is_fresh() -> None:
    assert PAGE.read_text("utf-8") == generate_page()


def test_each_family_is_there() -> None:
    assert {entry.family for entry in load_environments().values()} == set(FAMILIES)
    assert len(CATALOG_FILE.read_text("utf-8").splitlines()) == len(load_environments()) + 2


def test_an_entry_tells_spaces_and_limits() -> None:
    cartpole = find_environment("CartPole-v1")
    assert cartpole is not None
    assert (cartpole.family, cartpole.extra, cartpole.max_episode_steps) == ("classic", None, 500)
    assert cartpole.observation == {"kind": "box", "shape": [4], "dtype": "float32"}
    assert cartpole.action == {"kind": "discrete", "n": 2}
    ant = find_environment("Ant-v5")
    for env_id in ("ALE/Pong-v5", "PongNoFrameskip-v4"):
        pong = find_environment(env_id)
        assert pong is not None and (pong.env_id, pong.family, pong.extra) == (env_id, "atari", "atari")
    assert find_environment("PogNoFrameskip-v4") is None
    assert ant is not None and (ant.action["kind"], ant.action["low"]) == ("box", -1.0)


def refuse(env_id: str) -> EnvironmentEntry:
    raise UserError(f"Environment '{env_id}' cannot be made.")


def test_an_unknown_id_gets_the_closest_one() -> None:
    with pytest.raises(UserError, match=r"no environment 'CartPol-v1'; did you mean 'CartPole-v1'\?"):
        check_environment("CartPol-v1", refuse)
    with pytest.raises(UserError, match="'zzzzzzzz' cannot be made"):
        check_environment("zzzzzzzz", refuse)
    with pytest.raises(UserError, match=r"did you mean 'ALE/Pong-v5'\?"):
        check_environment("ALE/Pog-v5", refuse)


def test_what_the_catalog_lacks_is_asked_of_the_training_side() -> None:
    assert check_environment("mine:Own-v0", probe=lambda env_id: OWN) is OWN
    assert check_environment("Plugin-v3", probe=lambda env_id: OWN) is OWN
    assert check_environment("CartPole-v1", probe=refuse) is find_environment("CartPole-v1")
    with pytest.raises(UserError, match="did you mean 'CartPole-v1'"):
        check_environment("CartPol-v1", probe=refuse)
    with pytest.raises(UserError, match="'mine:Own-v1' cannot be made"):
        check_environment("mine:Own-v1", probe=refuse)


def test_an_algorithm_refuses_spaces_it_cannot_take() -> None:
    check_fit("ppo", OWN)
    check_fit("somebody_elses", OWN)
    for env_id, said in (("Pendulum-v1", "box actions"), ("ALE/Pong-v5", "image observations")):
        entry = find_environment(env_id)
        assert entry is not None
        with pytest.raises(UserError, match=f"{env_id} has {said}"):
            check_fit("ppo", entry)


def test_images_and_vectors_point_to_the_algorithm_that_takes_them() -> None:
    for env_id in ("ALE/Pong-v5", "PongNoFrameskip-v4"):
        entry = find_environment(env_id)
        assert entry is not None
        with pytest.raises(UserError, match=f"{env_id} has image observations; use ppo_atari"):
            check_fit("ppo", entry)
    cart = find_environment("CartPole-v1")
    assert cart is not None
    for algo in ("ppo_atari", "ppo_atari_lstm"):
        with pytest.raises(UserError) as refusal:
            check_fit(algo, cart)
        said = f"{algo} takes image observations, but CartPole-v1 has vector observations; use ppo."
        assert str(refusal.value) == said


def test_entries_are_plain_json() -> None:
    for entry in load_environments().values():
        json.dumps([entry.observation, entry.action], allow_nan=False)
