"""Models from the hub: ours and CleanRL's own, evaluated, played and trained on; and what is refused."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import pytest
import torch
from flax import serialization

from cleanrl_worker.config.checkpoint_files import PolicyCard
from hub.conftest import TRAIN
from mosaic.client import list_policies, resume_config
from mosaic.client.playing import PlaySession
from mosaic.contract.errors import UserError
from mosaic.contract.paths import VarPaths
from mosaic.hub.account import check_entity, find_token, parse_repo, usual_name
from support.foreign_models import FOREIGN
from support.hub import StandInHub
from support.own_algorithm import NAME, write_example

if TYPE_CHECKING:
    from conftest import RunMosaic

CLEANRL_PAGE = """---
tags:
- {env}
- deep-reinforcement-learning
- reinforcement-learning
- custom-implementation
library_name: cleanrl
model-index:
- name: DQN
  results:
  - task:
      type: reinforcement-learning
      name: reinforcement-learning
    dataset:
      name: {env}
      type: {env}
    metrics:
    - type: mean_reward
      value: 500.00 +/- 0.00
      name: mean_reward
      verified: false
---

# (CleanRL) **DQN** Agent Playing **{env}**
"""


def stored(content: Any) -> bytes:
    """What torch's `save` writes."""
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue()


def published(exp: str, model: bytes, env_id: str = "CartPole-v1", **more: bytes) -> dict[str, bytes]:
    """The files of a model that CleanRL has published."""
    others = {"poetry.lock": b"x" * 9000, f"{exp}.py": b"raise SystemExit('run')", "videos/a.mp4": b"\0"}
    page = CLEANRL_PAGE.format(env=env_id).encode()
    files = {f"{exp}.cleanrl_model": model, "README.md": page, "replay.mp4": b"\0film"}
    return {**others, **files, "events.out.tfevents.1.host": b"", **more}


def flax_dqn() -> bytes:
    """The parameters of CleanRL's `dqn_jax` for CartPole, as its script stores them."""
    sizes, keys = (4, 120, 84, 2), jax.random.split(jax.random.PRNGKey(0), 3)
    layers = {
        f"Dense_{at}": {
            "kernel": jax.random.normal(key, sizes[at : at + 2]),
            "bias": jnp.zeros(sizes[at + 1]),
        }
        for at, key in enumerate(keys)
    }
    return serialization.to_bytes({"params": layers})


@pytest.mark.parametrize(
    ("exp", "env_id", "model"),
    [
        ("dqn", "CartPole-v1", lambda: stored(FOREIGN["dqn"][1]())),
        ("td3_continuous_action", "Pendulum-v1", lambda: stored(FOREIGN["td3"][1]())),
        ("dqn_jax", "CartPole-v1", flax_dqn),
    ],
)
def test_models_of_cleanrl_are_pulled_evaluated_and_played(
    exp: str, env_id: str, model: Callable[[], bytes], hub: StandInHub, run_mosaic: RunMosaic, var: Path
) -> None:
    repo = f"cleanrl/{env_id}-{exp}-seed1"
    hub.add(repo, published(exp, model(), env_id))
    told = json.loads(run_mosaic("pull", f"{hub.address}/{repo}", "--json", env={"HF_TOKEN": ""}).stdout)
    assert (told["algo"], told["env_id"], told["seed"], told["repo"]) == (exp, env_id, 1, repo)
    names = {path.name for path in Path(told["path"]).parent.iterdir()}
    wanted = {f"{exp}.cleanrl_model", "README.md", "replay.mp4", "events.out.tfevents.1.host", "hub.json"}
    assert names == wanted, "scripts and all else stay on the hub"
    (facts,) = list_policies(var)
    assert (facts.repo, facts.algo, facts.env_id, facts.path) == (repo, exp, env_id, told["path"])
    assert repo.removeprefix("cleanrl/") in run_mosaic("policies").stdout
    scored = json.loads(run_mosaic("eval", repo, "--episodes", "2", "--json").stdout)
    assert (scored["algo"], scored["env_id"], scored["evaluation"]["episodes"]) == (exp, env_id, 2)
    with PlaySession.start(repo, var=var) as session:
        session.reset()
        assert (session.init["algo"], session.init["env_id"]) == (exp, env_id)
        assert session.step()["by"] == "policy"


def test_a_pushed_model_comes_back_as_it_went(
    hub: StandInHub, train: Callable[..., Path], run_mosaic: RunMosaic, var: Path, tmp_path: Path
) -> None:
    run_dir = train()
    run_mosaic("push", "last", "--to", "team/walker", "--private")
    other = tmp_path / "elsewhere"
    other.mkdir()
    there = ("--var", str(other))
    told = json.loads(run_mosaic("pull", "team/walker", *there, "--json").stdout)
    (model,) = run_dir.glob("runs/*/ppo.cleanrl_model")
    pulled = Path(told["path"])
    assert pulled == other / "models/team/walker/ppo.cleanrl_model"
    assert pulled.read_bytes() == model.read_bytes() and told["step"] == 512
    ours, theirs = (
        json.loads(run_mosaic("eval", name, "--episodes", "3", "--json", *more).stdout)["evaluation"]
        for name, more in ((run_dir.name, ()), ("team/walker", there))
    )
    assert ours["mean"] == theirs["mean"] and ours["discounted_mean"] == theirs["discounted_mean"]
    run = json.loads(
        run_mosaic("train", "--resume", "team/walker", "--steps", "512", "--json", *there).stdout
    )
    assert run["outcome"] == "completed"
    assert run_mosaic("daemon", "stop", *there).returncode == 0


def test_python_resumes_a_pulled_model(hub: StandInHub, run_mosaic: RunMosaic, var: Path) -> None:
    hub.add("me/x", published("dqn", stored(FOREIGN["dqn"][1]())))
    run_mosaic("pull", "me/x")
    config = resume_config("me/x", total_timesteps=300)["metadata"]["worker"]["config"]
    assert (config["algo"], config["env_id"], config["total_timesteps"]) == ("dqn", "CartPole-v1", 300)


def test_a_new_pull_replaces_the_old_one_and_a_failed_one_does_not(
    hub: StandInHub, run_mosaic: RunMosaic, var: Path
) -> None:
    first = hub.add("me/x", published("dqn", b"PK first"))
    first.commits.append(published("dqn", b"PK second"))
    first.named["v1"] = 0
    folder = VarPaths(var).models / "me" / "x"
    run_mosaic("pull", "me/x", "--revision", "v1")
    assert (folder / "dqn.cleanrl_model").read_bytes() == b"PK first"
    hub.fails = {"GET /me/x/resolve": 403}
    refused = run_mosaic("pull", "me/x", check=False)
    assert refused.returncode != 0 and (folder / "dqn.cleanrl_model").read_bytes() == b"PK first"
    hub.fails = {}
    left = folder.parent / ".x.killed"
    left.mkdir()
    os.utime(left, (1, 1))
    run_mosaic("pull", "me/x")
    assert (folder / "dqn.cleanrl_model").read_bytes() == b"PK second"
    assert [path.name for path in folder.parent.iterdir()] == ["x"], "nothing unfinished stays"


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch evil",)


def test_code_in_a_model_is_never_run(
    hub: StandInHub, run_mosaic: RunMosaic, var: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil_envs.py").write_text("open('evil', 'w')")
    hub.add("me/pickle", published("dqn", pickle.dumps(Evil())))
    hub.add("me/zip", published("dqn", stored(Evil())))
    hub.add("me/module", published("dqn", stored(FOREIGN["dqn"][1]()), "evil_envs:CartPole-v1"))
    for repo, sentence in (
        ("me/pickle", "plain weights"),
        ("me/zip", "plain weights"),
        ("me/module", "names the module 'evil_envs', whose code would be run"),
    ):
        run_mosaic("pull", repo)
        refused = run_mosaic("eval", repo, check=False)
        assert refused.returncode == 2 and sentence in refused.stderr and refused.stderr.count("\n") == 1
    assert not list(tmp_path.rglob("evil"))


def test_an_algorithm_that_comes_along_is_run_once_it_is_trusted(
    hub: StandInHub, run_mosaic: RunMosaic, var: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    monkeypatch.chdir(mine)
    script = write_example(mine)
    how = ("--steps", "512", "--set", "eval_episodes=1")
    run_mosaic("train", script.name, "CartPole-v1", *how)
    run_mosaic("push", "last", "--to", "me/own")
    assert hub.repos["me/own"].files[f"algorithm/{NAME}.py"] == script.read_bytes()
    script.unlink()
    told = json.loads(run_mosaic("pull", "me/own", "--json").stdout)
    place = Path(told["path"]).parent / "algorithm" / script.name
    refused = run_mosaic("eval", "me/own", "--episodes", "1", check=False)
    assert (
        refused.returncode == 2 and f"names the algorithm {place}, whose code would be run" in refused.stderr
    )
    run_mosaic("eval", "me/own", "--episodes", "1", "--trust", str(place))


def test_what_cannot_be_pulled_is_one_sentence(hub: StandInHub, run_mosaic: RunMosaic, var: Path) -> None:
    hub.add("me/secret", published("dqn", b"PK"), private=True)
    hub.add("me/llm", {"model.safetensors": b"\0", "README.md": b"hello"})
    hub.add("me/many", {"a.cleanrl_model": b"PK", "b.cleanrl_model": b"PK"})
    hub.add("me/huge", published("dqn", b"PK")).sizes["dqn.cleanrl_model"] = 9_000_000_000
    hub.add("me/files", {f"{number}.cleanrl_model": b"" for number in range(10_001)})
    hub.add("me/paths", {"../../x.cleanrl_model": b"PK", "a/b.cleanrl_model": b"PK"})
    hub.add("me/busy", published("dqn", b"PK"))
    hub.fails = {"me/busy": 503}
    for name, more, sentence in (
        ("nobody/nothing", {}, "is not on the hub, or your token has no access to it"),
        ("nobody/nothing", {"HF_TOKEN": ""}, "or it is private and needs HF_TOKEN"),
        ("me/secret", {}, "is not on the hub, or your token has no access to it"),
        ("me/secret", {"HF_TOKEN": "hf_n0longer"}, "The hub refuses the token"),
        ("me/llm", {}, "has no .cleanrl_model file"),
        ("me/many", {}, "has several models (a.cleanrl_model, b.cleanrl_model)"),
        ("me/huge", {}, "me/huge is 9.0 GB, but at most 4.0 GB are fetched"),
        ("me/files", {}, "has 10,001 files"),
        ("me/paths", {}, "has no .cleanrl_model file"),
        ("me/busy", {}, "answers with status 503"),
        ("me/../x", {}, "is not the name of a model"),
        ("nothing", {}, "is not the name of a model"),
        ("me/x", {"HF_ENDPOINT": "http://127.0.0.1:9"}, "cannot be reached"),
        ("me/x", {"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE"),
    ):
        refused = run_mosaic("pull", name, env=more, check=False)
        said = refused.stderr.removeprefix("Downloading …\n")
        assert refused.returncode in (1, 2), name
        assert sentence in said and said.count("\n") == 1, (name, said)
    assert not list(VarPaths(var).models.glob("*/*"))
    refused = run_mosaic(*TRAIN[:1], "--resume", "me/x", check=False)
    assert (
        refused.returncode == 2 and "There is no file, folder, run or pulled model 'me/x'" in refused.stderr
    )


def test_a_page_and_a_card_of_nonsense_are_told_as_far_as_they_make_sense(
    hub: StandInHub, run_mosaic: RunMosaic, var: Path
) -> None:
    card = {"format": 1, "algo": ["x"], "args": {"env_id": 7, "seed": -1}, "step": "many", "normaliser": None}
    files = {"dqn.cleanrl_model": b"PK", "dqn.policy.json": json.dumps(card).encode(), "mosaic.json": b"[1"}
    hub.add("me/odd", {**files, "README.md": b"---\nmodel-index: 3\n---\n", "eval_summary.json": b"7"})
    told = json.loads(run_mosaic("pull", "me/odd", "--json").stdout)
    assert [told[name] for name in ("env_id", "seed", "step", "mean_return")] == [None] * 4
    refused = run_mosaic("eval", "me/odd", check=False)
    assert refused.returncode == 2 and "is not the card of a policy" in refused.stderr
    # A damaged file of ours hides the model, and nothing else.
    (VarPaths(var).models / "me" / "odd" / "hub.json").write_text("{")
    assert list_policies(var) == []


def test_names_on_the_hub() -> None:
    assert usual_name("CartPole-v1", "dqn", 1) == "CartPole-v1-dqn-seed1"
    assert usual_name("ALE/Pong-v5", "ppo_atari", 2) == "ALE-Pong-v5-ppo_atari-seed2"
    assert usual_name("my_envs:A..B--C", "é", None) == "my_envs-A.B-C-seedNone"
    for repo_of in ("CartPole-v1", "x" * 200, "../..", "😀"):
        assert parse_repo(f"me/{usual_name(repo_of, 'ppo', 1)}")
    assert parse_repo(" https://huggingface.co/cleanrl/A-b_c.d/ ") == "cleanrl/A-b_c.d"
    for wrong in ("a", "a/b/c", "a/b--c", "a/..", "/b", "a/", "a b/c", "a/b c", "a/-b", f"a/{'b' * 97}"):
        with pytest.raises(UserError):
            parse_repo(f"x{wrong}" if wrong.startswith("/x") else wrong)
    check_entity("my-Team1")
    for wrong in ("", "a/b", "-a", "a--b", "a b", "é"):
        with pytest.raises(UserError):
            check_entity(wrong)


def test_the_token_is_found_where_the_hub_keeps_it(tmp_path: Path) -> None:
    assert find_token({"HF_TOKEN": " a \n"}) == "a"
    assert find_token({"HF_TOKEN": "", "HUGGING_FACE_HUB_TOKEN": "b"}) == "b"
    (tmp_path / "token").write_text("c\n")
    assert find_token({"HF_HOME": str(tmp_path)}) == "c"
    assert find_token({"HF_TOKEN_PATH": str(tmp_path / "token"), "HF_HOME": "/nowhere"}) == "c"
    (tmp_path / "huggingface").mkdir()
    (tmp_path / "huggingface" / "token").write_text("d")
    assert find_token({"XDG_CACHE_HOME": str(tmp_path)}) == "d"
    assert find_token({"HF_HOME": "/nowhere"}) is None


def test_the_card_of_a_pulled_policy_rebuilds_it(hub: StandInHub, run_mosaic: RunMosaic, var: Path) -> None:
    seen = {"mean": [0.0] * 4, "var": [1.0] * 4, "count": 10.0, "clip": 10.0}
    card = PolicyCard("ppo", {"env_id": "CartPole-v1", "seed": 4}, 900, seen)
    folder = var / "made"
    folder.mkdir()
    card.write(folder / "ppo.cleanrl_model")
    files = {"ppo.policy.json": (folder / "ppo.policy.json").read_bytes()}
    hub.add("me/seen", {"ppo.cleanrl_model": stored(FOREIGN["ppo"][1]()), **files})
    run_mosaic("pull", "me/seen")
    (facts,) = list_policies(var)
    assert (facts.algo, facts.env_id, facts.seed, facts.step) == ("ppo", "CartPole-v1", 4, 900)


def test_without_the_client_one_sentence_says_what_installs_it(hub: StandInHub, var: Path) -> None:
    code = (
        "import importlib.metadata as metadata, sys\n"
        "there = metadata.version\n"
        "def version(name):\n"
        "    if name == 'huggingface_hub':\n"
        "        raise metadata.PackageNotFoundError(name)\n"
        "    return there(name)\n"
        "metadata.version = version\n"
        "from mosaic.cli.app import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    for words in (("pull", "me/x"), ("push", "last"), (*TRAIN, "--upload-model")):
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
        said = done.stderr.removeprefix("Downloading …\n")
        assert done.returncode == 2 and said.count("\n") == 1, said
        assert "needs the optional set 'hub': run `" in said and "mosaic extras install hub`" in said
