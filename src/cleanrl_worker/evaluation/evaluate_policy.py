"""Evaluates a saved policy in the current folder: the script behind the mode `policy_eval`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from cleanrl_worker.config.checkpoint_files import CHECKPOINT_SUFFIX, link_or_copy, list_checkpoints
from cleanrl_worker.config.modes import POLICY_EVAL
from cleanrl_worker.config.policy_card import card_path
from cleanrl_worker.evaluation.batches import BATCH, EvalSettings, run_batched_evaluation
from cleanrl_worker.evaluation.models import SavedModel, open_model
from cleanrl_worker.kit.args import SEEDS, Bounds
from cleanrl_worker.kit.backend import find_backend
from cleanrl_worker.kit.parsing import parse_args
from cleanrl_worker.kit.stopping import StopSignals, run_script
from cleanrl_worker.kit.video import warn
from mosaic.analytics.eval_summary import EvalSummary
from mosaic.contract.errors import NotFoundError

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
    """how many environments are played together; else as many as are worth it"""
    max_episode_steps: Annotated[int | None, Bounds(minimum=1)] = None
    """the step after which an episode is cut off; else 30,000"""
    max_seconds: Annotated[float | None, Bounds(minimum=0.0)] = None
    """the time after which episodes are cut off and none begins; else there is no such time"""


def evaluate_policy(args: Args, stop: StopSignals) -> None:
    """Play the policy and leave the results in the current folder."""
    named = Path(args.policy_path).expanduser().absolute()
    path = take_policy(named) if RUN_VARIABLE in os.environ else named
    model = replace(open_model(path, args.algo, args.env_id, args.env_kwargs), name=str(named))
    settings = settings_of(args, model)
    find_backend(model.entry.spec.backend)(settings.first_seed)
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
            warn(f"{path.name} has been removed meanwhile; {newer[-1].name} is evaluated in its place.")
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
