"""The environments of a run, or of a policy that is played, on the backend that is asked for."""

from __future__ import annotations

import gymnasium

from cleanrl_worker.curriculum.schedule import parse_schedule
from cleanrl_worker.kit.args import CommonArgs
from cleanrl_worker.kit.envs import AtariOptions, Envs, EpisodeEnvs
from cleanrl_worker.kit.pools import AleEnvs, EnvPoolEnvs, EnvPoolEpisodes, EnvPoolTask
from cleanrl_worker.kit.seats import open_seats
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.vector_env import make_envs
from cleanrl_worker.kit.video import warn
from cleanrl_worker.portable import probe
from cleanrl_worker.portable.fastlane.lane import is_unwatched
from cleanrl_worker.schemas.environments import (
    ALE,
    EXTRAS,
    PYTHON,
    TITLES,
    EnvironmentEntry,
    check_backend,
    check_fit,
    choose_backend,
    explain_backend,
    find_environment,
)
from mosaic.contract.errors import UserError
from mosaic.contract.extras import require_extra


def open_envs(spec: AlgorithmSpec, args: CommonArgs) -> Envs:
    """The environments that a run trains on; UserError says what its backend cannot do."""
    backend = choose_backend(args.env_backend, spec.env_backend)
    schedule = parse_schedule(args.curriculum)
    check_backend(spec.name, backend, args.env_id, schedule is not None, args.capture_video)
    num_envs: int = vars(args)["num_envs"]
    if spec.several_players:
        return open_seats(spec, args)
    if backend == PYTHON:
        return make_envs(
            spec.name,
            args.env_id,
            num_envs,
            spec.env_kwargs(args),
            args.capture_video,
            schedule,
            spec.flat_observations,
            spec.wrapper(args),
            spec.masks,
        )
    atari = _prepare(spec, args, backend)
    warn(explain_backend(backend, args.env_id, atari is not None and atari.episodic_life))
    kwargs = probe.parse_kwargs(args.env_kwargs)
    if backend == ALE:
        return AleEnvs(args.env_id, num_envs, kwargs, atari or AtariOptions())
    task = EnvPoolTask(args.env_id, {**spec.pool_options(args, False), **kwargs}, atari)
    clip = atari is not None and atari.clip_rewards
    return EnvPoolEnvs(args.env_id, num_envs, task, spec.flat_observations, clip)


def _prepare(spec: AlgorithmSpec, args: CommonArgs, backend: str) -> AtariOptions | None:
    """How a compiled backend prepares the frames of Atari games; UserError when it does not fit this run."""
    require_extra(EXTRAS[backend], f"env_backend {backend}")
    known = find_environment(args.env_id)
    if known is not None and args.env_kwargs == "{}":
        check_fit(spec.name, known)
    try:
        kwargs = probe.parse_kwargs(args.env_kwargs)
        entry = EnvironmentEntry(args.env_id, **probe.describe_with(backend, args.env_id, kwargs))
    except probe.ProbeError as error:
        raise UserError(str(error)) from error
    check_fit(spec.name, entry)
    is_atari = probe.is_atari(args.env_id)
    if spec.wrap is not None and (spec.atari is None or not is_atari):
        raise UserError(
            f"{spec.name} preprocesses the observations of {args.env_id}, which {TITLES[backend]} does "
            "only for Atari games: use env_backend python."
        )
    return spec.atari(args) if spec.atari is not None and is_atari else None


def open_episodes(spec: AlgorithmSpec, args: CommonArgs, num_envs: int) -> EpisodeEnvs:
    """Environments to play a policy in: those of Python where it has them, so that returns compare."""
    backend = choose_backend(args.env_backend, spec.env_backend)
    if backend == PYTHON or _is_pythons(args.env_id):
        wrap = spec.wrapper(args)
        return make_envs(
            spec.name, args.env_id, num_envs, spec.env_kwargs(args), wrap=wrap, masked=spec.masks
        )
    _prepare(spec, args, backend)
    if not is_unwatched():
        warn(f"{args.env_id} is played in {TITLES[backend]}, as Python does not have it.")
    kwargs = {**spec.pool_options(args, True), **probe.parse_kwargs(args.env_kwargs)}
    task = EnvPoolTask(args.env_id, kwargs, None)
    return EnvPoolEpisodes(num_envs, task, flat=False)


def _is_pythons(env_id: str) -> bool:
    """Whether gymnasium can make an environment."""
    if ":" in env_id:
        return True
    try:
        probe.import_family(env_id)
        gymnasium.spec(env_id)
    except (probe.ProbeError, gymnasium.error.Error):
        return False
    return True
