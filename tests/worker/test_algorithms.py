"""What holds for every algorithm: each is found by its file, and a new one adds no row here."""

from __future__ import annotations

import contextlib
import dataclasses
import io
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
from cleanrl_worker.kit.run import run_with
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.schemas.model import shipped_algorithms
from cleanrl_worker.supervisor.offers import CATALOG
from mosaic.analytics.eval_summary import EvalScores
from mosaic.analytics.event_files import EventReader
from mosaic.analytics.table import MetricTable

STEPS = 256
"""Of each environment: enough for an episode of the environments that are tried first."""
SMALL = {
    "num_steps": 64,
    "learning_starts": 64,
    "batch_size": 16,
    "buffer_size": 1000,
    "trxl_dim": 32,
    "trxl_memory_length": 8,
}
"""Values for a short training, of the parameters that an algorithm has among these."""


@dataclass(frozen=True)
class Trained:
    """A short training of one algorithm, and what it left."""

    spec: AlgorithmSpec
    values: dict[str, Any]
    folder: Path
    printed: str

    @property
    def model(self) -> Path:
        (path,) = self.folder.glob(f"runs/*/{self.values['exp_name']}.cleanrl_model")
        return path


def short_values(algo: str, spec: AlgorithmSpec) -> dict[str, Any]:
    """Arguments of a training of a few hundred steps, on an environment that the algorithm can take."""
    fields = {field.name: field.default for field in dataclasses.fields(spec.args)}
    tried = ("CartPole-v1", "Pendulum-v1", str(fields["env_id"]))
    if spec.masks:
        # An environment without masks would be told of.
        tried = (str(fields["env_id"]),)
    num_envs = min(fields["num_envs"], 4)
    return {
        **{name: value for name, value in SMALL.items() if name in fields},
        "env_id": next(env_id for env_id in tried if not CATALOG.misfit(algo, env_id)),
        "exp_name": algo,
        "seed": 4,
        "num_envs": num_envs,
        "total_timesteps": STEPS * num_envs,
        "checkpoint_every": STEPS * num_envs // 2,
        "eval_episodes": 3,
    }


def config_of(algo: str, values: dict[str, Any]) -> dict[str, Any]:
    """The same as a worker's config."""
    fields = {name: values[name] for name in ("env_id", "seed", "total_timesteps")}
    params = {name: value for name, value in values.items() if name not in fields}
    return {"run_id": "r", "algo": algo, **fields, "extras": {"algo_params": params}}


def train(spec: AlgorithmSpec, values: dict[str, Any], folder: Path) -> Trained:
    folder.mkdir()
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(printed):
        patch.chdir(folder)
        assert run_with(spec, values) == 0, printed.getvalue()
    return Trained(spec, values, folder, printed.getvalue())


@pytest.fixture(scope="module", params=shipped_algorithms())
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trained]:
    spec = load_spec(request.param)
    values = short_values(request.param, spec)
    told = CATALOG.describe(config_of(request.param, values), None, Path.cwd(), ())
    if told["missing_extras"]:
        pytest.skip(f"{request.param} needs {told['missing_extras'][0]['name']}, which is not installed")
    yield train(spec, values, tmp_path_factory.mktemp(request.param) / "whole")


def test_it_is_called_as_its_file(trained: Trained) -> None:
    assert DEFAULT_ALGO_REGISTRY[trained.spec.name] == f"cleanrl_worker.algorithms.{trained.spec.name}"


def test_it_trains_without_a_word_and_logs_the_known_names(trained: Trained) -> None:
    # A backend that is not Python's says in one line what differs.
    assert trained.printed.count("\n") == (trained.spec.env_backend != "python")
    table = MetricTable(EventReader(trained.folder / "runs").poll(1_000_000))
    tags = set(table.tags())
    assert {"charts/episodic_return", "charts/episodic_length", "charts/SPS", "time/update"} <= tags
    assert any(tag.startswith("losses/") for tag in tags)


def test_it_resumes_from_a_checkpoint_and_ends_with_the_same_bytes(trained: Trained) -> None:
    first, last = map(read_origin, list_checkpoints(trained.folder / "checkpoints"))
    assert first.step is not None and first.step < trained.values["total_timesteps"] == last.step
    assert (last.name, last.algo, last.file) == (trained.spec.name, trained.spec.name, None)
    values = {**trained.values, "resume_from": str(first.path)}
    resumed = train(trained.spec, values, trained.folder.with_name("resumed"))
    assert resumed.printed.startswith(f"Goes on from step {first.step:,} of ")
    if trained.spec.exact:
        assert resumed.model.read_bytes() == trained.model.read_bytes()


def test_its_model_file_plays_again_as_at_the_end_of_its_run(trained: Trained) -> None:
    model = open_model(trained.model)
    assert (model.spec.name, model.args.env_id, model.args.seed) == (
        trained.spec.name,
        trained.values["env_id"],
        4,
    )
    assert model.step == model.args.total_timesteps
    assert (model.statistics is not None) == model.spec.normalises
    with model.make_envs(2) as envs:
        policy = model.load_policy(envs)
        again = evaluate(policy, envs, 3, 4 + FIRST_SEED)
    assert policy.notes == ()
    (chunk,) = EventReader(trained.model.parent).poll(1_000_000)
    recorded = chunk.series["eval/episodic_return"]
    assert list(recorded.steps) == [0, 1, 2]
    np.testing.assert_allclose(recorded.values, again.returns, rtol=1e-5)


def test_its_checkpoint_holds_the_same_policy_as_the_model_of_its_step(
    trained: Trained, tmp_path: Path
) -> None:
    found = []
    for path in (trained.model, list_checkpoints(trained.folder / "checkpoints")[-1]):
        model = open_model(path)
        (tmp_path / path.suffix).mkdir()
        settings = EvalSettings(episodes=4, batch_size=4, max_episode_steps=60)
        scores: EvalScores = run_batched_evaluation(model, settings, tmp_path / path.suffix).overall
        found.append((model.step, model.statistics, dataclasses.replace(scores, duration_seconds=0.0)))
    assert found[0] == found[1]


def test_its_dry_run_tells_what_would_run(trained: Trained) -> None:
    algo, values = trained.spec.name, trained.values
    told = CATALOG.describe(config_of(algo, values), None, Path.cwd(), ())
    assert (told["module"], told["kind"]) == (DEFAULT_ALGO_REGISTRY[algo], "algorithm")
    shown = {one["name"]: one["value"] for one in told["parameters"]}
    assert {name: shown[name] for name in values} == values
    assert told["environment"]["known"] and json.dumps(told)


def test_it_has_its_page_and_the_index_leads_to_it(trained: Trained) -> None:
    page = CATALOG.page(trained.spec.name)
    assert page is not None
    assert f"./mosaic train {trained.spec.name} --help" in page.read_text()
    assert f"]({page.name})" in page.with_name("README.md").read_text()
    assert CATALOG.summary(trained.spec.name)
