"""Action masks reach learner, evaluation and play, and what they forbid is never taken."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

from cleanrl_worker.algorithms import ppo_masked
from cleanrl_worker.algorithms.ppo import make_agent
from cleanrl_worker.evaluation.episodes import evaluate
from cleanrl_worker.evaluation.interactive.messages import Refusal, Request
from cleanrl_worker.evaluation.interactive.session import Session
from cleanrl_worker.evaluation.models import open_model
from cleanrl_worker.kit.masks import MaskProblem, MaskReader
from cleanrl_worker.kit.run import run_with
from cleanrl_worker.kit.vector_tasks import Dial
from cleanrl_worker.supervisor.offers import CATALOG
from mosaic.contract.errors import UserError

SHORT = {"total_timesteps": 256, "num_envs": 2, "num_steps": 32, "eval_episodes": 3, "seed": 2}


class Picky(gymnasium.Env[Any, Any]):
    """Two choices of three values, of which each step forbids one; a forbidden one is an error of ours."""

    observation_space = spaces.Box(0.0, 1.0, (2,), np.float32)
    action_space: Any = spaces.MultiDiscrete([3, 3], start=[1, 0])
    wrong_at: int | None = None
    """The step at which everything of the second choice is forbidden."""

    def __init__(self) -> None:
        self._time = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._time = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        first, second = (int(one) for one in action)
        forbidden = self._time % 3
        assert first - 1 != forbidden and second != forbidden, f"{action} at {self._time}"
        self._time += 1
        return np.full(2, self._time / 9, np.float32), float(second == 2), self._time == 9, False, {}

    def action_masks(self) -> list[list[bool]]:
        allowed = [value != self._time % 3 for value in range(3)]
        return [allowed, [False] * 3 if self._time == self.wrong_at else allowed]


class Strict(Dial):
    """The dial, where a forbidden turn is an error of ours."""

    def step(self, action: int) -> Any:
        assert self._free[action], f"{action} is forbidden"
        return super().step(action)


class Plain(Dial):
    """The same without a mask."""

    def _draw_free(self) -> dict[str, Any]:
        return {}


@pytest.fixture(autouse=True)
def registered() -> Any:
    made: dict[str, Any] = {"Picky-v0": Picky, "Strict-v0": Strict, "Plain-v0": Plain}
    for name, kind in made.items():
        gymnasium.register(f"masks/{name}", kind)
    yield
    for name in made:
        del gymnasium.registry[f"masks/{name}"]


def train(env_id: str, folder: Path, patch: pytest.MonkeyPatch, **values: Any) -> int:
    patch.chdir(folder)
    return run_with(ppo_masked.SPEC, {**SHORT, "env_id": env_id, **values})


@pytest.mark.parametrize("env_id", ["masks/Picky-v0", "masks/Strict-v0"])
def test_what_is_forbidden_is_taken_neither_in_training_nor_in_evaluation_nor_in_play(
    env_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Both environments raise an error at the first forbidden action.
    assert train(env_id, tmp_path, monkeypatch, eval_every=128) == 0
    assert capsys.readouterr().err == ""
    model = open_model(next(tmp_path.glob("runs/*/*.cleanrl_model")))
    with model.make_envs(3) as envs:
        for deterministic in (True, False):
            assert len(evaluate(model.load_policy(envs), envs, 8, 5, deterministic).episodes) == 8
    session = Session(model, seed=3)
    try:
        ready = session.reset(Request("reset"))
        assert 0.0 in ready["next"]["probabilities"]
        ended = False
        while not ended:
            ended = session.step(Request("step"))[0]["next"] is None
    finally:
        session.close()


def test_play_refuses_a_forbidden_action_of_a_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert train("masks/Strict-v0", tmp_path, monkeypatch) == 0
    session = Session(open_model(next(tmp_path.glob("runs/*/*.cleanrl_model"))), seed=3)
    try:
        chances = session.reset(Request("reset"))["next"]["probabilities"]
        with pytest.raises(Refusal, match=r"is forbidden now; the mask is \[[01, ]+\]\."):
            session.step(Request("step", action=chances.index(0.0)))
        allowed = int(np.argmax(chances))
        assert session.step(Request("step", action=allowed))[0]["action"] == allowed
    finally:
        session.close()


def test_an_environment_without_masks_is_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("masks/Plain-v0", tmp_path, monkeypatch, eval_every=128) == 0
    assert capsys.readouterr().err == (
        "masks/Plain-v0 provides no action masks, neither in info['action_mask'] nor with action_masks(): "
        "all actions are allowed.\n"
    )


def test_a_mask_that_forbids_everything_ends_the_run_with_environment_and_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Picky, "wrong_at", 4)
    assert train("masks/Picky-v0", tmp_path, monkeypatch) != 0
    assert capsys.readouterr().err == (
        "masks/Picky-v0 gave an action mask that forbids everything at step 8 (environment 1 of 2), "
        "but at least one action must be allowed.\n"
    )


BARRED = """
import gymnasium, numpy
from gymnasium.envs.classic_control import CartPoleEnv

class Barred(CartPoleEnv):
    def __init__(self, flags=(0, 0)):
        super().__init__()
        self._flags = flags

    def reset(self, **options):
        return super().reset(**options)[0], {"action_mask": self._flags}

gymnasium.register("Barred-v0", Barred)
"""


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        (None, "an action mask that forbids everything in reset"),
        ({"flags": [1, 1, 1]}, r"the action mask \[1, 1, 1\] in reset\(\) .* a mask must have 2 flags"),
        ({"flags": [1, 0]}, ""),
    ],
)
def test_a_dry_run_finds_the_mask_that_no_episode_can_begin_with(
    kwargs: Any, said: str, tmp_path: Path
) -> None:
    (tmp_path / "barred.py").write_text(BARRED)
    extras = {"env_kwargs": kwargs} if kwargs else {}
    config = {"run_id": "r", "algo": "ppo_masked", "env_id": "barred:Barred-v0", "total_timesteps": 1000}
    with pytest.raises(UserError, match=f"^Barred-v0 gave {said}") if said else nullcontext():
        CATALOG.check({**config, "seed": 1, "extras": extras}, None, tmp_path)


@pytest.mark.parametrize("given", [[1, 0], "abcdef", [[True], [True]], {"a": 1}, [None] * 6, 3])
def test_what_is_not_a_mask_is_refused(given: Any) -> None:
    env = gymnasium.make("masks/Plain-v0")
    with pytest.raises(MaskProblem, match="a mask must have 6 flags"):
        MaskReader(Picky.action_space).read(env, {"action_mask": given})


@pytest.mark.parametrize("backend", ["envpool", "ale"])
def test_a_backend_that_hands_over_no_masks_is_refused_before_anything_starts(backend: str) -> None:
    params = {"env_backend": backend}
    config = {"run_id": "r", "algo": "ppo_masked", "env_id": "mosaic/Dial-v0", "total_timesteps": 1000}
    with pytest.raises(
        UserError, match=rf"'env_backend' is '{backend}', but must be one of 'auto', 'python'"
    ):
        CATALOG.check({**config, "seed": 1, "extras": {"algo_params": params}}, None, None)


def test_a_resumed_run_knows_what_was_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("whole", "resumed"):
        (tmp_path / name).mkdir()
    # The checkpoint is within episodes of nine steps.
    values = {"checkpoint_every": 128, "num_steps": 32}
    assert train("masks/Picky-v0", tmp_path / "whole", monkeypatch, **values) == 0
    first = min((tmp_path / "whole" / "checkpoints").glob("step-*.npz"))
    assert train("masks/Picky-v0", tmp_path / "resumed", monkeypatch, **values, resume_from=str(first)) == 0
    found = [next((tmp_path / name).glob("runs/*/*.cleanrl_model")) for name in ("whole", "resumed")]
    assert found[0].read_bytes() == found[1].read_bytes()


def test_no_gradient_reaches_what_was_forbidden() -> None:
    torch.manual_seed(1)
    agent = make_agent(spaces.Box(-1.0, 1.0, (3,)), (4,))
    allowed = torch.tensor([[True, False, True, False]] * 5)
    batch = ppo_masked.Batch(
        torch.randn(5, 3), allowed, torch.zeros(5, 1, dtype=torch.long), torch.full((5,), -0.7),
        torch.randn(5), torch.randn(5), torch.zeros(5),
    )  # fmt: skip
    loss, logged = ppo_masked.ppo_loss(agent, ppo_masked.Args(), batch)
    torch.autograd.backward(loss)
    *_, last = agent.actor.parameters()
    gradient = last.grad
    assert gradient is not None and torch.equal(gradient.abs() > 0, allowed[0])
    # Two equal chances have an entropy of log 2.
    assert float(logged[2]) == pytest.approx(np.log(2), rel=1e-3)
