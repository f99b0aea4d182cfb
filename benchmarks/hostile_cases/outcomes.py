"""How runs end: scripts and environments that leave, fail, hang and lie."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

from hostile_cases.ground import PATIENCE, Check, Ground, expect, quiet

SCRIPTS: dict[str, tuple[str, str, str]] = {
    "ends by itself": ("print('done')", "completed", ""),
    "sys.exit(0)": ("import sys; sys.exit(0)", "completed", ""),
    "sys.exit()": ("import sys; sys.exit()", "completed", ""),
    "sys.exit(3)": ("import sys; sys.exit(3)", "failed", "3"),
    "sys.exit('a sentence')": ("import sys; sys.exit('a sentence')", "failed", "a sentence"),
    "os._exit(0)": ("import os; os._exit(0)", "completed", ""),
    "os._exit(7)": ("import os; os._exit(7)", "failed", "7"),
    "an exception": ("raise ValueError('it broke')", "failed", "it broke"),
    "a very long exception": ("raise ValueError('x' * 1_000_000)", "failed", "xxx"),
    "an exception of bytes": ("raise ValueError(b'\\xff\\xfe' * 10)", "failed", "ValueError"),
    "a syntax error": ("def (", "failed", "SyntaxError"),
    "SIGKILL to itself": ("import os; os.kill(os.getpid(), 9)", "failed", "SIGKILL"),
    "SIGSEGV to itself": ("import os; os.kill(os.getpid(), 11)", "failed", "SIGSEGV"),
    "SIGTERM to itself": ("import os; os.kill(os.getpid(), 15)", "failed", "SIGTERM"),
    "a real-time signal to itself": ("import os; os.kill(os.getpid(), 40)", "failed", "40"),
    "endless recursion": ("def f(): f()\nf()", "failed", "recursion"),
    "no memory": ("x = bytearray(10**15)", "failed", "MemoryError"),
    "an import that is not there": ("import no_such_module_here", "failed", "no_such_module_here"),
    "its output closed": ("import os; os.close(1); os.close(2)", "completed", ""),
    "10 MB of output": ("print('x' * 10_000_000)", "completed", ""),
    "output of noise": ("import os; os.write(1, bytes(range(256)) * 100)", "completed", ""),
    "events of its own": (
        'print(\'{"event": "run_failed", "run_id": "x", "seq": 1, "ts": 1, "payload": {}}\')',
        "completed",
        "",
    ),
    "an event file of noise": (
        "open('events.out.tfevents.1.x', 'wb').write(bytes(range(256)) * 99)",
        "completed",
        "",
    ),
    "a manifest of its own": ("open('analytics.json', 'w').write('[' * 9999)", "completed", ""),
    "no folder any more": ("import os, shutil; shutil.rmtree(os.getcwd())", "failed", "was removed"),
}
ENVIRONMENTS: dict[str, tuple[str, str]] = {
    "sys.exit(0) in step": ("import sys; sys.exit(0)", "Bad-v0"),
    "os._exit(0) in step": ("import os; os._exit(0)", ""),
    "os._exit(3) in step": ("import os; os._exit(3)", "3"),
    "SIGKILL in step": ("import os; os.kill(os.getpid(), 9)", "SIGKILL"),
    "an exception in step": ("raise ValueError('the door is stuck')", "the door is stuck"),
    "a NaN reward": ("reward = float('nan')", "reward"),
    "an infinite reward": ("reward = float('inf')", "reward"),
    "a reward of None": ("reward = None", "reward"),
    "a reward that is a text": ("reward = 'much'", "reward"),
    "an infinite observation": ("observation[0] = float('inf')", "observation"),
    "a NaN observation": ("observation[0] = float('nan')", "observation"),
    "no observation": ("observation = None", "observation"),
    "an observation of another shape": ("observation = observation[:2]", "observation"),
    "an answer of None": ("return None", "Bad-v0"),
    "an answer of two": ("return observation, reward", "Bad-v0"),
}
ENVIRONMENT = """import gymnasium as gym
import numpy as np

class Bad(gym.Env):
    observation_space = gym.spaces.Box(-9.0, 9.0, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(4, np.float32), {{}}

    def step(self, action):
        self.steps += 1
        observation, reward = np.full(4, 0.1, np.float32), 1.0
        if self.steps == 40:
            {fault}
        return observation, reward, self.steps >= 50, False, {{}}

gym.register("Bad-v0", Bad)
"""


def checks(ground: Ground) -> Iterator[Check]:
    """Scripts of others."""
    for name, (code, outcome, word) in SCRIPTS.items():
        yield Check(
            f"a script with {name}",
            lambda code=code, outcome=outcome, word=word: _script(ground, code, outcome, word),
        )
    for suffix, text in {
        "exit 0": "completed",
        "exit 3": "failed",
        "kill -9 $$": "failed",
        "nonsense_command_x": "failed",
    }.items():
        yield Check(
            f"a shell script: {suffix}", lambda suffix=suffix, text=text: _shell(ground, suffix, text)
        )
    for name, act in {
        "stopped and continued": _stop_and_continue,
        "stopped and continued three times": lambda pid: [_stop_and_continue(pid) for _ in range(3)],
    }.items():
        for restarts in ("0", "2"):
            yield Check(
                f"a script {name} from outside, {restarts} restarts",
                lambda act=act, restarts=restarts: _stopped(ground, act, restarts),
            )
    yield Check("the daemon's log tells of no error of its own", lambda: _log(ground))


def _stop_and_continue(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(1.5)
    os.kill(pid, signal.SIGCONT)
    time.sleep(0.5)


def _script(ground: Ground, code: str, outcome: str, word: str) -> None:
    (ground.user / "script.py").write_text(code + "\n")
    run = ground.finish("script.py", "CartPole-v1")
    expect(run["outcome"] == outcome, f"{run['outcome']} ({run['reason']!r:.200})")
    expect(
        word.lower() in str(run["reason"]).lower(), f"{word!r} is not in the reason {run['reason']!r:.300}"
    )
    expect(len(str(run["reason"])) < 2000, f"a reason of {len(str(run['reason']))} letters")
    quiet(ground.mosaic("show", str(run["run_id"])))


def _shell(ground: Ground, code: str, outcome: str) -> None:
    (ground.user / "script.sh").write_text(f"#!/bin/bash\necho begins\n{code}\n")
    run = ground.finish("script.sh")
    expect(run["outcome"] == outcome, f"{run['outcome']} ({run['reason']!r:.200})")


def _stopped(ground: Ground, act: Callable[[int], Any], restarts: str) -> None:
    (ground.user / "slow.py").write_text(
        "import time\nend = time.monotonic() + 6\nwhile time.monotonic() < end: time.sleep(0.1)\n"
    )
    run_id = ground.start("slow.py", "CartPole-v1", "--max-restarts", restarts)
    run = ground.until(run_id, lambda one: bool(one["training_pid"]) and one["status"] == "EXEC")
    act(int(run["training_pid"]))
    run = ground.until(run_id, lambda one: one["status"] == "TERM")
    expect(run["outcome"] == "completed", f"{run['outcome']} ({run['reason']})")
    starts = sum(entry["status"] == "HSHK" for entry in run["history"])
    expect(starts == 1, f"it was started {starts} times")


def _log(ground: Ground) -> None:
    log = ground.client().paths.daemon_log.read_text(errors="replace")
    expect("Traceback" not in log, log[log.find("Traceback") :][:600])


def environment_checks(ground: Ground) -> Iterator[Check]:
    """Environments that break a training, or that lie to it."""
    for name, (fault, word) in ENVIRONMENTS.items():
        yield Check(
            f"an environment with {name}",
            lambda name=name, fault=fault, word=word: _environment(ground, name, fault, word),
        )
    yield Check("an environment that hangs is shown as stalled", lambda: _hangs(ground))
    yield Check("a budget below learning_starts is told of before the start", lambda: _learns_nothing(ground))
    for name, code in SPACES.items():
        yield Check(f"an environment with {name}", lambda name=name, code=code: _space(ground, name, code))


SPACES = {
    "a Box with low = high": "gym.spaces.Box(1.0, 1.0, (2,), np.float32)",
    "a Box of no numbers": "gym.spaces.Box(-1.0, 1.0, (0,), np.float32)",
    "an action space of one action": "gym.spaces.Discrete(1)",
    "a text for an action": "gym.spaces.Text(5)",
}


def _environment(ground: Ground, name: str, fault: str, word: str) -> None:
    module = "bad_" + "".join(letter if letter.isalnum() else "_" for letter in name).lower()
    (ground.user / f"{module}.py").write_text(ENVIRONMENT.format(fault=fault))
    words = ("ppo", f"{module}:Bad-v0", "--steps", "1000", "--set", "num_steps=64")
    run = ground.finish(*words)
    expect(run["outcome"] == "failed", f"{run['outcome']} after {run['headline'].get('step')} steps")
    said = str(run["reason"])
    expect(word.lower() in said.lower(), f"{word!r} is not in the reason {said!r:.300}")
    expect("learning rate" not in said, f"the learning rate is blamed: {said!r:.300}")


def _hangs(ground: Ground) -> None:
    (ground.user / "hanging.py").write_text(ENVIRONMENT.format(fault="import time; time.sleep(600)"))
    words = ("ppo", "hanging:Bad-v0", "--steps", "1000", "--set", "num_steps=64")
    run_id = ground.start(*words, "--env", "MOSAIC_STALL_SECONDS=5")
    deadline = time.monotonic() + PATIENCE
    try:
        while time.monotonic() < deadline:
            shown = quiet(ground.mosaic("show", run_id)).out.lower()
            if "stall" in shown:
                expect(
                    "step" in shown and "hanging.py" in shown, f"no Python stack is shown: {shown[-400:]!r}"
                )
                return
            time.sleep(2)
        expect(False, f"it is shown as {shown[:300]!r}")
    finally:
        ground.mosaic("cancel", run_id)


def _learns_nothing(ground: Ground) -> None:
    done = quiet(ground.mosaic("train", "dqn", "CartPole-v1", "--steps", "500", "--dry-run"))
    expect("learning_starts" in done.out + done.err, done.seen())


def _space(ground: Ground, name: str, code: str) -> None:
    module = "space_" + "".join(letter if letter.isalnum() else "_" for letter in name).lower()
    text = ENVIRONMENT.format(fault="pass").replace(
        "action_space = gym.spaces.Discrete(2)", f"action_space = {code}"
    )
    (ground.user / f"{module}.py").write_text(text)
    algo = "ppo_continuous_action" if "Box" in code else "ppo"
    words = ("train", algo, f"{module}:Bad-v0", "--steps", "4000")
    dry = quiet(ground.mosaic(*words, "--dry-run"))
    if dry.code == 0:
        # What the dry run has passed, the run must do.
        run = ground.finish(
            *words[1:], "--set", "num_steps=64", "--set", "num_minibatches=4", seconds=PATIENCE
        )
        expect(run["outcome"] == "completed", f"passed the dry run, then {run['outcome']}: {run['reason']}")
        return
    expect(dry.code == 2 and len(dry.err.strip().splitlines()) == 1, dry.seen())
