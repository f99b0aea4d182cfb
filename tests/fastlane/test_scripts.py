"""Any script's environments can be watched, and the script sees nothing of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import cleanrl_worker
from cleanrl_worker.config.live import LiveFrames, LiveSettings
from mosaic.fastlane.grid import LiveGrid
from mosaic.fastlane.layout import FOLDER_VARIABLE
from mosaic.fastlane.reader import SlotStatus
from support.runs import SCRIPTS

SITE = Path(cleanrl_worker.__file__).parent / "portable" / "site"
FOREVER = ("--steps", "1000000", "--pause", "0.001")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


class Playing:
    """tests/scripts/plays.py while it runs, with live frames."""

    def __init__(self, *flags: str, settings: LiveSettings | None = None, shell: bool = False) -> None:
        self._live = LiveFrames("RUN", settings or LiveSettings())
        command = [sys.executable, str(SCRIPTS / "plays.py"), *flags]
        if shell:
            command = ["sh", "-c", '"$@"; true', "sh", *command]
        self._process = subprocess.Popen(
            command,
            env=self._live.add_to(os.environ, None),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.grid = LiveGrid("RUN")

    def __enter__(self) -> Playing:
        return self

    def finish(self) -> tuple[list[Any], str]:
        """What it printed, as JSON lines, and its error output."""
        out, err = self._process.communicate(timeout=60)
        assert self._process.returncode == 0, err
        return [json.loads(line) for line in out.splitlines()], err

    def look_until(self, condition: Any) -> None:
        """Look as a viewer does, until `condition(grid)`."""
        deadline = time.monotonic() + 60
        while not condition(self.grid):
            assert time.monotonic() < deadline and self._process.poll() is None, self.grid.status()
            self.grid.look()
            time.sleep(0.005)

    def __exit__(self, *exc: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, 9)
            self._process.communicate()
        self.grid.close()
        self._live.close()


def pictures(count: int) -> Any:
    return lambda grid: len(grid.shown) == count


def test_nothing_is_drawn_while_nobody_looks() -> None:
    with Playing("--steps", "3000") as playing:
        _, drawn = playing.finish()[0]
    assert drawn == {"drawn": 0}


@pytest.mark.parametrize("shell", [False, True], ids=["script", "shell script"])
def test_a_viewer_sees_the_environment_of_a_plain_script(shell: bool) -> None:
    with Playing(*FOREVER, shell=shell) as playing:
        playing.look_until(lambda grid: grid.metrics() is not None and grid.metrics().step_rate_hz > 0)
        picture, metrics = playing.grid.picture(), playing.grid.metrics()
        assert picture.shape == (40, 60, 3)
        assert (picture == picture[0, 0, 0]).all()
        assert metrics is not None
        assert (metrics.last_reward, metrics.rolling_return) == (1.0, 10.0)
        assert playing.grid.status() == SlotStatus("live")


def test_the_second_picture_already_has_the_step_rate() -> None:
    rates: dict[tuple[int, int], float] = {}

    def seen(grid: LiveGrid) -> bool:
        rates.update({(slot, frame.number): frame.step_rate_hz for slot, frame in grid.frames().items()})
        return len(rates) > 8

    with Playing(*FOREVER, "--vector", "sync", "--num-envs", "2") as playing:
        playing.look_until(seen)
    later = [rate for (_, number), rate in rates.items() if number > 1]
    assert all(0.0 < rate < 100_000.0 for rate in later), rates


@pytest.mark.parametrize("vector", ["sync", "async"])
def test_every_environment_of_a_vector_has_a_slot(vector: str) -> None:
    with Playing(*FOREVER, "--vector", vector, "--num-envs", "8") as playing:
        playing.look_until(pictures(8))
        assert playing.grid.picture().shape == (2 * 42 - 2, 4 * 62 - 2, 3)


def test_single_shows_the_chosen_environment_only() -> None:
    settings = LiveSettings("single", slot=2)
    with Playing(*FOREVER, "--vector", "sync", "--num-envs", "4", settings=settings) as playing:
        playing.look_until(pictures(1))
        assert playing.grid.shown == [2]


def test_a_grid_has_its_limit() -> None:
    settings = LiveSettings("grid", limit=3)
    with Playing(*FOREVER, "--vector", "sync", "--num-envs", "5", settings=settings) as playing:
        playing.look_until(pictures(3))
        assert playing.grid.shown == [0, 1, 2]


@pytest.mark.parametrize("mode", [None, "rgb_array", "rgb_array_list"])
def test_the_script_sees_what_it_asked_for(mode: str | None) -> None:
    asked = [] if mode is None else ["--render-mode", mode]
    command = [sys.executable, str(SCRIPTS / "plays.py"), "--steps", "20", *asked]
    alone = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    with Playing("--steps", "20", *asked) as playing:
        seen, _ = playing.finish()[0]
    assert seen == json.loads(alone.splitlines()[0])


@pytest.mark.parametrize(
    ("env_id", "reason"), [("Blind-v0", "cannot render"), ("Broken-v0", "RuntimeError: no screen")]
)
def test_an_environment_without_a_picture_says_so_once_and_plays_on(env_id: str, reason: str) -> None:
    with Playing("--env-id", env_id, "--steps", "2000", "--pause", "0.001") as playing:
        playing.look_until(lambda grid: grid.status().state == "no picture")
        assert reason in playing.grid.status().reason
        printed, errors = playing.finish()
    assert printed[-1] == {"drawn": 0}
    assert errors.count("FastLane: no picture of") == 1


def test_the_users_own_sitecustomize_still_runs(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("print('mine', flush=True)\n")
    live = LiveFrames("RUN", LiveSettings())
    environment = live.add_to({**os.environ, "PYTHONPATH": str(own)}, None)
    command = [sys.executable, "-c", "import gymnasium; print(gymnasium.make.__wrapped__ is not None)"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    live.close()
    assert done.stdout.split() == ["mine", "True"]


def test_off_shows_nothing() -> None:
    live = LiveFrames("RUN", LiveSettings("off"))
    environment = live.add_to({"A": "b", "CLEANRL_FASTLANE_SEGMENT": "another run's"}, None)
    # Without the segment, what lies there only finds the user's modules.
    assert environment == {"A": "b", "PYTHONPATH": str(SITE)}


def test_another_interpreter_gets_live_frames_and_nothing_else_of_ours(tmp_path: Path) -> None:
    live = LiveFrames("RUN", LiveSettings())
    bare = {name: os.environ[name] for name in ("PATH", FOLDER_VARIABLE)}
    environment = live.add_to(bare, tmp_path / "bridge")
    code = (
        "import sys; sys.path = [entry for entry in sys.path if '/src' not in entry]\n"
        "import importlib.util as u, cleanrl_worker.portable.fastlane, mosaic.fastlane\n"
        "print([name for name in ('mosaic.contract', 'cleanrl_worker.config') if u.find_spec(name)])"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    live.close()
    assert done.stdout.strip() == "[]", done.stderr
