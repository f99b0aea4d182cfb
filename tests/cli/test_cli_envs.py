"""`mosaic envs`: environments by family, with what installs them, what trains on them and what steps them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from mosaic.cli import main
from mosaic.cli.commands import envs
from mosaic.contract.capabilities import FormCatalog, find_worker


@pytest.fixture(autouse=True)
def _known_afresh() -> None:
    envs._is_there.cache_clear()


def listed(capsys: pytest.CaptureFixture[str], *argv: str) -> list[dict[str, Any]]:
    assert main(["envs", *argv, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, list)
    return found


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(["envs", *argv]) == 0
    return capsys.readouterr().out


def test_each_family_of_the_catalog_is_listed_with_all_that_is_in_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    catalog = find_worker("cleanrl").load_catalog()
    assert isinstance(catalog, FormCatalog)
    out = said(capsys)
    for family in catalog.environment_families():
        assert f"{family.title} ({family.name})\n" in out
    for facts in catalog.environment_facts():
        assert f"  {facts.env_id} " in out or f"  {facts.env_id}\n" in out


def test_what_is_told_of_an_environment(capsys: pytest.CaptureFixture[str]) -> None:
    (pong,) = listed(capsys, "ale/pong")
    assert pong["env_id"] == "ALE/Pong-v5" and pong["family"] == "atari"
    assert pong["spaces"] == "210 × 160 × 3 picture in, 6 actions"
    assert pong["backends"] == {"python": None, "envpool": "envpool", "ale": "atari"}
    assert {"ppo_atari", "ppo_atari_envpool"} <= set(pong["algorithms"]) and "ppo" not in pong["algorithms"]
    (catch,) = listed(capsys, "mosaic/Catch")
    assert "ppo_atari_envpool" not in catch["algorithms"], "EnvPool does not have it"


def test_what_is_asked_for_is_narrowed_by_words_family_and_algorithm(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert [one["env_id"] for one in listed(capsys, "door", "minigrid", "5x5", "key-5")] == [
        "MiniGrid-DoorKey-5x5-v0"
    ]
    assert {one["family"] for one in listed(capsys, "--family", "toy_text")} == {"toy_text"}
    assert {one["family"] for one in listed(capsys, "deepmind control")} == {"dm_control"}
    found = listed(capsys, "--algo", "sac_continuous_action", "--family", "classic")
    assert [one["env_id"] for one in found] == ["MountainCarContinuous-v0", "Pendulum-v1"]
    assert "No known environment matches." in said(capsys, "no", "such", "thing")


def test_what_is_missing_comes_with_the_command_that_installs_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks = {"box2d", "envpool", "jax"}
    monkeypatch.setattr(envs, "_is_there", lambda name: name not in lacks)
    out = said(capsys, "--family", "box2d", "--algo", "dqn_jax")
    assert "mosaic extras install box2d\n" in out
    assert "python, envpool (not installed)" in out
    assert "dqn_jax itself needs `" in out and "mosaic extras install jax`" in out
    assert "1 environment, none of them installed." in out and "train" not in out
    (lander,) = listed(capsys, "LunarLander-v3")
    assert lander["installed"] is False and lander["install"].endswith("mosaic extras install box2d")
    assert not listed(capsys, "--installed", "--family", "box2d")
    assert "train ppo CartPole-v1" in said(capsys, "classic")


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--family", "atri"], "'atri' is not a family; did you mean 'atari'?"),
        (["--algo", "ppo_atary"], "'ppo_atary' is not an algorithm; did you mean 'ppo_atari'?"),
        (["--family", "zzz"], "'zzz' is not a family. There are atari, "),
    ],
)
def test_a_name_that_nobody_knows_is_one_sentence(
    argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["envs", *argv]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("columns", [40, 80])
def test_a_narrow_terminal_breaks_no_id(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    code = "import sys; from mosaic.cli import main; sys.exit(main(['envs']))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    ids = {one["env_id"] for one in listed(capsys)}
    wide = [line for line in out.splitlines() if len(line) > columns]
    assert not [line for line in wide if len(line.split()) > 1], "only a name alone may be wider"
    assert not wide or columns < 80
    assert ids <= set(out.split())


def test_the_list_loads_nothing_of_the_training_side() -> None:
    heavy = ["grpc", "pydantic", "torch", "gymnasium", "numpy"]
    code = (
        "import sys; from mosaic.cli import main; main(['envs']); "
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"
