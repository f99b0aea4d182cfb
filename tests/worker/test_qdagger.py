"""QDagger: its loss, its phases, and the teachers that it takes."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from cleanrl_worker.agents.nature import NatureLSTMAgent
from cleanrl_worker.algorithms import qdagger_dqn_atari_impalacnn as qdagger
from cleanrl_worker.config.checkpoint_files import PolicyCard
from cleanrl_worker.evaluation.teachers import open_teacher
from cleanrl_worker.kit.open_envs import open_envs
from cleanrl_worker.kit.replay import ReplayBuffer
from cleanrl_worker.kit.run import run_with
from cleanrl_worker.supervisor.offers import CATALOG
from mosaic.analytics.event_files import EventReader
from mosaic.contract.errors import UserError
from mosaic.contract.paths import VarPaths
from support.policies import save_cartpole, save_catch, save_policy

SPEC, ALGO = qdagger.SPEC, "qdagger_dqn_atari_impalacnn"
CATCH = "mosaic/Catch-v0"


def log_softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    scores = scores - scores.max(axis=1, keepdims=True)
    found: NDArray[np.float64] = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return found


def numpy_loss(
    values: NDArray[Any], best_next: NDArray[Any], batch: qdagger.Batch, gamma: float, temperature: float
) -> tuple[float, float]:
    """The paper's two terms in double precision."""
    targets = batch.rewards + gamma * (1.0 - batch.dones) * best_next
    td_loss = np.mean((values[np.arange(len(values)), batch.actions] - targets) ** 2)
    teacher = log_softmax(batch.teacher_scores.astype(np.float64) / temperature)
    student = log_softmax(values / temperature)
    return td_loss, np.mean((np.exp(teacher) * (teacher - student)).sum(axis=1))


def in_torch(table: Any, later: Any, batch: Any) -> tuple[Any, Any]:
    """What is logged of the loss, and its gradient along the table that stands for the network."""
    values, tensors = torch.tensor(table, requires_grad=True), type(batch)(*map(torch.from_numpy, batch))
    args, behind = SPEC.args(gamma=0.9, temperature=2.0), torch.tensor(later)
    loss, logged = qdagger.qdagger_loss(lambda obs: obs @ values, lambda obs: obs @ behind, args, tensors)  # type: ignore[arg-type]
    loss.backward()  # type: ignore[no-untyped-call]
    return logged.detach(), values.grad


def in_jax(table: Any, later: Any, batch: Any) -> tuple[Any, Any]:
    """The same in JAX."""
    jax = pytest.importorskip("jax")
    from cleanrl_worker.algorithms import qdagger_dqn_atari_jax_impalacnn as page

    class Table:
        def apply(self, params: Any, obs: Any) -> Any:
            return obs @ params

    given = page.Batch(*batch)._replace(distill_coeff=batch.distill_coeff[0])
    with jax.enable_x64(True):
        gradient = jax.grad(page.qdagger_loss, has_aux=True)
        slopes, logged = gradient(table, Table(), 0.9, 2.0, later, given)
        return np.asarray(logged), np.asarray(slopes)


@pytest.mark.parametrize("compute", [in_torch, in_jax])
def test_the_loss_and_its_gradient_are_those_of_the_paper(compute: Any) -> None:
    random = np.random.default_rng(0)
    rows, n = 6, 4
    batch = qdagger.Batch(
        obs=np.eye(rows, dtype=np.float64),
        next_obs=np.eye(rows, dtype=np.float64)[::-1].copy(),
        actions=random.integers(0, n, rows),
        rewards=random.normal(size=rows),
        dones=np.array([0, 1, 0, 0, 1, 0.0]),
        teacher_scores=random.normal(size=(rows, n)),
        distill_coeff=np.array([0.7]),
    )
    # Tables in place of the networks: what is compared is the loss.
    values, later = random.normal(size=(2, rows, n))
    best_next = (batch.next_obs @ later).max(axis=1)

    def total(values: NDArray[Any]) -> float:
        td_loss, distill_loss = numpy_loss(values, best_next, batch, 0.9, 2.0)
        return td_loss + 0.7 * distill_loss

    logged, gradient = compute(values, later, batch)
    td_loss, distill_loss = numpy_loss(values, best_next, batch, 0.9, 2.0)
    expected = [total(values), td_loss, distill_loss, values[np.arange(rows), batch.actions].mean()]
    np.testing.assert_allclose(logged, expected, rtol=1e-10)
    slopes = np.zeros_like(values)
    for place in np.ndindex(*values.shape):
        step = np.zeros_like(values)
        step[place] = 1e-6
        slopes[place] = (total(values + step) - total(values - step)) / 2e-6
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-8)


def test_the_network_in_jax_has_as_many_numbers_as_that_of_cleanrls_script() -> None:
    jax = pytest.importorskip("jax")
    from cleanrl_worker.algorithms.qdagger_dqn_atari_jax_impalacnn import ImpalaQNetwork

    params = ImpalaQNetwork(4).init(np.array([0, 1], np.uint32), np.zeros((1, 84, 84, 4), np.uint8))
    assert jax.tree.map(np.shape, params)["params"]["Dense_0"]["kernel"] == (3872, 256)


def test_the_teacher_counts_less_the_better_the_student_is() -> None:
    assert qdagger.distill_coeff([9.0] * 9, 10.0) == 1.0
    assert qdagger.distill_coeff([4.0] * 10, 10.0) == pytest.approx(0.6)
    assert qdagger.distill_coeff([12.0] * 10, 10.0) == 0.0
    assert qdagger.distill_coeff([-10.0] * 10, 10.0) == 2.0
    assert [qdagger.distill_coeff([mean] * 10, -5.0) for mean in (-20.0, -4.0)] == [1.0, 0.0]


def test_a_buffer_that_has_forgotten_gives_only_what_came_later(tmp_path: Path) -> None:
    buffer = ReplayBuffer(50, (1,), (), 1)
    for number in range(70):
        buffer.add([number], [number + 1], 0, 0.0, False)
    buffer.forget()
    assert len(buffer) == 0
    for number in range(70, 100):
        buffer.add([number], [number + 1], 0, 0.0, False)
    buffer.store(tmp_path)
    again = ReplayBuffer(50, (1,), (), 1)
    again.fetch(tmp_path, buffer.state())
    again.load(buffer.state())
    assert len(buffer) == len(again) == 30
    seen = buffer.sample(500).obs
    assert set(seen.ravel()) == {float(number) for number in range(70, 100)}
    assert (again.sample(500).obs == seen).all()
    for number in range(100, 130):
        buffer.add([number], [number + 1], 0, 0.0, False)
    assert len(buffer) == 50 and buffer.sample(500).obs.min() == 80.0


def train(values: dict[str, Any], folder: Path) -> Path:
    """Train in a folder; gives it."""
    folder.mkdir()
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(printed):
        patch.chdir(folder)
        assert run_with(SPEC, values) == 0, printed.getvalue()
    return folder


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    teacher = save_catch(tmp_path_factory.mktemp("teacher"), "dqn_atari")
    return {
        "env_id": CATCH,
        "exp_name": "q",
        "seed": 2,
        "num_envs": 2,
        "total_timesteps": 240,
        "teacher_policy": str(teacher),
        "teacher_steps": 80,
        "offline_steps": 80,
        "batch_size": 4,
        "buffer_size": 100,
        "learning_starts": 0,
        "teacher_eval_episodes": 2,
        "eval_episodes": 0,
    }


def test_a_run_goes_on_in_each_phase_with_the_same_bytes(
    values: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train({**values, "checkpoint_every": 0}, tmp_path / "whole")
    (model,) = whole.glob("runs/*/q.cleanrl_model")
    assert (whole / "teacher" / "catch.cleanrl_model").is_file()
    series = EventReader(whole / "runs").poll(1_000_000)[0].series
    assert max(series["charts/teacher/episodic_return"].steps) <= 80
    assert min(series["charts/episodic_return"].steps) > 160
    assert list(series["charts/teacher/avg_episodic_return"].steps) == [0]
    with monkeypatch.context() as patch:
        patch.setattr("cleanrl_worker.kit.checkpoints.KEPT", 10)
        cut = train({**values, "checkpoint_every": 40}, tmp_path / "cut")
    for step in (40, 120, 200):
        place = cut / "checkpoints" / f"step-{step:012d}.npz"
        resumed = train({**values, "resume_from": str(place)}, tmp_path / f"from-{step}")
        (again,) = resumed.glob("runs/*/q.cleanrl_model")
        assert again.read_bytes() == model.read_bytes()


def test_teachers_score_actions_by_their_values_or_by_their_probabilities(tmp_path: Path) -> None:
    for algo in ("dqn_atari", "ppo_atari"):
        (tmp_path / algo).mkdir()
        args = SPEC.args(env_id=CATCH, teacher_policy=str(save_catch(tmp_path / algo, algo)))
        with open_envs(SPEC, args) as envs:
            obs = np.zeros((1, 84, 84, 4), np.uint8)
            envs.reset(1, obs)
            teacher = open_teacher(ALGO, args, envs, keep=False)
            scores, output = teacher.scores(obs), teacher.policy.judge(obs)
            # Actions are counted from 0, and the best is the one that the policy takes.
            assert teacher.policy.act(obs) == [int(scores.argmax())]
        if algo == "dqn_atari":
            assert output.action_values is not None and (scores == output.action_values).all()
        else:
            assert output.probabilities is not None
            np.testing.assert_allclose(np.exp(scores), output.probabilities, rtol=1e-6)


def config(folder: Path, **params: Any) -> dict[str, Any]:
    fields = {"run_id": "r", "algo": ALGO, "env_id": CATCH, "total_timesteps": 5000}
    small = {"teacher_steps": 100, "offline_steps": 100, "buffer_size": 1000}
    return {**fields, "extras": {"algo_params": {**small, **params}}}


def refusal(folder: Path, **params: Any) -> str:
    with pytest.raises(UserError) as caught:
        CATALOG.describe(config(folder, **params), None, folder, ())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_wrong_teacher_is_one_sentence_in_a_dry_run(tmp_path: Path) -> None:
    assert "learns from a teacher, but none is named" in refusal(tmp_path)
    assert "There is no policy 'nobody'" in refusal(tmp_path, teacher_policy="nobody")
    cart = str(save_cartpole(tmp_path))
    assert "is of ppo, which does not choose among actions by images" in refusal(
        tmp_path, teacher_policy=cart
    )
    (tmp_path / "other").mkdir()
    other = save_catch(tmp_path / "other")
    PolicyCard("ppo_atari", {"env_id": "mosaic/Recall-v0", "frame_stack": 4}, 1, None).write(other)
    assert "mosaic/Recall-v0 (discrete 4), but mosaic/Catch-v0 has other actions (discrete 3)" in refusal(
        tmp_path, teacher_policy=str(other)
    )
    PolicyCard("ppo_atari", {"env_id": CATCH, "frame_stack": 1}, 1, None).write(other)
    assert "sees 1 frames, but frame_stack is 4: set it to 1" in refusal(tmp_path, teacher_policy=str(other))
    # What the card does not tell is seen by a look at the weights.
    wrong = save_policy(tmp_path / "w.cleanrl_model", torch.load(cart, weights_only=True), "ppo_atari", CATCH)
    assert "is not a model of ppo_atari" in refusal(tmp_path, teacher_policy=str(wrong))
    good = str(save_catch(tmp_path))
    assert "lower teacher_steps or offline_steps" in refusal(
        tmp_path, teacher_policy=good, offline_steps=4900
    )


@pytest.mark.parametrize("frame_stack", [1, 4])
def test_a_teacher_with_a_memory_is_refused(tmp_path: Path, frame_stack: int) -> None:
    weights = NatureLSTMAgent((84, 84, 1), 3).state_dict()
    path = save_policy(tmp_path / "l.cleanrl_model", weights, "ppo_atari_lstm", CATCH)
    told = refusal(tmp_path, teacher_policy=str(path), frame_stack=frame_stack)
    assert "has a memory" in told


def test_a_run_may_be_named_as_the_teacher(var: Path) -> None:
    run = VarPaths(var).runs / "01M0000000000000000000000A"
    place = run / "runs" / "x"
    place.mkdir(parents=True)
    model = save_catch(place)
    told = CATALOG.describe(config(var, teacher_policy="01M0000000000000000000000A"), None, var, ())
    assert told["config"]["extras"]["algo_params"]["teacher_policy"] == str(model)
