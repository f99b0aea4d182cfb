"""An environment that a person plays: its keys, the session without a policy, what recordings hold."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from cleanrl_worker.evaluation.interactive.keys import controls_of, frame_rate
from cleanrl_worker.evaluation.interactive.recording import EpisodeRecording
from cleanrl_worker.evaluation.interactive.session import action_meanings, make_drawable
from mosaic.client.playing import PlaySession, Refused
from mosaic.contract.errors import MosaicError, UserError
from mosaic.fastlane.png import decode_png
from support.policies import save_cartpole

ROOM = """
import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Room(gym.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}

    def __init__(self, render_mode=None, length=3, breaks=False, actions=None):
        self.render_mode, self.length, self.breaks = render_mode, length, breaks
        self.action_space = {
            None: spaces.Discrete(3),
            "dict": spaces.Dict({"a": spaces.Discrete(2)}),
            "wide": spaces.Box(-1.0, 1.0, (40,)),
        }[actions]
        self.observation_space = spaces.Dict(
            {"place": spaces.Box(-9, 9, (2,)), "mission": spaces.Text(40), "step": spaces.Discrete(99)}
        )

    def see(self):
        place = self.np_random.normal(size=2).astype(np.float32)
        return {"place": place, "mission": f"go {self.at}", "step": self.at}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self.see(), {}

    def step(self, action):
        self.at += 1
        if self.breaks and self.at == 2:
            raise RuntimeError("the roof fell in")
        return self.see(), float(action), self.at == self.length, False, {}

    def render(self):
        return np.full((40, 60, 3), 10 * self.at, np.uint8)

    def get_keys_to_action(self):
        return {(): 0, (276,): 1, ("w", "x"): 2, "q": 2}


gym.register("Room-v0", Room)
"""


@pytest.fixture
def room(tmp_path: Path) -> Path:
    (tmp_path / "room.py").write_text(ROOM)
    return tmp_path


def controls(env_id: str, **kwargs: Any) -> dict[str, Any]:
    env = make_drawable(env_id, kwargs)
    try:
        return controls_of(env, env_id, action_meanings(env))
    finally:
        env.close()


def keys_of(found: dict[str, Any]) -> dict[str, Any]:
    """Of each chord of keys the action."""
    return {"+".join(chord["keys"]): chord["action"] for chord in found["chords"]}


@pytest.mark.parametrize(
    ("env_id", "keys", "idle", "time"),
    [
        ("CartPole-v1", {"left": 0, "right": 1}, 0, "held"),
        ("MountainCar-v0", {"left": 0, "right": 2, "right+left": 1}, 1, "runs"),
        ("Acrobot-v1", {"left": 0, "right": 2}, 1, "runs"),
        ("LunarLander-v3", {"left": 1, "up": 2, "right": 3}, 0, "runs"),
        ("FrozenLake-v1", {"left": 0, "down": 1, "right": 2, "up": 3}, 0, "turns"),
        ("Taxi-v4", {"down": 0, "up": 1, "right": 2, "left": 3, "a": 4, "d": 5}, 0, "turns"),
        ("Blackjack-v1", {"s": 0, "h": 1}, 0, "turns"),
        (
            "MiniGrid-DoorKey-5x5-v0",
            {"left": 0, "right": 1, "up": 2, "a": 3, "d": 4, "space": 5, "e": 6},
            0,
            "turns",
        ),
        (
            "ALE/SpaceInvaders-v5",
            {"space": 1, "right": 2, "left": 3, "right+space": 4, "left+space": 5},
            0,
            "runs",
        ),
        ("mosaic/Catch-v0", {"left": 1, "right": 2}, 0, "runs"),
        ("mosaic/Recall-v0", {"1": 0, "2": 1, "3": 2, "4": 3}, 0, "held"),
    ],
)
def test_each_family_has_its_keys(env_id: str, keys: dict[str, int], idle: int, time: str) -> None:
    found = controls(env_id)
    assert (keys_of(found), found["idle"], found["time"]) == (keys, idle, time)


def test_a_lander_is_moved_left_by_the_left_key() -> None:
    def drift(key: str) -> float:
        env = gym.make("LunarLander-v3")
        obs, _ = env.reset(seed=1)
        for _ in range(20):
            obs, *_ = env.step(keys_of(controls("LunarLander-v3"))[key])
        env.close()
        return float(obs[2])

    assert drift("left") < drift("right")


def test_numbers_of_continuous_actions_have_two_keys_each_and_say_by_how_much() -> None:
    car = {axis["key"]: axis for axis in controls("CarRacing-v3")["axes"]}
    assert car["left"] == {"key": "left", "index": 0, "value": -1.0, "word": "steer left −1"}
    assert car["down"]["value"] == 0.8 and car["up"]["index"] == 1
    walker = controls("BipedalWalker-v3")["axes"]
    assert sorted((axis["index"], axis["value"]) for axis in walker) == [
        (index, value) for index in range(4) for value in (-1.0, 1.0)
    ]
    humanoid = controls("Humanoid-v5")
    assert len({axis["key"] for axis in humanoid["axes"]}) == 34
    assert humanoid["idle"] == [0.0] * 17 and humanoid["axes"][0]["word"] == "abdomen y −0.4"
    with pytest.raises(UserError, match="has 100 actions, and there are 30 keys"):
        controls_of(Bare(spaces.Discrete(100)), "Bare-v0", None)
    far = controls_of(Bare(spaces.Box(-1e10, 1e10, (1,))), "Bare-v0", None)
    assert [axis["value"] for axis in far["axes"]] == [-1.0, 1.0]
    with pytest.raises(UserError, match="has 34 choices in an action, and there are 30 keys"):
        controls_of(Bare(spaces.MultiDiscrete([18, 18])), "Bare-v0", None)


class Bare(gym.Env[Any, Any]):
    observation_space = spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, action_space: Any, **metadata: Any) -> None:
        self.action_space = action_space
        self.metadata = metadata  # type: ignore[misc]


def test_actions_without_words_have_the_keys_from_1_on_and_never_those_of_the_player() -> None:
    found = controls_of(Bare(spaces.Discrete(12, start=5)), "Bare-v0", None)
    assert list(keys_of(found).items())[:3] == [("1", 5), ("2", 6), ("3", 7)]
    assert keys_of(found)["0"] == 14 and found["idle"] == 5 and found["time"] == "held"
    most = controls_of(Bare(spaces.Discrete(30)), "Bare-v0", None)
    wide = controls_of(Bare(spaces.Box(-np.inf, np.inf, (17,))), "Bare-v0", None)
    used = set(keys_of(most)) | {axis["key"] for axis in wide["axes"]}
    assert not used & set("pnbrtq+-.=") and len(keys_of(most)) == 30
    assert {axis["value"] for axis in wide["axes"]} == {-1.0, 1.0}
    several = controls_of(Bare(spaces.MultiDiscrete([2, 3])), "Bare-v0", None)
    assert [(axis["key"], axis["index"], axis["value"]) for axis in several["axes"]] == [
        ("1", 0, 1),
        ("2", 1, 1),
        ("3", 1, 2),
    ]
    assert several["idle"] == [0, 0]
    bits = controls_of(Bare(spaces.MultiBinary(3)), "Bare-v0", None)
    assert [axis["index"] for axis in bits["axes"]] == [0, 1, 2]
    low = controls_of(Bare(spaces.Box(1.0, 2.0, (2,))), "Bare-v0", None)
    assert low["idle"] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("told", "fps"), [({"render_fps": 50}, 50), ({}, 30), ({"render_fps": 0}, 30), ({"render_fps": "x"}, 30)]
)
def test_time_is_that_of_the_environment(told: dict[str, Any], fps: float) -> None:
    assert frame_rate(Bare(spaces.Discrete(2), **told)) == fps


def test_a_game_of_atari_runs_as_fast_as_on_the_console() -> None:
    env = make_drawable("ALE/Pong-v5", {})
    assert frame_rate(env) == 15
    env.close()


def test_without_a_policy_a_step_that_names_no_action_does_nothing(tmp_path: Path) -> None:
    with PlaySession.start(env_id="LunarLander-v3", seed=3, folder=tmp_path, frames=True) as session:
        assert (session.init["algo"], session.init["policy"], session.init["fps"]) == (None, None, 50.0)
        ready = session.reset()
        assert ready["seed"] == 3 and ready["next"] is None
        assert decode_png(base64.b64decode(ready["frame"])).shape == (400, 600, 3)
        idle, own = session.step(), session.step(2, frame=False)
        assert (idle["action"], idle["by"]) == (0, "idle") and (own["action"], own["by"]) == (2, "caller")
        assert "frame" not in own
        with pytest.raises(Refused, match="from 0 to 3"):
            session.step(4)
    assert list(tmp_path.iterdir()) == []


def test_pictures_are_not_told_in_numbers_too(tmp_path: Path) -> None:
    with PlaySession.start(env_id="ALE/Pong-v5", folder=tmp_path) as session:
        assert session.reset(seed=1)["observation"] is None
    with PlaySession.start(env_id="MiniGrid-Empty-5x5-v0", folder=tmp_path) as session:
        seen = session.reset(seed=1)
        assert seen["mission"] == "get to the green goal square"
        assert np.shape(seen["observation"]["image"]) == (7, 7, 3)


def test_a_game_of_procgen_is_played_in_envpool(tmp_path: Path) -> None:
    with PlaySession.start(env_id="StarpilotEasy-v0", folder=tmp_path, frames=True) as session:
        keys = keys_of(session.init["controls"])
        assert keys["left+down"] == 0 and keys["right"] == 7 and keys["q"] == 13 and "" not in keys
        assert (session.init["controls"]["idle"], session.init["fps"]) == (4, 15)
        first = session.reset(seed=5)["frame"]
        assert decode_png(base64.b64decode(first)).shape == (64, 64, 3)
        pictures = [session.step(7)["frame"] for _ in range(5)]
        assert session.reset(seed=5)["frame"] == first
        assert [session.step(7)["frame"] for _ in range(5)] == pictures


def test_the_session_needs_no_torch(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from cleanrl_worker.evaluation.interactive.by_hand import HandSession\n"
        "from cleanrl_worker.evaluation.interactive.messages import Request\n"
        "session = HandSession('CartPole-v1')\n"
        "session.reset(Request('reset'))\n"
        "session.step(Request('step'))\n"
        "assert not {'torch', 'jax', 'grpc'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def trajectory(folder: Path) -> Any:
    (file,) = folder.glob("*.npz")
    return np.load(file, allow_pickle=False)


def test_a_recorded_episode_can_be_played_again_from_its_seed_and_actions(tmp_path: Path) -> None:
    kept = tmp_path / "kept" / "here"
    kwargs = {"gravity": -5.0}
    with PlaySession.start(
        env_id="LunarLander-v3", env_kwargs=kwargs, folder=tmp_path, record=kept
    ) as session:
        assert session.init["recording"] == str(kept)
        session.reset(seed=11)
        step, number = session.step(), 0
        while "episode" not in step:
            number += 1
            step = session.step(number % 4)
        recorded = step["episode"]["recorded"]
        assert recorded["problem"] is None
        assert sorted(recorded["files"]) == sorted(map(str, kept.iterdir()))
    data = trajectory(kept)
    assert data["seed"] == 11 and data["format"] == 1 and data["terminated"][-1]
    env = gym.make(str(data["env_id"]), **json.loads(str(data["env_kwargs"])))
    obs, _ = env.reset(seed=int(data["seed"]))
    seen, rewards = [obs], []
    for action in data["actions"]:
        obs, reward, *_ = env.step(action)
        seen.append(obs)
        rewards.append(reward)
    env.close()
    assert np.array_equal(seen, data["observations"]) and np.array_equal(rewards, data["rewards"])
    assert sum(rewards) == pytest.approx(step["episode"]["return"])
    assert count_frames(next(kept.glob("*.mp4"))) == len(seen)


def count_frames(path: Path) -> int:
    import av

    with av.open(str(path)) as container:
        return sum(1 for _ in container.decode(video=0))


def test_an_episode_is_kept_when_it_is_left_early_and_only_while_it_is_recorded(room: Path) -> None:
    kept = room / "kept"
    with PlaySession.start(env_id="room:Room-v0", folder=room) as session:
        session.reset(seed=1)
        session.step(1)
        assert session.record(kept) == {"type": "recording", "folder": str(kept)}
        assert list(kept.iterdir()) == []
        assert "recorded" not in session.reset(seed=2)
        session.step(1)
        left = session.reset(seed=3)
        assert len(left["recorded"]["files"]) == 2
        session.step(2)
        stopped = session.record(None)
        assert stopped["folder"] is None and len(stopped["recorded"]["files"]) == 2
        session.reset(seed=4)
        session.step(2)
        session.record("more")
        session.reset(seed=5)
        assert "recorded" not in session.stop()
    assert len(list(kept.glob("*.npz"))) == 2 and list((room / "more").iterdir()) == []


def test_parts_of_an_observation_are_arrays_of_their_own_and_words_stay_words(room: Path) -> None:
    with PlaySession.start(env_id="room:Room-v0", folder=room, record=room / "kept") as session:
        session.reset(seed=2)
        while "episode" not in session.step(1):
            pass
    data = trajectory(room / "kept")
    assert data["observations.place"].shape == (4, 2) and data["observations.place"].dtype == np.float32
    assert data["observations.mission"].tolist() == ["go 0", "go 1", "go 2", "go 3"]
    assert data["observations.step"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_episode_is_kept_when_a_signal_ends_the_session(number: int, room: Path) -> None:
    with PlaySession.start(env_id="room:Room-v0", folder=room, record=room / "kept") as session:
        session.reset(seed=2)
        session.step(1)
        os.kill(session.pid, number)
        assert session.receive(60)["type"] == "stopped"
    assert trajectory(room / "kept")["actions"].tolist() == [1]


def test_a_killed_session_leaves_no_half_file(room: Path) -> None:
    with PlaySession.start(env_id="room:Room-v0", folder=room, record=room / "kept") as session:
        session.reset(seed=2)
        session.step(1)
        session.kill()
    assert list((room / "kept").iterdir()) == []


def test_long_observations_are_packed_as_they_come(tmp_path: Path) -> None:
    about = {"env_id": "Big-v0"}
    recording = EpisodeRecording(tmp_path, about, 1, 30.0)
    random = np.random.default_rng(1)
    frames = [random.integers(0, 255, (210, 160, 3), np.uint8) for _ in range(30)]
    recording.observe(frames[0])
    for frame in frames[1:]:
        recording.act(0, 0.0, False, False)
        recording.observe(frame)
    recording.save()
    assert np.array_equal(trajectory(tmp_path)["observations"], frames)


def test_an_observation_of_another_shape_costs_the_trajectory_and_not_the_game(tmp_path: Path) -> None:
    recording = EpisodeRecording(tmp_path, {"env_id": "Odd-v0"}, 1, 30.0)
    recording.observe(np.zeros(2))
    recording.act(0, 0.0, False, False)
    recording.observe(np.zeros(3))
    told = recording.save()
    assert told["files"] == [] and "shape (3,)" in told["problem"]


def test_a_folder_that_cannot_be_written_is_told_before_and_after(room: Path) -> None:
    file = room / "file"
    file.write_text("")
    with pytest.raises(MosaicError, match="Nothing can be recorded in"):
        PlaySession.start(env_id="room:Room-v0", folder=room, record=file)
    with PlaySession.start(env_id="room:Room-v0", folder=room, record=room / "kept") as session:
        with pytest.raises(Refused, match="Nothing can be recorded in"):
            session.record(file / "below")
        session.reset()
        session.step(1)
        (room / "kept").rmdir()
        (room / "kept").write_text("")
        problem = session.reset()["recorded"]["problem"]
        assert problem.startswith("The recording cannot be written to")
        assert session.step(1)["step"] == 1


def test_an_environments_own_keys_come_first_and_its_faults_are_told(room: Path) -> None:
    start = {"env_id": "room:Room-v0", "folder": room}
    with PlaySession.start(**start, env_kwargs={"breaks": True}) as session:  # type: ignore[arg-type]
        found = session.init["controls"]
        assert keys_of(found) == {"left": 1, "w+x": 2, "q": 2} and found["idle"] == 0
        session.reset()
        session.step()
        with pytest.raises(Refused, match="the roof fell in"):
            session.step()
        assert session.reset()["type"] == "ready"
    for actions, said in (
        ("dict", "actions of the kind Dict, which keys cannot choose"),
        ("wide", "has 40 numbers in an action, and there are keys for 17"),
    ):
        with pytest.raises(UserError, match=said):
            PlaySession.start(**start, env_kwargs={"actions": actions})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"env_id": "LunarLandr-v3"}, "did you mean 'LunarLander-v3'?"),
        ({"env_id": "nowhere:Room-v0"}, "module 'nowhere' cannot be imported"),
        ({"env_id": "CartPole-v1", "env_kwargs": {"colour": 1}}, "colour"),
        ({}, "There is nothing to play"),
    ],
)
def test_what_cannot_be_played_is_told_in_a_sentence(
    options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as told:
        PlaySession.start(folder=tmp_path, **options)
    assert said in str(told.value) and "\n" not in str(told.value)


def test_a_policy_is_not_recorded_this_way(tmp_path: Path) -> None:
    model = save_cartpole(tmp_path)
    with pytest.raises(UserError, match="--record is for episodes played by hand"):
        PlaySession.start(model, record=tmp_path / "kept")
    with PlaySession.start(model) as session, pytest.raises(Refused, match="played by hand"):
        session.record(tmp_path / "kept")
