"""Saved policies are played batch by batch: the same episodes each time, all results in files."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cleanrl_worker.algorithms import ppo
from cleanrl_worker.evaluation import evaluate_policy
from cleanrl_worker.evaluation.episodes import FIRST_SEED, PlayedEpisode
from cleanrl_worker.evaluation.evaluate_policy import EvalSettings, run_batched_evaluation
from cleanrl_worker.evaluation.models import SavedModel, open_model
from cleanrl_worker.evaluation.record import score
from mosaic.analytics import statistics
from mosaic.analytics.eval_summary import EvalSummary, read_eval_summary
from mosaic.analytics.store import RunMetrics
from mosaic.contract.errors import UserError

TRAINING = ("--num-steps=50", "--total-timesteps=200", "--seed=3", "--eval-episodes=0")


def train(folder: Path, monkeypatch: pytest.MonkeyPatch, *flags: str) -> tuple[Path, Path]:
    """The model and the full checkpoint that a short training leaves."""
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(folder)
    assert ppo.main([*TRAINING, *flags]) == 0
    (model,) = folder.glob("runs/*/ppo.cleanrl_model")
    return model, sorted(folder.glob("checkpoints/step-*.npz"))[-1]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SavedModel:
    """A policy for CartPole that is hardly trained: its episodes are short, and all differ."""
    return open_model(train(tmp_path / "trained", monkeypatch)[0])


def play(folder: Path, model: SavedModel, settings: EvalSettings, **more: Any) -> EvalSummary:
    folder.mkdir(exist_ok=True)
    return run_batched_evaluation(model, settings, folder, **more)


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "eval_episodes.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def without_times(summary: EvalSummary) -> EvalSummary:
    batches = tuple(dataclasses.replace(batch, duration_seconds=0.0) for batch in summary.batches)
    overall = dataclasses.replace(summary.overall, duration_seconds=0.0)
    return dataclasses.replace(summary, overall=overall, batches=batches)


def test_every_number_of_the_summary_follows_from_the_episodes(tmp_path: Path, model: SavedModel) -> None:
    settings = EvalSettings(episodes=25, batch_size=10, gamma=0.5, seed=7)
    summary = play(tmp_path, model, settings)
    assert read_eval_summary(tmp_path) == summary
    rows = rows_of(tmp_path)
    assert [int(row["seed"]) for row in rows] == list(range(FIRST_SEED + 7, FIRST_SEED + 32))
    assert [batch.episodes for batch in summary.batches] == [10, 10, 5]
    parts = (rows[:10], rows[10:20], rows[20:], rows)
    for scores, part in zip((*summary.batches, summary.overall), parts, strict=True):
        returns = np.array([float(row["total_reward"]) for row in part])
        assert scores.episodes == len(part)
        assert scores.mean == pytest.approx(returns.mean())
        assert (scores.median, scores.min, scores.max) == (np.median(returns), returns.min(), returns.max())
        assert scores.std == pytest.approx(returns.std())
        assert scores.interval[0] < scores.mean < scores.interval[1]
        assert scores.iqm == pytest.approx(float(statistics.iqm([returns])))
        # In CartPole each step earns 1, so that a return is a length.
        assert scores.steps == returns.sum() and scores.mean_length == scores.mean
        expected = np.mean([(1 - 0.5**length) / (1 - 0.5) for length in returns])
        assert scores.discounted_mean == pytest.approx(expected)
        assert scores.cut_off == 0
    raw = json.loads((tmp_path / "eval_summary.json").read_text())
    assert (raw["batch"], raw["episodes"], len(raw["batches"])) == (3, 5, 3)

    table = RunMetrics.open(tmp_path / "tensorboard_eval")
    assert list(table.series("eval/episodic_return").values) == [float(row["total_reward"]) for row in rows]
    assert list(table.series("eval/mean_return").steps) == [10, 20, 25]
    assert table.series("eval/mean_return").values[-1] == pytest.approx(summary.batches[-1].mean)
    assert not list(tmp_path.rglob("*.mp4"))


def test_two_evaluations_are_the_same_however_many_environments_play(
    tmp_path: Path, model: SavedModel
) -> None:
    tables = []
    for name, settings in {
        "whole": EvalSettings(episodes=12, batch_size=12),
        "batches": EvalSettings(episodes=12, batch_size=5),
        "one": EvalSettings(episodes=12, batch_size=12, num_envs=1),
    }.items():
        play(tmp_path / name, model, settings)
        tables.append(rows_of(tmp_path / name))
    assert tables[0] == tables[1] == tables[2]


def test_drawn_actions_are_other_actions_and_the_same_each_time(tmp_path: Path, model: SavedModel) -> None:
    best = EvalSettings(episodes=10, batch_size=10)
    drawn = dataclasses.replace(best, deterministic=False)
    found = [without_times(play(tmp_path / name, model, how)) for name, how in (("a", drawn), ("b", drawn))]
    assert found[0] == found[1]
    assert found[0].overall.mean != play(tmp_path / "c", model, best).overall.mean


def stop_after(batches: int) -> Callable[[EvalSummary], None]:
    def report(summary: EvalSummary) -> None:
        if summary.overall.batch == batches:
            raise KeyboardInterrupt

    return report


def test_after_a_fault_an_evaluation_goes_on_with_the_next_batch(tmp_path: Path, model: SavedModel) -> None:
    settings = EvalSettings(episodes=20, batch_size=4)
    whole = play(tmp_path / "whole", model, settings)
    parts = tmp_path / "parts"
    with pytest.raises(KeyboardInterrupt):
        play(parts, model, settings, report=stop_after(2))
    with (parts / "eval_episodes.csv").open("a") as file:
        file.write("8,1000009,of a batch that was cut sho")
    with pytest.raises(KeyboardInterrupt):
        play(parts, model, settings, report=stop_after(4))
    assert without_times(play(parts, model, settings)) == without_times(whole)
    assert rows_of(parts) == rows_of(tmp_path / "whole")
    curves = [
        RunMetrics.open(folder / "tensorboard_eval").series("eval/episodic_return")
        for folder in (parts, tmp_path / "whole")
    ]
    assert curves[0].steps.tolist() == curves[1].steps.tolist()
    assert curves[0].values.tolist() == curves[1].values.tolist()


def test_files_of_another_evaluation_are_begun_anew(tmp_path: Path, model: SavedModel) -> None:
    play(tmp_path, model, EvalSettings(episodes=4, batch_size=2))
    other = play(tmp_path, model, EvalSettings(episodes=2, batch_size=2, seed=9))
    assert (other.overall.episodes, len(other.batches)) == (2, 1)
    assert len(rows_of(tmp_path)) == 2


def test_it_repeats_until_somebody_stops_it(tmp_path: Path, model: SavedModel) -> None:
    settings = EvalSettings(episodes=2, batch_size=3, repeat=True)
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, model, settings, report=stop_after(4))
    summary = read_eval_summary(tmp_path)
    assert summary is not None and summary.target_episodes is None
    assert (summary.overall.episodes, summary.overall.batch) == (12, 4)
    seeds = [int(row["seed"]) for row in rows_of(tmp_path)]
    assert len(set(seeds)) == 12, "each batch plays episodes of its own"


def test_episodes_are_cut_off_by_steps_and_by_time(
    tmp_path: Path, model: SavedModel, capfd: pytest.CaptureFixture[str]
) -> None:
    short = EvalSettings(episodes=5, batch_size=5, max_episode_steps=4)
    summary = play(tmp_path / "steps", model, short)
    assert (summary.overall.cut_off, summary.overall.mean) == (5, 4.0)
    assert capfd.readouterr().err == "5 of 5 episodes were truncated after 4 steps.\n"
    hasty = EvalSettings(episodes=500, batch_size=50, num_envs=3, max_seconds=0.0)
    summary = play(tmp_path / "time", model, hasty)
    assert (summary.overall.episodes, summary.overall.cut_off) == (3, 3)
    assert "or when 0 s were over" in capfd.readouterr().err


def test_videos_are_written_only_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: SavedModel
) -> None:
    pytest.importorskip("av")
    pytest.importorskip("pygame")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLEANRL_RUN_ID", "RUN")
    flags = [f"--policy-path={model.name}", "--eval-episodes=9", "--eval-batch-size=6"]
    assert evaluate_policy.main([*flags, "--eval-capture-video"]) == 0
    films = sorted(path.name for path in Path("videos/RUN-eval").iterdir())
    first = FIRST_SEED + 3
    assert films == [f"episode-{n}-seed-{first + n}.mp4" for n in (0, 1, 8)]
    filmed = rows_of(tmp_path)
    (tmp_path / "plain").mkdir()
    monkeypatch.chdir(tmp_path / "plain")
    assert evaluate_policy.main(flags) == 0
    assert rows_of(Path()) == filmed, "being filmed changes nothing"
    assert not Path("videos").exists()


def test_the_script_plays_the_policy_that_it_took_even_when_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, checkpoint = train(tmp_path / "trained", monkeypatch)
    run = tmp_path / "run"
    run.mkdir()
    monkeypatch.chdir(run)
    monkeypatch.setenv("CLEANRL_RUN_ID", "RUN")
    flags = [f"--policy-path={path}", "--eval-episodes=4", "--eval-batch-size=2"]
    assert evaluate_policy.main(flags) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in said] == ["batch 1", "batch 2"]
    first = rows_of(run)
    path.unlink()
    (run / "eval_summary.json").unlink()
    assert evaluate_policy.main(flags) == 0
    assert rows_of(run) == first
    summary = read_eval_summary(run)
    assert summary is not None and summary.policy["path"] == str(path)

    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    older = checkpoint.with_name("step-000000000001.npz")
    assert evaluate_policy.main([f"--policy-path={older}", "--eval-episodes=2"]) == 0
    assert f"{checkpoint.name} is evaluated instead" in capsys.readouterr().err
    assert evaluate_policy.main([f"--policy-path={tmp_path / 'none.cleanrl_model'}"]) == 2
    assert "There is no policy" in capsys.readouterr().err


def test_a_policy_is_not_played_where_it_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in train(tmp_path / "trained", monkeypatch):
        other = open_model(path, env_id="Acrobot-v1")
        with pytest.raises(UserError, match="is not a model of ppo for Acrobot-v1: "):
            play(tmp_path, other, EvalSettings(episodes=1, batch_size=1))
    with pytest.raises(UserError, match="is of ppo, not of dqn"):
        open_model(path, algo="dqn")


def test_keyword_arguments_stay_with_the_environment_of_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kwargs = '{"sutton_barto_reward": true}'
    for path in train(tmp_path / "trained", monkeypatch, f"--env-kwargs={kwargs}"):
        assert open_model(path).args.env_kwargs == kwargs
        assert open_model(path, env_id="CartPole-v1").args.env_kwargs == kwargs
        assert open_model(path, env_kwargs="{}").args.env_kwargs == "{}"
        assert open_model(path, env_id="CartPole-v0").args.env_kwargs == "{}"
        summary = play(tmp_path / path.suffix[1:], open_model(path), EvalSettings(episodes=3, batch_size=3))
        assert summary.overall.max <= 0.0, "with these a step earns nothing, and the end of an episode -1"
        assert summary.policy["env_kwargs"] == {"sutton_barto_reward": True}


def interval_of(returns: NDArray[np.float64]) -> tuple[float, float]:
    return score([PlayedEpisode(value, 1, value, False) for value in returns.tolist()], 1, 1.0).interval


def test_an_interval_is_as_wide_as_the_mean_is_unsure() -> None:
    values = np.random.default_rng(1).normal(10.0, 2.0, 400)
    low, high = interval_of(values)
    assert high - low == pytest.approx(2 * 1.96 * values.std() / math.sqrt(400), rel=0.1)
    # A report that is made of the same episodes says the same.
    whole = statistics.interval([values])
    assert (low, high) == (whole.low, whole.high)
    assert interval_of(np.full(3, 5.0)) == (5.0, 5.0)
    many = np.random.default_rng(1).exponential(3.0, 20_001)
    assert interval_of(many) == pytest.approx(interval_of(many[:-1]), rel=0.005)


def test_a_return_that_is_not_finite_leaves_the_mean_unsure() -> None:
    assert all(map(math.isnan, interval_of(np.array([1.0, math.inf, 3.0]))))
