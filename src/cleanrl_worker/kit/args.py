"""The arguments every algorithm has, and how an argument states its bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from cleanrl_worker.schemas.check import GREATEST_SEED


@dataclass(frozen=True)
class Bounds:
    """The least and greatest value an argument may have; both are allowed themselves."""

    minimum: float | None = None
    maximum: float | None = None


PositiveInt = Annotated[int, Bounds(minimum=1)]
NonNegativeInt = Annotated[int, Bounds(minimum=0)]
NonNegative = Annotated[float, Bounds(minimum=0.0)]
SEEDS = Bounds(minimum=0, maximum=GREATEST_SEED)
Fraction = Annotated[float, Bounds(minimum=0.0, maximum=1.0)]

# A run states these itself, so a form for an algorithm's own parameters leaves them out.
RUNTIME_FIELDS = frozenset(
    {
        "exp_name",
        "seed",
        "cuda",
        "track",
        "wandb_project_name",
        "wandb_entity",
        "env_id",
        "env_kwargs",
        "curriculum",
        "total_timesteps",
        "resume_from",
        "resume_changes",
        "stop_at",
    }
)


@dataclass
class CommonArgs:
    """Arguments shared by all algorithms."""

    exp_name: str = "run"
    """the name of this experiment, part of the results folder's name"""
    seed: Annotated[int, SEEDS] = 1
    """the seed of the environments, the network and the sampling"""
    torch_deterministic: bool = True
    """use only deterministic GPU kernels"""
    cuda: bool = True
    """train on the GPU when there is one"""
    track: bool = False
    """also log to Weights & Biases"""
    wandb_project_name: str = "cleanRL"
    """the Weights & Biases project"""
    wandb_entity: str | None = None
    """the Weights & Biases team or user"""
    env_id: str = "CartPole-v1"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    env_kwargs: str = "{}"
    """a JSON object with keyword arguments for the environment"""
    env_backend: Literal["auto", "python", "envpool", "ale"] = "auto"
    """what steps the environments: the compiled code of EnvPool or ALE is faster, above all for Atari and
    many environments, but its curves differ and a resumed run begins new episodes; auto is Python, where
    results compare exactly, unless the algorithm is named after another"""
    curriculum: str = ""
    """other environments to train on: a JSON list of stages, an object with tasks, or a preset's name"""
    total_timesteps: PositiveInt = 500000
    """how many environment steps to train for, over all environments together"""
    capture_video: bool = False
    """record videos of the first environment to videos/"""
    save_model: bool = True
    """write the trained weights to the results folder"""
    eval_episodes: NonNegativeInt = 10
    """how many episodes the saved weights play at the end, always with the best action they know; 0: none"""
    eval_every: NonNegativeInt = 0
    """steps between two evaluations of as many episodes in training, which keep the best model; 0: none"""
    checkpoint_every: NonNegativeInt = 50_000
    """how many steps lie between two full checkpoints, from which a run can go on exactly; 0: none"""
    resume_from: str | None = None
    """a full checkpoint to go on from"""
    resume_changes: str = ""
    """parameters, with commas between them, whose values may differ from those in that checkpoint"""
    stop_at: NonNegativeInt = 0
    """end once so many steps are taken, as if the rest of the budget came in a later run; 0: never"""
    kernels: bool = True
    """on the CPU, compute small networks with kernels of our own where there are any, which is faster"""
