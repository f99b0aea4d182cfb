"""Checkpoint files as a light process sees them: found, read as far as needed, refused, taken over."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cleanrl_worker.config.checkpoint_files import (
    FORMAT,
    find_origin,
    list_checkpoints,
    locate,
    read_origin,
    take_over,
)
from cleanrl_worker.kit.replay import ReplayBuffer
from cleanrl_worker.kit.state import decode, encode
from mosaic.contract.errors import MosaicError, NotFoundError, StorageError, UserError
from support.policies import write_empty_model

ARGS = {"env_id": "CartPole-v1", "seed": 1, "total_timesteps": 1000, "num_envs": 4}


def write_checkpoint(path: Path, **changes: Any) -> Path:
    content = {"format": FORMAT, "algo": "ppo", "step": 400, "folder": "x", "args": ARGS, "parts": {}}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(content | changes))
    return path


def test_a_run_its_folder_and_a_file_all_lead_to_a_checkpoint(var: Path) -> None:
    run = var / "trainer" / "runs" / "01M7GQSDCWR4EQKC56C5QQCNPM"
    old = write_checkpoint(run / "checkpoints" / "step-000000000200.npz", step=200)
    new = write_checkpoint(run / "checkpoints" / "step-000000000400.npz")
    for name in (run.name, "01m7gqsd", str(run), str(run / "checkpoints"), str(new)):
        assert find_origin(locate(name, var)).path == new
    assert find_origin(locate("step-000000000200.npz", old.parent)).path == old
    found = find_origin(run)
    assert (found.algo, found.step, found.args["env_id"]) == ("ppo", 400, "CartPole-v1")
    with pytest.raises(NotFoundError, match="There is no checkpoint 'nowhere'"):
        locate("nowhere", var)


def test_a_folder_without_checkpoints_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no full checkpoint in"):
        find_origin(tmp_path)


def test_a_model_tells_what_lies_beside_it(tmp_path: Path) -> None:
    model = tmp_path / "ppo.cleanrl_model"
    write_empty_model(model)
    assert find_origin(model).algo is None
    card = {"format": 1, "algo": "ppo", "args": ARGS, "step": 1000, "normaliser": None}
    (tmp_path / "ppo.policy.json").write_text(json.dumps(card))
    found = find_origin(model)
    assert (found.algo, found.step, found.args["num_envs"]) == ("ppo", None, 4)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_checkpoint_is_refused(tmp_path: Path, share: float) -> None:
    path = write_checkpoint(tmp_path / "step-000000000400.npz", parts={"loop": {"obs": np.arange(500.0)}})
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(StorageError, match="is not a checkpoint, or is a broken one"):
        find_origin(path)


def test_a_checkpoint_with_a_changed_byte_is_refused(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path / "step-000000000400.npz", parts={"loop": {"obs": np.arange(500.0)}})
    data = bytearray(path.read_bytes())
    at = data.index(np.float64(250.0).tobytes())
    data[at] ^= 255
    path.write_bytes(data)
    with pytest.raises(StorageError, match="is broken"):
        find_origin(path)


def test_a_foreign_file_and_another_format_are_refused(tmp_path: Path) -> None:
    foreign = tmp_path / "step-000000000001.npz"
    np.savez(foreign, weights=np.ones(3))
    with pytest.raises(StorageError, match="is not a MOSAIC checkpoint"):
        find_origin(foreign)
    array = tmp_path / "step-000000000002.npz"
    with array.open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(StorageError, match="is not a checkpoint, or is a broken one"):
        find_origin(array)
    later = write_checkpoint(tmp_path / "step-000000000003.npz", format=FORMAT + 1)
    with pytest.raises(StorageError, match=f"has format {FORMAT + 1}, this release knows {FORMAT}"):
        find_origin(later)
    odd = write_checkpoint(tmp_path / "step-000000000004.npz", args=None)
    with pytest.raises(StorageError, match="is not a MOSAIC checkpoint"):
        find_origin(odd)


def test_names_of_files_outside_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    chunks = ["../../secret", "/etc/passwd", "replay/../x.npz", "replay/chunk-00000000.npz"]
    path = write_checkpoint(
        tmp_path / "step-000000000400.npz", folder="../../elsewhere", parts={"buffer": {"chunks": chunks}}
    )
    found = read_origin(path)
    assert (found.chunks, found.folder) == (("replay/chunk-00000000.npz",), "elsewhere")
    with pytest.raises(StorageError, match=r"needs .*chunk-00000000.npz, which is not there"):
        find_origin(path)


def test_taking_over_leaves_the_other_folder_alone_and_outlives_it(tmp_path: Path) -> None:
    theirs, own = tmp_path / "theirs", tmp_path / "own"
    chunk = theirs / "replay" / "chunk-00000000.npz"
    parts = {"buffer": {"chunks": ["replay/chunk-00000000.npz"]}}
    best = write_checkpoint(theirs / "best.npz", parts=parts)
    chunk.parent.mkdir()
    chunk.write_bytes(b"chunk")
    (chunk.parent / "chunk-00000001.npz").write_bytes(b"later")
    before = sorted(theirs.rglob("*"))
    # Twice, as after a crash in the middle.
    for _ in range(2):
        taken = take_over(find_origin(best), own)
    assert sorted(theirs.rglob("*")) == before
    for path in before[::-1]:
        path.unlink() if path.is_file() else path.rmdir()
    assert taken == own / "step-000000000400.npz"
    assert find_origin(own).step == 400
    assert [path.name for path in (own / "replay").iterdir()] == ["chunk-00000000.npz"]
    assert not list(own.rglob(".*"))


def test_taking_over_from_another_file_system_copies(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as theirs:
        if os.stat(theirs).st_dev == tmp_path.stat().st_dev:
            pytest.skip("there is only one file system here")
        origin = find_origin(write_checkpoint(Path(theirs) / "step-000000000400.npz"))
        taken = take_over(origin, tmp_path / "own")
    assert find_origin(taken).step == 400


WRITES_WITHOUT_END = """
import contextlib
import itertools
from pathlib import Path
import numpy as np
from cleanrl_worker.kit import replay
from cleanrl_worker.kit.checkpoints import Checkpoints
from cleanrl_worker.kit.args import CommonArgs
from cleanrl_worker.kit.state import Held
from cleanrl_worker.kit.writer import RunWriter

replay.CHUNK = 500
args = CommonArgs()
checkpoints, buffer = Checkpoints("ppo", args), replay.ReplayBuffer(2000, (50,), (), seed=1)
parts = {"loop": Held(weights=np.zeros(300_000)), "buffer": buffer}
with contextlib.closing(RunWriter(args)) as writer:
    for step in itertools.count(1):
        for _ in range(300):
            buffer.add(np.full(50, buffer.total), np.zeros(50), 0, 0.0, False)
        checkpoints.save(step, writer, parts)
        checkpoints.save_best(step, writer, parts, step // 3)
"""


def test_a_kill_in_the_middle_of_writing_harms_no_checkpoint(tmp_path: Path) -> None:
    dice = random.Random(1)
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        process = subprocess.Popen([sys.executable, "-c", WRITES_WITHOUT_END], cwd=folder)
        while len(list_checkpoints(folder / "checkpoints")) < 2:
            assert process.poll() is None
            time.sleep(0.01)
        # The process does nothing but write: wherever it is killed, it is in the middle of it.
        time.sleep(dice.uniform(0.1, 0.5))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kept = list_checkpoints(folder / "checkpoints")
        assert len(kept) >= 2
        for path in (*kept, folder / "checkpoints" / "best.npz"):
            assert_comes_back(path)


def assert_comes_back(path: Path) -> None:
    from cleanrl_worker.kit import replay

    origin = find_origin(path)
    state = decode(path)["parts"]["buffer"]
    chunk, replay.CHUNK = replay.CHUNK, 500
    try:
        buffer = ReplayBuffer(2000, (50,), (), seed=1)
        buffer.fetch(path.parent, state)
        buffer.load(state)
        rows = buffer.sample(2000).obs[:, 0]
    finally:
        replay.CHUNK = chunk
    assert origin.step is not None
    assert buffer.total == origin.step * 300
    assert rows.min() >= max(0, buffer.total - 2000)
    assert rows.max() < buffer.total


def test_a_checkpoint_of_an_earlier_release_is_refused_with_the_way_to_go_on() -> None:
    path = Path(__file__).parents[1] / "data" / "checkpoints" / "ppo-format-2.npz"
    with pytest.raises(
        StorageError, match=r"is from an older release .*continue from the run's .cleanrl_model file"
    ):
        find_origin(path)


def test_every_refusal_is_one_of_ours(tmp_path: Path) -> None:
    """Whatever bytes a file holds, it is refused with a sentence."""
    dice = random.Random(3)
    path = write_checkpoint(tmp_path / "step-000000000400.npz")
    data = path.read_bytes()
    for _ in range(300):
        broken = bytearray(data)
        for _ in range(dice.randint(1, 5)):
            broken[dice.randrange(len(broken))] = dice.randrange(256)
        path.write_bytes(broken)
        try:
            find_origin(path)
        except MosaicError as error:
            assert str(error).endswith(".")
