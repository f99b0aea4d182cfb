"""What holds for every algorithm: each is found by its file, and a new one adds no row here.

Everything goes through a daemon, as a user's runs do. `benchmarks/coverage.py` makes docs/coverage.md of
these tests: their names are known there.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cleanrl_worker.config.checkpoint_files import list_checkpoints, read_origin
from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY
from cleanrl_worker.evaluation.episodes import FIRST_SEED, evaluate
from cleanrl_worker.evaluation.evaluate_policy import EvalSettings, run_batched_evaluation
from cleanrl_worker.evaluation.models import open_model
from cleanrl_worker.kit.loading import load_spec
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.schemas.model import shipped_algorithms
from cleanrl_worker.supervisor.offers import CATALOG
from mosaic.analytics.eval_summary import EvalScores, read_eval_summary
from mosaic.analytics.event_files import EventReader
from mosaic.analytics.store import RunMetrics
from mosaic.client import Client, RunRecord, eval_config, resume_config, train_config
from mosaic.client.daemon import stop_daemon
from mosaic.client.playing import PlaySession
from mosaic.contract.errors import UserError
from mosaic.contract.paths import RunPaths, VarPaths
from mosaic.fastlane.grid import LiveGrid
from mosaic.fastlane.layout import FOLDER_VARIABLE
from support.policies import save_catch

STEPS = 256
"""Of each environment: enough for an episode of the environments that are tried first."""
SMALL = {
    "num_steps": 64,
    "update_epochs": 1,
    "learning_starts": 64,
    "batch_size": 16,
    "buffer_size": 1000,
    "n_iteration": 3,
    "e_auxiliary": 1,
    "num_iterations_obs_norm_init": 1,
    "teacher_steps": 64,
    "offline_steps": 32,
    "teacher_eval_episodes": 2,
    "trxl_dim": 32,
    "trxl_memory_length": 8,
}
"""Values for a short training, of the parameters that an algorithm has among these."""
QUICK = {"ALE/MontezumaRevenge-v5": "ALE/Breakout-v5"}
"""What is played in place of a game whose episodes are longer than that."""
TRIED = ("CartPole-v1", "Pendulum-v1", "mosaic/Rally-v0")
SEED = 4
SECONDS = 180

ALWAYS = (
    "ppo",
    "dqn",
    "sac_continuous_action",
    "ppo_atari",
    "ppo_atari_lstm",
    "ppo_atari_envpool",
    "dqn_jax",
)
"""One of each kind, which a plain call of the tests goes through; the marker `long` has the others."""


def _marks(algo: str) -> list[pytest.MarkDecorator]:
    # All tests of an algorithm belong to one process, so that it is trained once.
    alone = pytest.mark.xdist_group(algo)
    return [alone] if algo in ALWAYS else [alone, pytest.mark.long]


_EACH = [pytest.param(algo, marks=_marks(algo)) for algo in shipped_algorithms()]
pytestmark = pytest.mark.parametrize("trained", _EACH, indirect=True)


@dataclass(frozen=True)
class Trained:
    """A short training of one algorithm through the daemon of `var`, and what it left."""

    spec: AlgorithmSpec
    env_id: str
    params: dict[str, Any]
    steps: int
    run: RunRecord
    var: Path
    pictured: bool
    """Whether a picture was seen while it trained."""

    @property
    def paths(self) -> RunPaths:
        return RunPaths(Path(self.run.run_dir))

    @property
    def model(self) -> Path:
        return model_in(self.run)


def model_in(run: RunRecord) -> Path:
    (path,) = Path(run.run_dir).glob("runs/*/*.cleanrl_model")
    return path


def short_values(algo: str, spec: AlgorithmSpec) -> tuple[str, int, dict[str, Any]]:
    """Environment, steps and parameters of a training of a few hundred steps that the algorithm can take."""
    fields = {field.name: field.default for field in dataclasses.fields(spec.args)}
    own = str(fields["env_id"])
    num_envs = min(fields["num_envs"], 4)
    # A single game of Atari does not end in so few steps.
    pictures = "mosaic/Catch-v0" if num_envs == 1 else QUICK.get(own, own)
    # An environment without masks would be told of.
    tried = (own,) if spec.masks else (*TRIED, pictures)
    env_id = next(env_id for env_id in tried if not CATALOG.misfit(algo, env_id))
    small = {name: value for name, value in SMALL.items() if name in fields}
    steps = STEPS * num_envs
    every = {"checkpoint_every": steps // 2, "eval_episodes": 3}
    return env_id, steps, {**small, "num_envs": num_envs, **every}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A var folder whose daemon is there for all of these tests."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(tmp_path_factory.mktemp("frames")))
        yield folder
        stop_daemon(VarPaths(folder))


@pytest.fixture(scope="module")
def trained(
    request: pytest.FixtureRequest, home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Trained]:
    algo = request.param
    spec = load_spec(algo)
    env_id, steps, params = short_values(algo, spec)
    if "teacher_policy" in {field.name for field in dataclasses.fields(spec.args)}:
        params["teacher_policy"] = str(save_catch(tmp_path_factory.mktemp("teacher")))
    config = train_config(algo, env_id, total_timesteps=steps, seed=SEED, params=params)
    with Client.connect(home) as client:
        run = client.submit(config)
        pictured = False
        with LiveGrid(run.run_id) as grid:
            while not (run := client.get(run.run_id)).ended:
                for _ in client.watch(run.run_id, run.history[-1].seq, timeout=0.05):
                    break
                grid.look()
                pictured = pictured or grid.picture() is not None
        yield Trained(spec, env_id, params, steps, run, home, pictured)
        client.remove(run.run_id)


def ends(var: Path, config: dict[str, Any]) -> RunRecord:
    """A run of this config once it has completed."""
    with Client.connect(var) as client:
        run = client.wait(client.submit(config).run_id, timeout=SECONDS)
    assert (run.status, run.outcome) == ("TERM", "completed"), run.reason
    return run


def test_it_is_called_as_its_file(trained: Trained) -> None:
    assert DEFAULT_ALGO_REGISTRY[trained.spec.name] == f"cleanrl_worker.algorithms.{trained.spec.name}"


def test_the_daemon_trains_it_without_a_word_and_it_logs_the_known_names(trained: Trained) -> None:
    assert trained.run.outcome == "completed", trained.run.reason
    assert [entry.status for entry in trained.run.history] == ["INIT", "HSHK", "RDY", "EXEC", "TERM"]
    # A backend that is not Python's says in one line what differs.
    printed = trained.paths.stderr.read_text()
    assert printed.count("\n") == (trained.spec.env_backend != "python"), printed
    table = RunMetrics.open(trained.paths.run_dir / "runs")
    tags = set(table.names)
    assert {"charts/episodic_return", "charts/episodic_length", "charts/SPS", "time/update"} <= tags
    assert any(tag.startswith("losses/") for tag in tags)


def test_its_environments_are_seen_while_it_trains(trained: Trained) -> None:
    assert trained.pictured


def test_it_resumes_from_a_checkpoint_and_ends_with_the_same_bytes(trained: Trained) -> None:
    first, last = map(read_origin, list_checkpoints(trained.paths.checkpoints))
    assert first.step is not None and first.step < trained.steps == last.step
    assert (last.name, last.algo, last.file) == (trained.spec.name, trained.spec.name, None)
    resumed = ends(trained.var, resume_config(first.path))
    printed = RunPaths(Path(resumed.run_dir)).stderr.read_text()
    assert printed.startswith(f"Continues from step {first.step:,} of ")
    assert open_model(model_in(resumed)).step == trained.steps
    if trained.spec.exact:
        assert model_in(resumed).read_bytes() == trained.model.read_bytes()


def test_a_run_evaluates_its_policy(trained: Trained) -> None:
    config = eval_config(trained.run.run_id, episodes=2, max_episode_steps=60, var=trained.var)
    found = read_eval_summary(Path(ends(trained.var, config).run_dir))
    assert found is not None and found.overall.episodes == 2


def test_its_policy_is_played_step_by_step(trained: Trained) -> None:
    if "procgen" in trained.spec.name:
        with pytest.raises(UserError, match="cannot be played step by step"):
            PlaySession.start(trained.model, seed=1)
        return
    with PlaySession.start(trained.model, seed=1) as session:
        assert session.init["algo"] == trained.spec.name
        session.reset(seed=7)
        assert {"reward", "action"} <= session.step().keys()


def test_its_model_file_plays_again_as_at_the_end_of_its_run(trained: Trained) -> None:
    model = open_model(trained.model)
    assert (model.spec.name, model.args.env_id, model.args.seed) == (trained.spec.name, trained.env_id, SEED)
    assert model.step == model.args.total_timesteps
    assert (model.statistics is not None) == model.spec.normalises
    with model.make_envs(2) as envs:
        policy = model.load_policy(envs)
        again = evaluate(policy, envs, 3, SEED + FIRST_SEED)
    assert policy.notes == ()
    (chunk,) = EventReader(trained.model.parent).poll(1_000_000)
    recorded = chunk.series["eval/episodic_return"]
    assert list(recorded.steps) == [0, 1, 2]
    np.testing.assert_allclose(recorded.values, again.returns, rtol=1e-5)


def test_its_checkpoint_holds_the_same_policy_as_the_model_of_its_step(
    trained: Trained, tmp_path: Path
) -> None:
    found = []
    for path in (trained.model, list_checkpoints(trained.paths.checkpoints)[-1]):
        model = open_model(path)
        (tmp_path / path.suffix).mkdir()
        settings = EvalSettings(episodes=4, batch_size=4, max_episode_steps=60)
        scores: EvalScores = run_batched_evaluation(model, settings, tmp_path / path.suffix).overall
        found.append((model.step, model.statistics, dataclasses.replace(scores, duration_seconds=0.0)))
    assert found[0] == found[1]


def test_its_dry_run_tells_what_would_run(trained: Trained) -> None:
    algo = trained.spec.name
    config = train_config(
        algo, trained.env_id, total_timesteps=trained.steps, seed=SEED, params=trained.params
    )
    told = CATALOG.describe(config["metadata"]["worker"]["config"], None, Path.cwd(), ())
    assert (told["module"], told["kind"]) == (DEFAULT_ALGO_REGISTRY[algo], "algorithm")
    shown = {one["name"]: one["value"] for one in told["parameters"]}
    assert {name: shown[name] for name in trained.params} == trained.params
    assert told["environment"]["known"] and json.dumps(told)


def test_it_has_its_page_and_the_index_leads_to_it(trained: Trained) -> None:
    page = CATALOG.page(trained.spec.name)
    assert page is not None
    assert f"./mosaic train {trained.spec.name} --help" in page.read_text()
    assert f"]({page.name})" in page.with_name("README.md").read_text()
    assert CATALOG.summary(trained.spec.name)
