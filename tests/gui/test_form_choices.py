"""What forms choose from: environments that fit, stages of a curriculum, sets that are missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gym_gui.models.form_choices import (
    NONE,
    OWN,
    EnvironmentList,
    InstallProgress,
    StageTable,
    environments_for,
    find_misfits,
    install_command,
    installed_sets,
    missing,
    trainable,
)
from mosaic.contract.capabilities import FormCatalog, ScriptCatalog, find_worker
from mosaic.contract.errors import UserError
from mosaic.contract.extras import extra_sets

PRESETS = {"SMALL": [{"env_id": "A-v0", "steps": 1000}, {"env_id": "B-v0"}]}


@pytest.fixture
def catalog() -> FormCatalog:
    loaded = find_worker("cleanrl").load_catalog()
    assert isinstance(loaded, FormCatalog)
    return loaded


def choices(catalog: FormCatalog, algo: str, **installed: bool) -> EnvironmentList:
    everything = dict.fromkeys(("atari", "box2d", "minigrid", "mujoco"), True)
    facts = catalog.environment_facts()
    misfits = find_misfits(catalog, facts, catalog.algorithms())
    return environments_for(trainable(facts, misfits), misfits[algo], {**everything, **installed}, algo)


def test_only_environments_that_fit_the_algorithm_are_offered(catalog: FormCatalog) -> None:
    discrete = {choice.env_id for choice in choices(catalog, "ppo").matching()}
    continuous = {choice.env_id for choice in choices(catalog, "sac_continuous_action").matching()}
    assert "CartPole-v1" in discrete and "Pendulum-v1" not in discrete
    assert "Pendulum-v1" in continuous and "CartPole-v1" not in continuous
    assert not discrete & continuous


def test_what_is_offered_first_is_drawn_by_what_comes_with_the_window(catalog: FormCatalog) -> None:
    packages = {one.name: {package.name for package in one.packages} for one in extra_sets()}
    assert packages["classic"] <= packages["gui"]
    nothing = dict.fromkeys(packages, False)
    for algo in catalog.algorithms():
        first = choices(catalog, algo, **nothing).matching()[0]
        assert first.family in ("classic", "mosaic"), (
            "'classic' draws classic control, pixel tasks themselves"
        )
        assert not first.missing


def test_environments_are_found_by_words_and_family(catalog: FormCatalog) -> None:
    found = choices(catalog, "ppo")
    assert [one.env_id for one in found.matching("cart")] == ["CartPole-v1"]
    assert {one.family for one in found.matching(family="babyai")} == {"babyai"}
    assert "MiniGrid-DoorKey-5x5-v0" in [one.env_id for one in found.matching("minigrid doorkey 5x5")]
    assert found.matching("no such thing") == []
    assert "Pendulum-v1" in [one.env_id for one in found.matching("pendulum", everything=True)]
    assert found.matching("atari") == [], "ppo cannot train on its pictures"
    assert {
        one.misfit.endswith("use ppo_atari.") for one in found.matching(family="atari", everything=True)
    } == {True}


def test_an_environment_tells_what_it_is_or_what_is_in_the_way(catalog: FormCatalog) -> None:
    found = choices(catalog, "ppo", minigrid=False)
    cartpole, pendulum = found.find("CartPole-v1"), found.find("Pendulum-v1")
    door = found.find("MiniGrid-DoorKey-5x5-v0")
    assert (
        cartpole
        and cartpole.about == "Classic control · 4 numbers in, 2 actions · stepped by python or envpool"
    )
    assert pendulum and "ppo takes" in pendulum.about and pendulum.row.aside == "does not fit"
    assert door and door.about.endswith("needs 'minigrid'") and door.row.aside == "needs minigrid"
    assert found.find("Mine-v0") is None
    ready = [one for one in found.choices if one.fits]
    assert [bool(one.missing) for one in ready] == sorted(bool(one.missing) for one in ready)


def test_what_an_algorithm_trains_on_only_with_another_backend_says_so(catalog: FormCatalog) -> None:
    found = choices(catalog, "ppo_atari_envpool")
    catch, pong = found.find("mosaic/Catch-v0"), found.find("ALE/Pong-v5")
    assert catch and catch.about.endswith("stepped by python · set env_backend to python")
    assert catch.fits and catch.row.faint and catch.row.aside == "with env_backend python"
    assert pong and not pong.other_backend and found.choices.index(pong) < found.choices.index(catch)
    assert not any(one.other_backend for one in choices(catalog, "ppo").choices)


def test_spaces_are_told_in_words(catalog: FormCatalog) -> None:
    spaces = {one.env_id: one.spaces for one in catalog.environment_facts()}
    assert set(spaces) == set(catalog.environments())
    assert spaces["Taxi-v4"] == "one of 500 states in, 6 actions"
    assert spaces["Pendulum-v1"] == "3 numbers in, 1 continuous action"
    assert spaces["Blackjack-v1"] == "one of 32 × 11 × 2 states in, 2 actions"
    assert spaces["ALE/Adventure-v5"] == "250 × 160 × 3 picture in, 18 actions"
    assert spaces["MiniGrid-DoorKey-5x5-v0"] == "7 × 7 × 3 grid in, 7 actions"


def test_what_the_catalog_does_not_know_it_says_nothing_of(catalog: FormCatalog) -> None:
    assert catalog.misfit("ppo", "mine:Thing-v0") == "" and catalog.misfit("mine.py", "CartPole-v1") == ""
    assert catalog.page("mine.py") is None and catalog.summary("mine.py") == ""
    assert catalog.page("../architecture") is None


def test_a_script_is_described_by_its_path(catalog: FormCatalog, tmp_path: Path) -> None:
    assert isinstance(catalog, ScriptCatalog)
    (tmp_path / "own.sh").write_text("#!/bin/sh\n# @phases 3\n")
    told = catalog.script("own.sh", tmp_path)
    assert (told["name"], told["phases"], told["shipped"]) == ("own.sh", 3, False)
    assert catalog.script("quick_test.sh", tmp_path)["shipped"] is True
    with pytest.raises(UserError):
        catalog.script("none.sh", tmp_path)


def test_a_curriculum_comes_from_a_preset_and_becomes_ones_own() -> None:
    table = StageTable(PRESETS)
    assert (table.name, table.schedule(), table.choices) == (NONE, None, [NONE, "SMALL", OWN])
    table.choose("SMALL")
    assert table.name == "SMALL" and table.target == "B-v0"
    assert table.schedule() == [{"env_id": "A-v0", "steps": 1000}, {"env_id": "B-v0"}]
    table.change(0, ends="episode_return>=0.9|steps>=5000")
    assert table.name == OWN
    assert table.schedule() == [
        {"env_id": "A-v0", "condition": "episode_return>=0.9|steps>=5000"},
        {"env_id": "B-v0"},
    ]
    table.choose(NONE)
    assert table.schedule() is None


def test_stages_are_added_moved_and_removed() -> None:
    table = StageTable(PRESETS)
    table.choose(OWN, "CartPole-v1")
    assert [row.env_id for row in table.rows] == ["CartPole-v1", "CartPole-v1"]
    table.add()
    table.change(2, env_id="Last-v0")
    assert table.rows[1].ends, "a stage that is no longer the last one needs an end"
    table.move(2, -1)
    table.move(0, -1)
    assert [row.env_id for row in table.rows] == ["CartPole-v1", "Last-v0", "CartPole-v1"]
    table.remove(0)
    assert table.target == "CartPole-v1"
    table.change(0, env_id=" ")
    assert "Stage 1" in table.problem()
    with pytest.raises(UserError):
        table.schedule()


def test_stages_of_a_config_are_read_back() -> None:
    table = StageTable(PRESETS)
    table.load([{"env_id": "A-v0", "condition": "steps>=1000"}, {"env_id": "B-v0"}])
    assert table.name == "SMALL"
    table.load("SMALL")
    assert table.name == "SMALL"
    table.load(None)
    assert table.name == NONE


def test_presets_of_the_worker_are_there(catalog: FormCatalog) -> None:
    assert "BABYAI_DOORKEY_CURRICULUM" in StageTable(catalog.curricula()).choices


def test_missing_sets_are_told_once_with_their_command() -> None:
    found = missing(
        [("mujoco", "Ant-v5"), ("", "CartPole-v1"), ("mujoco", "Hopper-v5"), ("video", "Recording")],
        {"mujoco": False, "video": True},
    )
    assert [(one.name, one.command) for one in found] == [("mujoco", "mosaic extras install mujoco")]
    assert "Ant-v5 needs the optional set 'mujoco'" in found[0].sentence


def test_installed_sets_are_known() -> None:
    installed = installed_sets()
    assert installed["minigrid"] is True
    assert install_command(["wandb"])[0] == sys.executable


def test_progress_is_read_from_the_words_of_pip() -> None:
    progress = InstallProgress()
    assert progress.take("Collecting wandb<0.32,>=0.31") == "Looking at wandb, package 1…"
    assert progress.take("Requirement already satisfied: click in x") == "Looking at click, package 2…"
    assert progress.take("  Downloading click-8.whl (9 kB)") == "Fetching click-8.whl…"
    assert progress.take("Installing collected packages: click, wandb") == "Installing 2 packages…"
    assert progress.verdict(["wandb"], 0) == "wandb is installed."
    progress.take("ERROR: No matching distribution found")
    assert "No matching distribution" in progress.verdict(["wandb"], 1)
