"""The worker's config: what a run trains, in the flat form or inside a full run config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleanrl_worker.config.live import LiveSettings
from cleanrl_worker.config.modes import MODE_TARGETS, MODES, RESUME, TRAIN, check_settings
from cleanrl_worker.config.registry import find_algorithm_file
from cleanrl_worker.config.scripts import OWN_BUDGET, looks_foreign, own_budget
from cleanrl_worker.config.shell_scripts import fill_in_script, is_shell_script
from cleanrl_worker.schemas.check import GREATEST_SEED, LIMITS
from mosaic.contract.errors import UserError, closest
from mosaic.contract.outside import read_json
from mosaic.worker.environment import user_folder

if TYPE_CHECKING:
    from cleanrl_worker.curriculum.schedule import Schedule

RESERVED_EXTRAS = frozenset(
    [
        *("mode", "algo_params", "env_kwargs", "module_source", "requirements", "notes"),
        "trust_modules",
        *("checkpoint_path", "policy_path", "checkpoints_dir", "curriculum_schedule", "seed_override"),
        *("tensorboard_dir", "track_wandb", "optuna_db", "cuda", "use_cuda", "upload_model", "hf_entity"),
        *("fastlane_video_mode", "video_mode", "fastlane_slot", "fastlane_only"),
        *("fastlane_grid_limit", "grid_limit"),
        *("eval_batch_size", "eval_episodes", "eval_repeat", "eval_capture_video"),
        *("schema_id", "schema_version", "supports_pause", "supports_checkpoint"),
    ]
)
"""Extras that mean something to the platform; every other key becomes a flag of the script."""

_FOR_TRACKERS = ("track_wandb", "track_mlflow", "track_trackio", "wandb_", "mlflow_", "trackio_")

LONGEST = int(LIMITS["int"])
"""The largest budget."""
_FIELDS = ("run_id", "algo", "env_id", "total_timesteps", "seed", "worker_id", "agent_id", "extras")
_KINDS = {
    "algo_params": (Mapping, "an object"),
    "env_kwargs": (Mapping, "an object"),
    "requirements": (list, "a list"),
    "notes": (str, "a text"),
    "tensorboard_dir": (str, "a text"),
    "upload_model": (bool, "true or false"),
    "hf_entity": (str, "a text"),
}
"""Extras that are used as what they should be, whoever is to use them."""


def is_reserved(key: str) -> bool:
    """Whether an extra is for the platform and not for the script."""
    return key in RESERVED_EXTRAS or key.startswith(_FOR_TRACKERS)


@dataclass(frozen=True)
class CleanRLWorkerConfig:
    """All parameters of one run."""

    run_id: str
    algo: str
    env_id: str
    total_timesteps: int
    seed: int | None = None
    extras: dict[str, Any] = field(default_factory=dict)
    worker_id: str | None = None
    agent_id: str | None = None
    """What the agent is called by whoever asked for the run; the daemon is told."""
    raw: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def mode(self) -> str:
        return str(self.extras.get("mode", TRAIN))

    @property
    def effective_seed(self) -> int | None:
        override = self.extras.get("seed_override")
        return self.seed if override is None else int(override)

    def named_values(self) -> dict[str, Any]:
        """What every run says of its training, by the names of parameters."""
        values = {"env_id": self.env_id, "total_timesteps": self.total_timesteps}
        return {**values, "seed": self.effective_seed}

    def schedule(self) -> Schedule | None:
        """The curriculum, if there is one."""
        given = self.extras.get("curriculum_schedule")
        if given is None:
            return None
        # Only here, because few runs have one.
        from cleanrl_worker.curriculum.schedule import parse_schedule

        return parse_schedule(given)

    def flags(self) -> dict[str, Any]:
        """The extras that become flags of the script."""
        return {name: value for name, value in self.extras.items() if not is_reserved(name)}

    def with_overrides(
        self, *, extras: Mapping[str, Any] | None = None, **values: Any
    ) -> CleanRLWorkerConfig:
        """This config with the given values in place of its own; `extras` are merged, the new ones win."""
        given = {name: value for name, value in values.items() if value is not None}
        merged = replace(self, **given, extras={**self.extras, **(extras or {})})
        return parse_worker_config(merged.as_json()) if given or extras else self

    def as_json(self) -> dict[str, Any]:
        """The flat form."""
        return {name: getattr(self, name) for name in _FIELDS}


def load_worker_config(path: Path) -> CleanRLWorkerConfig:
    """Read a config file of either form."""
    try:
        payload = read_json(path)
    except OSError as error:
        raise UserError(f"The config {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise UserError(f"The config {path} is not JSON: {error}.") from error
    return parse_worker_config(payload)


def parse_worker_config(payload: Any, folder: Path | None = None) -> CleanRLWorkerConfig:
    """Check a config of either form; a UserError names what is wrong.

    What a resumed run leaves out comes from its checkpoint; a relative path counts from `folder`.
    """
    if not isinstance(payload, Mapping):
        raise UserError("The worker config is not valid: it must be a JSON object.")
    fields, prefix = payload, ""
    if "metadata" in payload:
        fields, prefix = _nested(payload), "metadata.worker.config."
    for name in fields:
        if name not in _FIELDS:
            hint = closest(name, _FIELDS) or f"; allowed: {', '.join(_FIELDS)}."
            raise UserError(f"The worker config has an unknown key '{prefix}{name}'{hint}")
    extras = fields.get("extras") or {}
    if not isinstance(extras, Mapping):
        raise UserError(f"'{prefix}extras' is {extras!r:.80}, but it must be an object.")
    for name, (kind, words) in _KINDS.items():
        if extras.get(name) is not None and not isinstance(extras[name], kind):
            raise UserError(f"'{prefix}extras.{name}' is {extras[name]!r:.80}, but it must be {words}.")
    if any(name.startswith(_FOR_TRACKERS) for name in extras):
        from mosaic.tracking.settings import check_tracking

        check_tracking(extras)
    mode = extras.get("mode", TRAIN)
    if mode not in MODES:
        raise UserError(f"'{prefix}extras.mode' is {mode!r}, but it must be one of {', '.join(MODES)}.")
    folder = folder or user_folder()
    fields = _filled_in({**fields, "extras": extras}, mode, folder)
    extras = fields["extras"]
    upstream = extras.get("module_source") == "upstream"
    own_file = None if upstream else find_algorithm_file(str(fields.get("algo")), folder)
    if own_file is not None:
        fields = {**fields, "algo": own_file}
    others = {name: value for name, value in extras.items() if not is_reserved(name)}
    seed = fields.get("seed")
    # Somebody's script may have a budget that nobody else knows, and other seeds.
    foreign = own_file is None and (upstream or looks_foreign(str(fields.get("algo"))))
    if seed is not None:
        seed = _whole(fields, "seed", prefix, 0, None if foreign else GREATEST_SEED)
    if extras.get("seed_override") is not None:
        _whole(extras, "seed_override", f"{prefix}extras.", 0, None if foreign else GREATEST_SEED)
    config = CleanRLWorkerConfig(
        run_id=_text(fields, "run_id", prefix),
        algo=_text(fields, "algo", prefix),
        env_id=_text(fields, "env_id", prefix),
        total_timesteps=_whole(fields, "total_timesteps", prefix, OWN_BUDGET if foreign else 1, LONGEST),
        seed=seed,
        extras=check_settings(mode, extras, others),
        worker_id=None if fields.get("worker_id") is None else _text(fields, "worker_id", prefix),
        agent_id=None if fields.get("agent_id") is None else _text(fields, "agent_id", prefix),
        raw=dict(payload),
    )
    # Read here only to refuse what makes no sense before anything has started.
    LiveSettings.from_extras(config.extras)
    return config


def _filled_in(fields: Mapping[str, Any], mode: str, folder: Path) -> Mapping[str, Any]:
    """The fields with what a checkpoint, a policy, a script or a curriculum tells of those left out.

    The readers of these are imported where they are needed: a run that just trains has none of them.
    """
    algo = fields.get("algo")
    if mode in MODE_TARGETS or mode == RESUME:
        from cleanrl_worker.config.resuming import fill_in

        fields = fill_in(fields, folder)
    elif isinstance(algo, str) and is_shell_script(algo):
        fields = fill_in_script(fields, algo, folder)
    elif isinstance(algo, str) and fields.get("total_timesteps") is None:
        budget = own_budget(algo, fields["extras"].get("module_source"), folder)
        fields = {**fields, "total_timesteps": budget}
    if fields["extras"].get("curriculum_schedule") is None:
        return fields
    from cleanrl_worker.curriculum.schedule import parse_schedule, with_target

    schedule = parse_schedule(fields["extras"]["curriculum_schedule"])
    return fields if schedule is None else with_target(fields, schedule)


def _nested(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    part: Any = payload
    for name in ("metadata", "worker", "config"):
        part = part.get(name) if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping):
        raise UserError("The worker config is not valid: 'metadata.worker.config' is missing.")
    return part


def _text(fields: Mapping[str, Any], name: str, prefix: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        state = "is missing" if value is None else f"is {value!r:.80}"
        raise UserError(f"'{prefix}{name}' {state}, but it must be a text.")
    return value


def _whole(fields: Mapping[str, Any], name: str, prefix: str, least: int, most: int | None = None) -> int:
    value = fields.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        state = "is missing" if value is None else f"is {value!r:.80}"
        raise UserError(f"'{prefix}{name}' {state}, but it must be a whole number of at least {least}.")
    if most is not None and value > most:
        raise UserError(f"'{prefix}{name}' is {value!r:.40}, but it must be at most {most}.")
    return value
