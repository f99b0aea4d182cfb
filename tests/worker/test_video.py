"""Videos of the first environment."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import av
import gymnasium
import numpy as np
import pytest

from cleanrl_worker.algorithms import ppo
from cleanrl_worker.kit.state import decode, encode
from cleanrl_worker.kit.vector_env import VectorEnv, make_envs
from cleanrl_worker.kit.video import is_recorded
from mosaic.analytics.film import Film

SHORT = ["--total-timesteps=512", "--num-steps=64", "--seed=4", "--checkpoint-every=0"]


def frames_of(path: Path) -> list[Any]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, *flags: str) -> bytes:
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert ppo.main([*SHORT, *flags]) == 0
    (model,) = folder.glob("runs/*/ppo.cleanrl_model")
    return model.read_bytes()


def test_the_schedule_is_cubes_and_then_every_thousandth() -> None:
    expected = [0, 1, 8, 27, 64, 125, 216, 343, 512, 729, 1000, 2000, 3000]
    assert [episode for episode in range(3500) if is_recorded(episode)] == expected


@pytest.mark.parametrize("env_id", ["CartPole-v1", "MiniGrid-Empty-5x5-v0"])
def test_recording_leaves_the_weights_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env_id: str
) -> None:
    flags = (f"--env-id={env_id}", "--update-epochs=1")
    plain = run(tmp_path / "plain", monkeypatch, *flags)
    assert run(tmp_path / "recorded", monkeypatch, *flags, "--capture-video") == plain
    assert list((tmp_path / "recorded" / "videos").iterdir())
    assert not (tmp_path / "plain" / "videos").exists()


def play(envs: VectorEnv, steps: int) -> list[tuple[int, int, int]]:
    """Push CartPole to one side; gives number, global step and length of the first one's episodes."""
    obs = np.zeros((2, 4), dtype=np.float32)
    finished: list[tuple[int, int, int]] = []
    total = 0
    for _ in range(steps):
        lengths = list(envs._lengths)
        step = envs.step([1, 0], out=obs)
        total += 2
        if 0 in step.final_obs:
            finished.append((len(finished), total, lengths[0] + 1))
    return finished


def test_a_video_shows_every_step_of_its_episode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with make_envs("ppo", "CartPole-v1", 2, capture_video=True) as envs:
        envs.reset(3, out=np.zeros((2, 4), dtype=np.float32))
        finished = play(envs, 120)
    assert len(finished) > 9
    expected = {f"episode-{n}-step-{step}.mp4": length for n, step, length in finished if n in (0, 1, 8)}
    assert {path.name for path in (tmp_path / "videos").iterdir()} == expected.keys()
    for name, length in expected.items():
        frames = frames_of(tmp_path / "videos" / name)
        assert len(frames) == length + 1
        assert frames[0].shape == (400, 600, 3)
        assert not np.array_equal(frames[0], frames[-1])


def test_an_episode_taken_up_again_is_recorded_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    obs = np.zeros((2, 4), dtype=np.float32)
    with make_envs("ppo", "CartPole-v1", 2, capture_video=True) as envs:
        envs.reset(3, out=obs)
        first = play(envs, 14)
        (tmp_path / "state.npz").write_bytes(encode(envs.state()))
        assert len(first) == 1
        play(envs, 20)
    videos = sorted((tmp_path / "videos").iterdir())
    lengths = [len(frames_of(path)) for path in videos]
    for path in videos:
        path.unlink()
    with make_envs("ppo", "CartPole-v1", 2, capture_video=True) as envs:
        envs.reset(3, out=obs)
        envs.load(decode(tmp_path / "state.npz"))
        play(envs, 20)
    (again,) = (tmp_path / "videos").iterdir()
    assert again == videos[1] and len(frames_of(again)) == lengths[1]


def test_frames_of_odd_and_changing_sizes_are_taken(tmp_path: Path) -> None:
    film = Film(12.5)
    for height, width in ((5, 7), (5, 7), (9, 4)):
        film.add(np.full((height, width, 3), 200, dtype=np.uint8))
    (tmp_path / "odd.mp4").write_bytes(film.finish())
    frames = frames_of(tmp_path / "odd.mp4")
    assert [frame.shape for frame in frames] == [(6, 8, 3)] * 3
    assert abs(int(frames[0].mean()) - 200) < 10


class Blind(gymnasium.Env[Any, Any]):
    """Has no picture; with `claims` it says that it has one."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,))
    action_space = gymnasium.spaces.Discrete(2)
    metadata: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.zeros(1, np.float32), 1.0, bool(self.np_random.random() < 0.2), False, {}


class Broken(Blind):
    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012

    def render(self) -> Any:
        raise RuntimeError("no\nscreen")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Blind, "Pictures-v0 cannot draw pictures (it has no render mode 'rgb_array')"),
        (Broken, "its picture cannot be drawn (RuntimeError: no screen)"),
    ],
)
def test_an_environment_without_pictures_trains_on_with_one_line_of_warning(
    kind: type, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gymnasium.register("Pictures-v0", kind)
    try:
        run(tmp_path / "run", monkeypatch, "--env-id=Pictures-v0", "--capture-video")
    finally:
        del gymnasium.registry["Pictures-v0"]
    assert capsys.readouterr().err == f"Videos are off: {said}.\n"
    assert not (tmp_path / "run" / "videos").exists()


def test_a_missing_package_is_said_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "av", None)
    assert ppo.main([*SHORT, "--capture-video"]) == 2
    assert "./mosaic extras install video" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
