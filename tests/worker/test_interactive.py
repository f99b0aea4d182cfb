"""Interactive sessions: a real process, JSON lines in and out."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cleanrl_worker.algorithms import ppo
from cleanrl_worker.evaluation.interactive.serving import serve
from cleanrl_worker.evaluation.models import NO_STATISTICS, open_model
from mosaic.client.playing import PlaySession, Refused, SessionEnded
from mosaic.contract.errors import UserError
from mosaic.fastlane.png import decode_png
from support.policies import STEP, save_cartpole, save_pendulum

PLAYER = [sys.executable, "-m", "cleanrl_worker.evaluation.interactive"]


def ask(lines: str | bytes, *flags: str, folder: Path) -> list[dict[str, Any]]:
    """The messages of a session that gets these lines and then the end of input."""
    data = lines if isinstance(lines, bytes) else lines.encode()
    done = subprocess.run([*PLAYER, *flags], input=data, capture_output=True, cwd=folder, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_policy_is_stepped_through_and_its_own_choice_is_what_it_announced(tmp_path: Path) -> None:
    path = save_cartpole(tmp_path)
    with PlaySession.start(path, seed=11) as session:
        init = session.init
        assert (init["algo"], init["env_id"], init["trained_steps"]) == ("ppo", "CartPole-v1", STEP)
        assert init["policy"] == str(path) and init["deterministic"] and init["draws"]
        assert init["observation_space"]["shape"] == [4]
        assert init["action_space"] == {"kind": "discrete", "n": 2, "meanings": ["left", "right"]}
        session.ping()
        ready = session.reset()
        assert ready["seed"] == 11 and "frame" not in ready
        model = open_model(path)
        with model.make_envs(1) as envs:
            policy = model.load_policy(envs)
        announced, total = ready["next"], 0.0
        obs = np.array([ready["observation"]], np.float32)
        while True:
            assert announced["action"] == policy.act(obs)[0]
            opinion = policy.judge(obs)
            assert opinion.values is not None and opinion.probabilities is not None
            assert announced["value"] == pytest.approx(opinion.values[0].item(), abs=1e-5)
            assert announced["probabilities"] == pytest.approx(opinion.probabilities[0].tolist(), abs=1e-5)
            step = session.step()
            assert (step["action"], step["by"]) == (announced["action"], "policy")
            total += step["reward"]
            obs = np.array([step["observation"]], np.float32)
            if "episode" in step:
                break
            announced = step["next"]
        assert step["terminated"] and not step["truncated"] and step["next"] is None
        done = step["episode"]
        assert (done["return"], done["length"], done["seed"]) == (total, step["step"], 11)
        with pytest.raises(Refused, match="send a reset"):
            session.step()
        assert session.reset()["seed"] == 12
        again = session.reset(seed=11)
        assert again["observation"] == ready["observation"] and again["next"] == ready["next"]


def test_the_caller_may_act_and_ask_for_pictures(tmp_path: Path) -> None:
    with PlaySession.start(save_cartpole(tmp_path)) as session:
        ready = session.reset(seed=2, frame=True)
        picture = decode_png(base64.b64decode(ready["frame"]))
        assert picture.shape == (400, 600, 3) and len(np.unique(picture)) > 1
        own = 1 - ready["next"]["action"]
        step = session.step(own)
        assert (step["action"], step["by"], step["step"]) == (own, "caller", 1)
        assert "frame" not in step
        moved = session.step(own, frame=True)
        assert not np.array_equal(decode_png(base64.b64decode(moved["frame"])), picture)


def test_continuous_actions_are_lists_within_bounds(tmp_path: Path) -> None:
    save_pendulum(tmp_path)
    with PlaySession.start(
        "pend.cleanrl_model", folder=tmp_path, frames=True, deterministic=False
    ) as session:
        space = session.init["action_space"]
        assert (space["kind"], space["shape"], space["low"], space["high"]) == ("box", [1], [-2.0], [2.0])
        assert session.init["notes"] == [NO_STATISTICS] and not session.init["deterministic"]
        ready = session.reset(seed=5)
        assert ready["frame"] and ready["next"]["probabilities"] is None
        assert session.step()["action"] == ready["next"]["action"]
        step = session.step([0.25], frame=False)
        assert (step["action"], step["by"]) == ([0.25], "caller") and "frame" not in step
        for action, said in (
            ([2.5], "out of bounds"),
            ([0.1, 0.2], r"shape \[2\]"),
            (0.5, r"shape \[\]"),
            ([[0.1]], r"shape \[1, 1\]"),
            (["x"], "list of numbers"),
            ([True], "list of numbers"),
            ([[1.0], 2.0], "list of numbers"),
            ([float("nan")], "out of bounds"),
        ):
            with pytest.raises(Refused, match=said):
                session.step(action)
        assert session.step()["step"] == step["step"] + 1
        # The same seed draws the same actions.
        first = [session.reset(seed=8)["next"]["action"], session.step()["next"]["action"]]
        assert first == [session.reset(seed=8)["next"]["action"], session.step()["next"]["action"]]


WRONG = {
    '{"type": "step"}': "No episode is running",
    "nonsense": "The line is not JSON",
    "[1, 2]": "A message is a JSON object",
    '"step"': "A message is a JSON object",
    "{}": "has no 'type'",
    '{"type": "rest"}': "did you mean 'reset'?",
    '{"type": 5}': "There is no message of type 5",
    '{"type": ["step"]}': "There is no message of type ['step']",
    '{"cmd": "step"}': "has no 'type'",
    '{"type": "reset", "sed": 1}': "A reset has no field 'sed'; did you mean 'seed'?",
    '{"type": "ping", "seed": 1}': "A ping has no field 'seed', nor any other.",
    '{"type": "reset", "seed": -1}': "'seed' is -1",
    '{"type": "reset", "seed": 1.5}': "'seed' is 1.5",
    '{"type": "reset", "seed": true}': "'seed' is True",
    '{"type": "reset", "frame": 1}': "'frame' is 1",
    "[" * 100_000: "The line is not JSON",
    '{"type": "ping", "x": "' + "x" * 2_000_000 + '"}': "more than 1000000 bytes",
}


def test_a_wrong_message_gets_an_error_line_and_the_session_goes_on(tmp_path: Path) -> None:
    save_cartpole(tmp_path)
    acting = {
        '{"type": "step", "action": 2}': "from 0 to 1",
        '{"type": "step", "action": -1}': "from 0 to 1",
        '{"type": "step", "action": 0.5}': "from 0 to 1",
        '{"type": "step", "action": true}': "from 0 to 1",
        '{"type": "step", "action": [1]}': "from 0 to 1",
        '{"type": "step", "action": "left"}': "from 0 to 1",
        '{"type": "step", "acton": 1}': "did you mean 'action'?",
    }
    lines = [*WRONG, '{"type": "reset"}', *acting, "", '{"type": "step", "action": null}', '{"type": "ping"}']
    data = b"\xff\xfe\n" + "\n".join(lines).encode() + b"\n"
    init, *answers, stopped = ask(data, "--policy-path=cart.cleanrl_model", folder=tmp_path)
    assert init["type"] == "init" and stopped == {"type": "stopped", "reason": "end of input"}
    expected = ["The line is not JSON", *WRONG.values(), "ready", *acting.values(), "step", "pong"]
    for answer, said in zip(answers, expected, strict=True):
        if answer["type"] == "error":
            assert said in answer["message"] and not answer["fatal"]
            assert "\n" not in answer["message"] and len(answer["message"]) < 400
        else:
            assert answer["type"] == said
    assert answers[-2]["by"] == "policy" and answers[-2]["step"] == 1


LOUD = """
import os
import gymnasium as gym

print("imported")
os.system("echo from a child")


class Loud(gym.Env):
    observation_space = gym.spaces.Box(-1.0, 1.0, (4,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        print("reset")
        self.count = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        print("step")
        os.write(1, b"straight to the descriptor")
        self.count += 1
        if self.count == 2:
            raise RuntimeError("something\\nbroke")
        return self.observation_space.sample(), float("nan"), False, False, {}


gym.register("Loud-v0", Loud)
"""


def test_an_environment_may_print_and_fail_and_only_messages_reach_stdout(tmp_path: Path) -> None:
    save_cartpole(tmp_path)
    (tmp_path / "loud.py").write_text(LOUD)
    step, reset = '{"type": "step"}\n', '{"type": "reset", "frame": true}\n'
    flags = ("--policy-path=cart.cleanrl_model", "--env-id=loud:Loud-v0", "--max-episode-steps=1")
    messages = ask(reset + step + reset, *flags, folder=tmp_path)
    assert [message["type"] for message in messages] == [
        *("init", "ready", "step", "episode_done", "ready", "stopped")
    ]
    assert not messages[0]["draws"]
    assert messages[1]["frame"] is None and "cannot render" in messages[1]["frame_problem"]
    assert messages[2]["reward"] is None and messages[2]["truncated"]
    failed = ask(reset + step * 3 + reset, *flags[:2], folder=tmp_path)
    assert [message["type"] for message in failed[1:]] == [
        "ready",
        "step",
        "error",
        "error",
        "ready",
        "stopped",
    ]
    assert failed[3]["message"].startswith("The environment cannot take this step: RuntimeError: something;")
    assert "No episode is running" in failed[4]["message"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--policy-path=none.cleanrl_model"], "There is no policy 'none.cleanrl_model'"),
        (["--policy-path=cart.cleanrl_model", "--env-id=CartPol-v1"], "did you mean 'CartPole-v1'?"),
        (["--policy-path=cart.cleanrl_model", "--env-id=Pendulum-v1"], "ppo takes discrete"),
        (["--policy-path=cart.cleanrl_model", "--env-id=Acrobot-v1"], "has the shape (64, 4) where (64, 6)"),
        (["--policy-path=cart.cleanrl_model", "--algo=dqn"], "is not a model of dqn"),
        (["--policy-path=cart.cleanrl_model", "--sed=1"], "did you mean 'seed'?"),
    ],
)
def test_a_session_that_cannot_begin_says_why_in_one_line(
    flags: list[str], said: str, tmp_path: Path, var: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save_cartpole(tmp_path)
    answers, replies = os.pipe()
    try:
        assert serve(flags, replies) == 2
        (error,) = os.read(answers, 65536).splitlines()
    finally:
        os.close(answers)
        os.close(replies)
    message = json.loads(error)
    assert message["type"] == "error" and message["fatal"] and said in message["message"]


def test_a_run_stands_for_its_newest_policy(
    tmp_path: Path, var: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = var / "trainer" / "runs" / "01K9ZW00000000000000000000"
    run.mkdir(parents=True)
    monkeypatch.chdir(run)
    flags = ["--total-timesteps=512", "--seed=4", "--eval-episodes=0", "--env-id=CartPole-v1"]
    assert ppo.main(flags) == 0
    monkeypatch.chdir(tmp_path)
    (checkpoint,) = run.glob("checkpoints/step-*.npz")
    answers = []
    for name in ("last", "01k9zw", str(checkpoint)):
        with PlaySession.start(name, var=var, seed=1) as session:
            assert (session.init["algo"], session.init["trained_steps"]) == ("ppo", 512)
            answers.append(session.reset()["next"])
    assert answers[0] == answers[1]
    assert answers[0]["probabilities"] == pytest.approx(answers[2]["probabilities"], abs=1e-6)
    with pytest.raises(UserError, match="There is no policy '01ZZ'"):
        PlaySession.start("01ZZ", var=var)


def test_a_killed_process_is_told_of_with_its_last_words(tmp_path: Path) -> None:
    save_cartpole(tmp_path)
    (tmp_path / "loud.py").write_text(LOUD.replace('raise RuntimeError("something\\nbroke")', "os._exit(7)"))
    with PlaySession.start("cart.cleanrl_model", env_id="loud:Loud-v0", folder=tmp_path) as session:
        session.reset()
        session.step()
        with pytest.raises(SessionEnded, match=r"ended with code 7: .*descriptor"):
            session.step()
        with pytest.raises(SessionEnded):
            session.ping()
    with PlaySession.start("cart.cleanrl_model", folder=tmp_path) as session:
        session.reset()
        os.kill(session.pid, signal.SIGKILL)
        with pytest.raises(SessionEnded, match="was ended by SIGKILL"):
            session.step()
    with PlaySession.start("cart.cleanrl_model", folder=tmp_path) as session:
        os.kill(session.pid, signal.SIGSTOP)
        with pytest.raises(SessionEnded, match=r"did not answer within 0.2 s"):
            session.ping(timeout=0.2)
        os.kill(session.pid, signal.SIGCONT)
        # The answer that comes late is still taken.
        assert session.receive(60)["type"] == "pong"
        os.kill(session.pid, signal.SIGTERM)
        assert session.receive(60)["type"] == "stopped"


def test_a_command_that_is_no_player_is_refused_in_one_sentence(tmp_path: Path) -> None:
    for command, said in (
        ([str(tmp_path / "none")], "cannot be started"),
        ([sys.executable, "-c", "print('hello')"], "which is not a message"),
        ([sys.executable, "-c", 'print(\'{"type": "pong"}\')'], "where 'init' was expected"),
        ([sys.executable, "-c", "raise SystemExit('not today')"], "ended with code 1: not today"),
    ):
        with pytest.raises(SessionEnded, match=said):
            PlaySession(command, os.environ, tmp_path)


def test_under_a_supervisor_the_same_messages_pass_and_a_run_is_left(tmp_path: Path, var: Path) -> None:
    save_cartpole(tmp_path)
    extras = json.dumps({"policy_path": "cart.cleanrl_model", "max_episode_steps": 1})
    worker = [sys.executable, "-m", "cleanrl_worker.cli", "--interactive", "--seed=9", "--extras", extras]
    lines = b'{"type": "reset"}\n{"type": "step"}\n{"type": "stop"}\n'
    done = subprocess.run(worker, input=lines, capture_output=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert [message["type"] for message in messages] == ["init", "ready", "step", "episode_done", "stopped"]
    assert messages[1]["seed"] == 9 and messages[2]["truncated"]
    (run,) = (var / "trainer" / "runs").iterdir()
    events = [json.loads(line)["event"] for line in (run / "logs" / "events.jsonl").read_text().splitlines()]
    assert events[0] == "run_started" and events[-1] == "run_completed"
    assert json.loads((run / "analytics.json").read_text())["run_id"] == run.name
