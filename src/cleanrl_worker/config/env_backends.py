"""What steps the environments of a run (Python, EnvPool, ALE's vector), and what each of them can do."""

from __future__ import annotations

import re

from mosaic.contract.errors import UserError

PYTHON, ENVPOOL, ALE = "python", "envpool", "ale"
EXTRAS = {ENVPOOL: "envpool", ALE: "atari"}
"""The optional set of packages that each compiled backend is in."""
TITLES = {ENVPOOL: "EnvPool", ALE: "ALE's vector"}

_ENVPOOL_ATARI = re.compile(r"([A-Z]\w+)-v5")
_OF_MUJOCO = re.compile(
    r"(Ant|HalfCheetah|Hopper|Humanoid|HumanoidStandup|InvertedDoublePendulum|InvertedPendulum|Pusher|Reacher"
    r"|Swimmer|Walker2d)-v5"
)


def choose_backend(asked: str, usual: str) -> str:
    """The backend of a run; `usual` is what `auto` means for its algorithm."""
    return usual if asked == "auto" else asked


def gymnasium_id(env_id: str, backend: str) -> str:
    """An environment by the id under which everything else knows it: EnvPool calls Atari games `Pong-v5`."""
    match = _ENVPOOL_ATARI.fullmatch(env_id)
    if backend != ENVPOOL or match is None or _OF_MUJOCO.fullmatch(env_id):
        return env_id
    return f"{match[1]}NoFrameskip-v4"


def check_backend(backend: str, env_id: str, curriculum: bool, capture_video: bool) -> None:
    """Raise UserError when a backend cannot do what else a run asks for."""
    if backend == PYTHON:
        return
    what = ""
    if curriculum:
        what = "does not change its environments, which a curriculum does"
    elif capture_video:
        what = "records no videos (capture_video)"
    elif ":" in env_id:
        what = f"has environments of its own only, and {env_id} is made by a Python module"
    if what:
        raise UserError(f"env_backend {backend} {what}: use env_backend python.")


def explain_backend(backend: str, env_id: str, lives: bool) -> str:
    """What differs from Python environments, in one line. `lives`: a lost life ends an episode."""
    parts = [f"{TITLES[backend]} steps {env_id}: episodes begin from other random numbers than in Python"]
    if backend == ENVPOOL and lives:
        parts.append("after a lost life up to 30 frames pass unplayed and uncounted")
    if backend == ALE and lives:
        parts.append("after a lost life nobody presses FIRE but the policy")
    parts.append("a resumed run begins new episodes")
    parts.append("evaluations are played in Python where it has the environment")
    return "; ".join(parts) + "."
