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
    """the name of the experiment, part of the name of the results folder"""
    seed: Annotated[int, SEEDS] = 1
    """the seed of the environments, the network and the sampling"""
    torch_deterministic: bool = True
    """use only deterministic GPU kernels"""
    cuda: bool = True
    """train on the GPU if there is one"""
    track: bool = False
    """also log to Weights & Biases"""
    wandb_project_name: str = "cleanRL"
    """the Weights & Biases project"""
    wandb_entity: str | None = None
    """the Weights & Biases team or user"""
    env_id: str = "CartPole-v1"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    env_kwargs: str = "{}"
    """keyword arguments of the environment, as a JSON object"""
    env_backend: Literal["auto", "python", "envpool", "ale"] = "auto"
    """the environment backend: EnvPool and ALE are compiled and faster, above all for Atari and many
    environments, but their curves differ and a resumed run starts new episodes; auto is Python, which
    resumes exactly, unless the algorithm is named after another backend"""
    curriculum: str = ""
    """a curriculum: a JSON list of stages, an object with tasks, or the name of a preset"""
    total_timesteps: PositiveInt = 500000
    """the budget: environment steps over all environments together"""
    capture_video: bool = False
    """record videos of the first environment to videos/"""
    save_model: bool = True
    """write the trained weights to the results folder"""
    eval_episodes: NonNegativeInt = 10
    """the number of episodes of the evaluation at the end, with deterministic actions; 0: none"""
    eval_every: NonNegativeInt = 0
    """steps between two evaluations during training, which keep the best model; 0: none"""
    checkpoint_every: NonNegativeInt = 50_000
    """steps between two full checkpoints, from which a run can be resumed exactly; 0: none"""
    resume_from: str | None = None
    """the full checkpoint to resume from"""
    resume_changes: str = ""
    """parameters, separated by commas, whose values may differ from those of the checkpoint"""
    stop_at: NonNegativeInt = 0
    """end the run after this many steps of the budget, to be resumed later; 0: never"""
    kernels: bool = True
    """on the CPU, use faster kernels for small networks if there are any"""
