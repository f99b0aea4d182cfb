"""The doors of files that others write: events, event files, checkpoints, models and their cards."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import struct
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from cleanrl_worker.config.checkpoint_files import FORMAT, find_origin
from cleanrl_worker.config.policy_files import each_policy, find_policy
from fuzz_doors.configs import RUN_ID
from fuzz_doors.knocking import Door
from fuzz_doors.shapes import as_text, damaged, json_texts, json_values, mutated, numbers, texts
from mosaic.analytics.artifacts import list_artifacts
from mosaic.analytics.eval_summary import EvalScores, read_eval_summary
from mosaic.analytics.event_files import EventReader, EventWriter
from mosaic.analytics.event_files.format import field, frame, varint
from mosaic.analytics.headline import HeadlineTracker
from mosaic.contract.errors import MosaicError
from mosaic.contract.events import LifecycleReader, last_event_seq, tail_events
from mosaic.contract.paths import RunPaths, VarPaths

HEADLINE = {
    "step": 100,
    "total_steps": 1000,
    "sps": 10.0,
    "last_return": 1.0,
    "mean_return": 2.0,
    "episodes": 3,
    "progress": 0.1,
    "phase": "training",
    "time_shares": {"env": 0.5},
    "script_phase": {"number": 1, "of": 2, "text": "doors"},
    "curriculum": {"stage": 1, "stages": 2, "env_id": "CartPole-v1", "progress": 0.5},
    "evaluation": {"target_episodes": 10, "batch": 1, "mean": 1.0, "std": 0.5, "min": 0.0, "max": 2.0},
}


def events(run_id: str) -> list[dict[str, Any]]:
    """A right event of each kind."""
    payloads = {
        "run_started": {"training_pid": 1, "phase": "importing"},
        "heartbeat": HEADLINE,
        "checkpoint_saved": {"path": "checkpoints/step-000000000400.npz", "step": 400},
        "run_completed": {"exit_code": 0, "headline": HEADLINE, "manifest": {}},
        "run_failed": {"exit_code": 1, "cause": "it broke", "headline": HEADLINE},
        "run_cancelled": {"exit_code": 143, "headline": {}},
    }
    return [
        {"event": kind, "run_id": run_id, "seq": 7, "ts": 1.5, "payload": payload}
        for kind, payload in payloads.items()
    ]


def event_lines(run_id: str) -> SearchStrategy[bytes]:
    """Lines for an event file: changed events, and anything else that is printed there."""
    line = st.one_of(
        mutated(events(run_id)).map(lambda event: as_text(event).encode()),
        json_texts.map(lambda text: text.encode(errors="replace").replace(b"\n", b" ")),
        st.binary(max_size=60),
    )
    return st.lists(line, min_size=1, max_size=4).map(lambda lines: b"\n".join(lines) + b"\n")


def _records() -> SearchStrategy[bytes]:
    """Records of an event file in their frames, right and wrong ones."""
    tags = st.one_of(
        st.sampled_from(["charts/episodic_return", "charts/SPS", "time/env", "eval/x", ""]), texts
    )
    numeral = st.integers(-(2**63), 2**64 - 1).map(varint)
    value = st.one_of(
        st.floats(width=32).map(lambda one: b"\x15" + struct.pack("<f", one)),
        st.binary(max_size=30).map(lambda tensor: field(8, tensor)),
        st.tuples(numeral, st.binary(max_size=9)).map(
            lambda two: field(8, b"\x08" + two[0] + field(4, two[1]))
        ),
        st.binary(max_size=20).map(lambda plugin: field(9, plugin)),
    )
    summary = st.tuples(tags, value).map(
        lambda two: field(5, field(1, field(1, two[0].encode(errors="replace")) + two[1]))
    )
    wall_time = st.floats().map(lambda one: b"\x09" + struct.pack("<d", one))
    step = numeral.map(lambda one: b"\x10" + one)
    session = st.sampled_from([b"", field(7, b"\x08\x01"), field(7, b"\x08\x02"), field(7, b"\xff")])
    event = st.tuples(wall_time, step, summary, session).map(b"".join)
    shuffled = st.lists(st.one_of(wall_time, step, summary, session), max_size=4).map(b"".join)
    return st.one_of(event, event, shuffled, st.binary(max_size=60)).map(frame)


def file_doors(folder: Path, var: Path) -> list[Door]:
    """Doors that read files; each example is one file."""
    return [*_event_doors(folder, var), *_policy_doors(folder, var)]


def _event_doors(folder: Path, var: Path) -> list[Door]:
    path, tracked = folder / "events.jsonl", folder / "scalars"
    shutil.rmtree(tracked, ignore_errors=True)
    with closing(EventWriter(tracked)) as writer:
        for step in range(6):
            writer.add_scalar("charts/episodic_return", float(step), step)
            writer.add_scalar("charts/SPS", 100.0, step)
    (written,) = tracked.iterdir()
    right = written.read_bytes()

    def lifecycle(data: bytes) -> None:
        path.write_bytes(data)
        for event in LifecycleReader(path).poll() + tail_events(path, 64):
            assert isinstance(event.seq, int) and isinstance(event.payload, dict)
        assert isinstance(last_event_seq(path), int)

    def scalars(data: bytes) -> None:
        written.write_bytes(data)
        reader, tracker = EventReader(tracked), HeadlineTracker(1000)
        for _ in range(3):
            chunks = reader.poll(5)
            tracker.update(chunks)
            for chunk in chunks:
                for series in chunk.series.values():
                    assert len(series.steps) == len(series.values) == len(series.wall_times)
        json.dumps(tracker.headline().as_json(), allow_nan=False)
        EventReader(tracked, reader.cursor()).poll()

    def side_files(example: tuple[str, bytes]) -> None:
        name, data = example
        run = RunPaths(folder / "run")
        run.run_dir.mkdir(exist_ok=True)
        (run.run_dir / name).write_bytes(data)
        for read in (read_eval_summary, list_artifacts):
            with contextlib.suppress(MosaicError):
                read(run.run_dir)

    whole = st.lists(_records(), max_size=6).map(b"".join)
    scores = {**dict.fromkeys((one.name for one in fields(EvalScores)), 1.0), "interval": [0.0, 1.0]}
    summary = {"format": 1, "policy": {}, "target_episodes": 3, "overall": scores, "batches": [scores]}
    side = st.one_of(
        mutated([summary, {"run_id": RUN_ID, "headline": HEADLINE, "files": []}]).map(
            lambda one: as_text(one).encode()
        ),
        json_texts.map(lambda text: text.encode(errors="replace")),
        st.binary(max_size=100),
    )
    return [
        Door("events", "lines of events.jsonl", event_lines(RUN_ID), lifecycle, folder),
        Door(
            "event files",
            "TensorBoard records, right and wrong, in right and damaged frames",
            st.one_of(whole, damaged([right]), st.binary(max_size=200)),
            scalars,
            folder,
        ),
        Door(
            "manifests and summaries",
            "analytics.json and eval_summary.json",
            st.tuples(st.sampled_from(["analytics.json", "eval_summary.json"]), side),
            side_files,
            folder,
        ),
    ]


def _checkpoints() -> SearchStrategy[bytes]:
    args = {"env_id": "CartPole-v1", "seed": 1, "total_timesteps": 1000, "num_envs": 4}
    array = {"__array__": "a0"}
    seen = {"mean": array, "var": array, "count": 5.0}
    parts = {
        "optimizer": {"weights": array},
        "normaliser": {"obs": seen, "returns": seen, "running": array},
        "buffer": {"chunks": ["replay/chunk-1.npz"]},
    }
    base = {
        "format": FORMAT,
        "algo": "ppo",
        "step": 400,
        "folder": "x",
        "args": args,
        "parts": parts,
        "score": 1.0,
    }

    def written(content: Any, header: bytes | None = None) -> bytes:
        array = io.BytesIO()
        np.save(array, np.frombuffer(as_text(content).encode(errors="replace"), dtype=np.uint8))
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as file:
            file.writestr("__shape__.npy", header if header is not None else array.getvalue())
            file.writestr("a0.npy", array.getvalue())
        return data.getvalue()

    plain = {**base, "parts": {}}
    return st.one_of(
        mutated([base, plain]).map(written),
        json_values.map(written),
        st.binary(max_size=80).map(lambda header: written(base, header)),
        damaged([written(base), written(plain)]),
        st.binary(max_size=100),
    )


def _policy_doors(folder: Path, var: Path) -> list[Door]:
    run = VarPaths(var).run(RUN_ID)
    run.checkpoints.mkdir(parents=True, exist_ok=True)
    models = run.event_files / "CartPole-v1__ppo__1__1"
    models.mkdir(parents=True, exist_ok=True)
    weights = [_weights("actor", 2), _weights("actor_mean", 1, "actor_logstd")]
    model, checkpoint = models / "ppo.cleanrl_model", run.checkpoints / "step-000000000400.npz"

    def read_all(path: Path) -> None:
        """All that a light process reads of a policy; each reader may refuse it."""
        readers: list[Callable[[], object]] = [
            lambda: find_origin(path),
            lambda: find_policy(str(path), folder, var),
            lambda: find_policy(RUN_ID, folder, var),
            lambda: [one.as_json() for one in each_policy(var)],
        ]
        for read in readers:
            with contextlib.suppress(MosaicError):
                json.dumps(read(), default=str)

    def enter_checkpoint(data: bytes) -> None:
        from cleanrl_worker.kit.state import decode

        checkpoint.write_bytes(data)
        try:
            read_all(checkpoint)
            decode(checkpoint)
            _open(checkpoint)
        finally:
            checkpoint.unlink()

    def enter_card(data: bytes) -> None:
        model.with_name("ppo.policy.json").write_bytes(data)
        model.write_bytes(weights[b"continuous" in data])
        read_all(model)
        _open(model)

    def enter_model(data: bytes) -> None:
        model.with_name("ppo.policy.json").unlink(missing_ok=True)
        model.write_bytes(data)
        read_all(model)
        _open(model)

    args = {"env_id": "CartPole-v1", "seed": 3, "total_timesteps": 1000, "num_envs": 4, "learning_rate": 0.1}
    normaliser = {"mean": [0.0] * 4, "var": [1.0] * 4, "count": 10.0, "clip": 10.0}
    cards = [
        {"format": 1, "algo": "ppo", "args": args, "step": 1000, "normaliser": None},
        {"format": 1, "algo": "ppo_continuous_action", "args": args, "step": 1000, "normaliser": normaliser},
    ]
    return [
        Door(
            "checkpoints",
            "full checkpoints: header, arrays and archive",
            _checkpoints(),
            enter_checkpoint,
            folder,
        ),
        Door(
            "policy cards",
            "the card beside a model",
            st.one_of(
                mutated(cards, st.one_of(json_values, numbers)).map(lambda one: as_text(one).encode()),
                damaged([as_text(one).encode() for one in cards]),
                json_texts.map(lambda text: text.encode(errors="replace")),
            ),
            enter_card,
            folder,
        ),
        Door("models", "model files", _models(), enter_model, folder),
    ]


def _weights(actor: str, actions: int, more: str = "") -> bytes:
    """A model that fits: a critic and an actor for four numbers, as `ppo` has them."""
    import torch

    layers = {}
    for name, last in (("critic", 1), (actor, actions)):
        for at, (inputs, outputs) in zip((0, 2, 4), ((4, 64), (64, 64), (64, last)), strict=True):
            layers[f"{name}.{at}.weight"] = torch.zeros(outputs, inputs)
            layers[f"{name}.{at}.bias"] = torch.zeros(outputs)
    if more:
        layers[more] = torch.zeros(1, actions)
    data = io.BytesIO()
    torch.save(layers, data)
    return data.getvalue()


def _models() -> SearchStrategy[bytes]:
    import torch

    # Threads that wait for each other take a hundred times as long for layers as small as these.
    torch.set_num_threads(1)

    def saved(weights: Any) -> bytes:
        data = io.BytesIO()
        torch.save(weights, data)
        return data.getvalue()

    keys = st.sampled_from(
        ["critic.0.weight", "actor.0.bias", "actor_mean.0.weight", "network.0.weight", "fc1.weight"]
    )
    tensors = st.lists(st.integers(0, 3), max_size=3).map(lambda shape: torch.zeros(shape))
    trees = st.recursive(
        st.one_of(tensors, st.integers(), texts, st.none()),
        lambda inner: st.one_of(
            st.dictionaries(st.one_of(keys, texts), inner, max_size=3), st.lists(inner, max_size=3)
        ),
        max_leaves=5,
    )
    return st.one_of(trees.map(saved), damaged([_weights("actor", 2)]), st.binary(max_size=100))


def _open(model: Path) -> None:
    """What the process does that plays a policy, on spaces that it did not ask for."""
    from gymnasium.spaces import Box, Discrete

    from cleanrl_worker.evaluation.models import open_model

    opened = open_model(model)
    action = Discrete(2) if "discrete" in opened.spec.action_spaces else Box(-1.0, 1.0, (1,))
    spaces: Any = SimpleNamespace(observation_space=Box(-1.0, 1.0, (4,)), action_space=action)
    opened.load_policy(spaces)
