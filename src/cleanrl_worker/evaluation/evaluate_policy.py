"""Evaluates a saved policy in the current folder: the script behind the mode `policy_eval`."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from cleanrl_worker.config.checkpoint_files import (
    CHECKPOINT_SUFFIX,
    card_path,
    link_or_copy,
    list_checkpoints,
)
from cleanrl_worker.config.modes import POLICY_EVAL
from cleanrl_worker.evaluation.episodes import EPISODE_CAP, FIRST_SEED, EpisodeFilms, Limits, evaluate
from cleanrl_worker.evaluation.models import SavedModel, open_model
from cleanrl_worker.evaluation.record import EvalRecord
from cleanrl_worker.kit.args import SEEDS, Bounds
from cleanrl_worker.kit.backend import find_backend
from cleanrl_worker.kit.envs import EpisodeEnvs
from cleanrl_worker.kit.parsing import parse_args
from cleanrl_worker.kit.stopping import StopSignals, run_script
from cleanrl_worker.kit.video import warn
from cleanrl_worker.portable import probe
from cleanrl_worker.portable.fastlane.drawing import choose_drawing
from mosaic.analytics.eval_summary import EvalSummary
from mosaic.analytics.film import require_av
from mosaic.contract.errors import NotFoundError, UserError

BATCH = 50
MOST_ENVS = 32
"""A network takes hardly longer for so many observations than for one; beyond, little is won."""
SELF_PLAY = (
    "The policy plays all players; the return of a game is the mean of theirs, which is about 0 in "
    "zero-sum games, however good the policy is."
)


@dataclass(frozen=True)
class EvalSettings:
    """How a policy is evaluated."""

    episodes: int = BATCH
    batch_size: int = BATCH
    repeat: bool = False
    """Play batches until somebody stops that."""
    deterministic: bool = True
    gamma: float = 0.99
    seed: int = 1
    """Episode n starts from `FIRST_SEED` + seed + n, as in evaluations while training."""
    num_envs: int | None = None
    max_episode_steps: int | None = None
    max_seconds: float | None = None
    video_folder: Path | None = None

    @property
    def first_seed(self) -> int:
        """That of the first episode."""
        return FIRST_SEED + self.seed

    def environments(self) -> int:
        """How many are played together: as many as is asked for, else so that all are busy to the end."""
        if self.num_envs is not None:
            return min(self.num_envs, self.batch_size)
        rounds = math.ceil(self.batch_size / MOST_ENVS)
        return math.ceil(self.batch_size / rounds)


def run_batched_evaluation(
    model: SavedModel,
    settings: EvalSettings,
    folder: Path,
    check_stop: Callable[[], None] = lambda: None,
    report: Callable[[EvalSummary], None] = lambda summary: None,
) -> EvalSummary:
    """Play all batches and leave the results in `folder`; `check_stop` may raise at any step.

    `report` is told of each batch once its files are written.
    """
    until = math.inf if settings.max_seconds is None else time.monotonic() + settings.max_seconds
    limits = Limits(settings.max_episode_steps, until, settings.gamma)
    target = None if settings.repeat else settings.episodes
    with contextlib.ExitStack() as stack:
        envs, films = stack.enter_context(_environments(model, settings))
        policy = model.load_policy(envs)
        notes = [*policy.notes, *([SELF_PLAY] if model.spec.several_players else [])]
        for note in notes:
            warn(note)
        told = {**describe(model, settings), "notes": notes}
        earned: dict[str, list[float]] = {}
        record = stack.enter_context(contextlib.closing(EvalRecord(folder, told, target)))
        summary = record.summary
        done = len(record.episodes)
        while summary is None or (time.monotonic() < until and (target is None or done < target)):
            size = settings.batch_size if target is None else min(settings.batch_size, target - done)
            if films is not None:
                films.first_number = done
            start, seed = time.monotonic(), settings.first_seed + done
            found = evaluate(policy, envs, size, seed, settings.deterministic, check_stop, limits, films)
            summary = record.add(found.episodes, time.monotonic() - start)
            for player, totals in found.players.items():
                earned.setdefault(player, []).extend(totals)
            done = len(record.episodes)
            report(summary)
    _say_what_was_cut(summary, settings)
    if earned:
        each = [f"{statistics.fmean(totals):.2f} for {player}" for player, totals in earned.items()]
        print(f"mean return of each player: {', '.join(each)}", flush=True)
    return summary


def describe(model: SavedModel, settings: EvalSettings) -> dict[str, Any]:
    """What is played and how, for the summary: two evaluations with the same of these can be compared."""
    return {
        "path": model.name,
        "algo": model.spec.name,
        "env_id": model.args.env_id,
        "env_kwargs": probe.parse_kwargs(model.args.env_kwargs),
        "step": model.step,
        "deterministic": settings.deterministic,
        "gamma": settings.gamma,
        "first_seed": settings.first_seed,
        "num_envs": settings.environments(),
        "max_episode_steps": settings.max_episode_steps,
    }


def _say_what_was_cut(summary: EvalSummary, settings: EvalSettings) -> None:
    cut = summary.overall.cut_off
    if cut:
        steps = settings.max_episode_steps or EPISODE_CAP
        why = f"after {steps:,} steps"
        if settings.max_seconds is not None:
            why += f" or when {settings.max_seconds:g} s were over"
        warn(f"{cut:,} of {summary.overall.episodes:,} episodes were truncated {why}.")


@contextlib.contextmanager
def _environments(
    model: SavedModel, settings: EvalSettings
) -> Iterator[tuple[EpisodeEnvs, EpisodeFilms | None]]:
    """The environments, and what films them if that is wanted and can be."""
    rate = None if settings.video_folder is None else _prepare_pictures(model)
    if settings.video_folder is None or rate is None:
        with model.make_envs(settings.environments()) as envs:
            yield envs, None
        return
    kwargs = {**probe.parse_kwargs(model.args.env_kwargs), "render_mode": "rgb_array"}
    args = dataclasses.replace(model.args, env_kwargs=json.dumps(kwargs))
    with dataclasses.replace(model, args=args).make_envs(settings.environments()) as envs:
        yield envs, EpisodeFilms(settings.video_folder, envs, rate)


def _prepare_pictures(model: SavedModel) -> float | None:
    """How many pictures per second of play has; None, with a word, when the environment draws none."""
    require_av("eval_capture_video")
    choose_drawing()
    try:
        env = probe.make_environment(model.args.env_id, probe.parse_kwargs(model.args.env_kwargs))
    except probe.ProbeError as error:
        raise UserError(str(error)) from error
    try:
        if "rgb_array" in env.metadata.get("render_modes", ()):
            return float(env.metadata.get("render_fps") or 30.0)
    finally:
        env.close()
    warn(f"Videos are off: {model.args.env_id} cannot draw pictures (it has no render mode 'rgb_array').")
    return None


OWN_FOLDER = Path("policy")
RUN_VARIABLE = "CLEANRL_RUN_ID"


@dataclass
class Args:
    """Evaluate a saved policy."""

    policy_path: str
    """a .cleanrl_model file or a full checkpoint"""
    algo: str | None = None
    """the algorithm it is of; else by its card, or by the names of its parameters"""
    env_id: str | None = None
    """the environment; else the one it was trained on"""
    env_kwargs: str | None = None
    """a JSON object with keyword arguments for the environment; else those it was trained with"""
    seed: Annotated[int | None, SEEDS] = None
    """episode n starts from 1,000,000 + seed + n; else the seed that it was trained with"""
    eval_episodes: Annotated[int | None, Bounds(minimum=1)] = None
    """how many episodes are played; else one batch"""
    eval_batch_size: Annotated[int | None, Bounds(minimum=1)] = None
    """after how many episodes the results are written; else 50"""
    eval_repeat: bool = False
    """play batches until the process is told to stop"""
    eval_capture_video: bool = False
    """record videos of some episodes to videos/<run>-eval/"""
    deterministic: bool = True
    """take the best action that is known; else draw one, as in training"""
    gamma: Annotated[float | None, Bounds(minimum=0.0, maximum=1.0)] = None
    """the discount of the discounted return; else that of the training"""
    num_envs: Annotated[int | None, Bounds(minimum=1)] = None
    """the number of environments played in parallel; else as many as are worth it"""
    max_episode_steps: Annotated[int | None, Bounds(minimum=1)] = None
    """the step after which an episode is truncated; else 30,000"""
    max_seconds: Annotated[float | None, Bounds(minimum=0.0)] = None
    """the time after which episodes are truncated and none starts; else there is no such time"""


def evaluate_policy(args: Args, stop: StopSignals) -> None:
    """Play the policy and leave the results in the current folder."""
    named = Path(args.policy_path).expanduser().absolute()
    path = take_policy(named) if RUN_VARIABLE in os.environ else named
    model = replace(open_model(path, args.algo, args.env_id, args.env_kwargs), name=str(named))
    settings = settings_of(args, model)
    find_backend(model.spec.backend)(settings.first_seed)
    run_batched_evaluation(model, settings, Path(), stop.check, _print_batch)


def settings_of(args: Args, model: SavedModel) -> EvalSettings:
    """What was asked for, with what the policy knows in place of what was not."""
    batch_size = args.eval_batch_size or min(args.eval_episodes or BATCH, BATCH)
    run = os.environ.get(RUN_VARIABLE, "policy")
    return EvalSettings(
        episodes=args.eval_episodes or batch_size,
        batch_size=batch_size,
        repeat=args.eval_repeat,
        deterministic=args.deterministic,
        gamma=float(getattr(model.args, "gamma", 0.99)) if args.gamma is None else args.gamma,
        seed=model.args.seed if args.seed is None else args.seed,
        num_envs=args.num_envs,
        max_episode_steps=args.max_episode_steps,
        max_seconds=args.max_seconds,
        video_folder=Path("videos") / f"{run}-eval" if args.eval_capture_video else None,
    )


def take_policy(path: Path) -> Path:
    """The policy in this folder too, so that a restart plays the same whatever becomes of the original."""
    for own in OWN_FOLDER.glob("*"):
        if own.suffix == path.suffix:
            return own.absolute()
    if not path.is_file() and path.suffix == CHECKPOINT_SUFFIX:
        # A run that still trains removes its older checkpoints.
        newer = list_checkpoints(path.parent)
        if newer:
            warn(f"{path.name} has been removed meanwhile; {newer[-1].name} is evaluated instead.")
            path = newer[-1]
    if not path.is_file():
        raise NotFoundError(f"There is no policy {path}.")
    if card_path(path).is_file():
        link_or_copy(card_path(path), OWN_FOLDER / card_path(path).name)
    own = OWN_FOLDER / path.name
    link_or_copy(path, own)
    return own.absolute()


def _print_batch(summary: EvalSummary) -> None:
    batch, all_of_them = summary.batches[-1], summary.overall
    print(
        f"batch {batch.batch}: {batch.episodes} episodes, mean {batch.mean:.2f} ± {batch.std:.2f}, "
        f"min {batch.min:.2f}, max {batch.max:.2f}; all {all_of_them.episodes}: {all_of_them.mean:.2f}",
        flush=True,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Evaluate as the command line says; returns the exit code."""
    return run_script(lambda: parse_args(Args, argv, POLICY_EVAL), evaluate_policy)


if __name__ == "__main__":
    sys.exit(main())
