"""The run config: what `SubmitRun` takes. `validate_train_run_config` is the one door."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from mosaic.contract.errors import UserError, closest
from mosaic.contract.fsm import MOST_PRIORITY
from mosaic.contract.outside import check_plain, leaves, too_large

MOST_CONFIG_BYTES = 1_000_000
LONGEST_NAME = 200
MOST_TAGS, LONGEST_TAG = 100, 100
LONGEST_NOTES = 10_000
_MOST = 2**31
"""Of anything that is counted: far beyond what there is, and the database can hold it."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _plain_number(value: Any) -> Any:
    """`{"requested": n}` and `n` mean the same."""
    if isinstance(value, Mapping) and set(value) == {"requested"}:
        return value["requested"]
    return value


class GpuRequest(_Part):
    """How many GPUs, and whether the run may fall back to the CPU."""

    requested: Annotated[int, Field(ge=0, le=_MOST)] = 0
    mandatory: bool = False


def _gpu_request(value: Any) -> Any:
    return {"requested": value} if isinstance(value, int) and not isinstance(value, bool) else value


class Resources(_Part):
    """What is reserved for the run while it lives."""

    cpus: Annotated[int, BeforeValidator(_plain_number), Field(ge=1, le=_MOST)] = 1
    memory_mb: Annotated[Annotated[int, Field(ge=1, le=_MOST)] | None, BeforeValidator(_plain_number)] = None
    gpus: Annotated[GpuRequest, BeforeValidator(_gpu_request)] = GpuRequest()


class Switch(_Part):
    enabled: bool = False


class Artifacts(_Part):
    """What the run is asked to leave behind."""

    tensorboard: Switch = Switch(enabled=True)
    wandb: Switch = Switch()


class Schedule(_Part):
    """Limits on time and on restarts after a fault, and the place in the queue."""

    max_wallclock_minutes: Annotated[float, Field(gt=0, le=_MOST)] | None = None
    max_restarts: Annotated[int, Field(ge=0, le=_MOST)] = 0
    priority: Annotated[int, Field(ge=-MOST_PRIORITY, le=MOST_PRIORITY)] = 0


def _finite(value: dict[str, Any]) -> dict[str, Any]:
    """JSON has no NaN: stored and read again it would be null, which means something else."""
    for path, leaf in leaves(value):
        if isinstance(leaf, float) and not math.isfinite(leaf):
            raise ValueError(f"'{'.'.join(path)}' is {leaf}, and only finite numbers can be stored")
    return value


FreeForm = Annotated[dict[str, Any], AfterValidator(_finite)]
"""Values that somebody else checks."""


class WorkerRequest(_Part):
    """Which worker runs this, in which interpreter, with which config of its own."""

    type: str = Field(min_length=1, max_length=LONGEST_NAME)
    module: str | None = None
    python: str | None = None
    config: FreeForm = {}


class Metadata(_Part):
    worker: WorkerRequest
    ui: FreeForm = {}


def _few_tags(tags: list[str]) -> list[str]:
    if len(tags) > MOST_TAGS:
        raise ValueError(f"a run has at most {MOST_TAGS} tags, not {len(tags):,}")
    longest = max(tags, key=len, default="")
    if len(longest) > LONGEST_TAG:
        raise ValueError(f"a tag has at most {LONGEST_TAG} characters, '{longest:.20}…' has {len(longest):,}")
    return tags


def _short_notes(metadata: Metadata) -> Metadata:
    extras = metadata.worker.config.get("extras")
    for place in (metadata.ui, extras if isinstance(extras, dict) else {}):
        if isinstance(place.get("notes"), str):
            _check_length(place["notes"])
    return metadata


def _without_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("a variable cannot hold a NUL")
    return value


VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")]
VariableValue = Annotated[str, AfterValidator(_without_nul)]


class TrainRunConfig(_Part):
    """One accepted request for a run."""

    run_name: str = Field(min_length=1, max_length=LONGEST_NAME)
    resources: Resources = Resources()
    artifacts: Artifacts = Artifacts()
    schedule: Schedule = Schedule()
    tags: Annotated[list[str], AfterValidator(_few_tags)] = []
    environment: dict[VariableName, VariableValue] = {}
    """Variables for the environment of the run; secrets among them are lifted out before it is stored."""
    secrets: list[str] = []
    """Names or dotted paths of settings and variables that are secrets: see `mosaic.contract.secrets`."""
    plain: list[str] = []
    """The same of those that look like keys, are not, and may be stored."""
    metadata: Annotated[Metadata, AfterValidator(_short_notes)]

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


def validate_train_run_config(payload: Any) -> TrainRunConfig:
    """The config in `payload`, or a UserError with path, value and what is allowed."""
    check_plain(payload, "The run config is not valid: it")
    try:
        return TrainRunConfig.model_validate(payload)
    except ValidationError as error:
        raise UserError(_explain(error)) from None
    except ValueError as error:
        raise UserError(f"The run config is not valid: {error}.") from None


def check_priority(priority: int) -> None:
    """Refuse what no run can have."""
    if abs(priority) > MOST_PRIORITY:
        raise UserError(f"A priority is from -{MOST_PRIORITY} to {MOST_PRIORITY}, not {priority}.")


def checked_name(name: str) -> str:
    """The name of a run as it is kept; a UserError says what is wrong with it."""
    kept = name.strip()
    if not 0 < len(kept) <= LONGEST_NAME:
        raise UserError(f"The name of a run has 1 to {LONGEST_NAME} characters, not {len(kept):,}.")
    return kept


def checked_tags(tags: Sequence[str]) -> list[str]:
    """Tags as they are kept, each once; a UserError names one that cannot be a tag."""
    kept = list(dict.fromkeys(tag.strip().removeprefix("#") for tag in tags))
    for tag in kept:
        if not tag or "," in tag:
            raise UserError(f"'{tag:.40}' cannot be a tag: write a word, and commas only between tags.")
    try:
        return _few_tags(kept)
    except ValueError as error:
        raise UserError(f"These tags cannot be kept: {error}.") from None


def checked_notes(notes: str) -> str:
    """Notes as they are kept; a UserError says that they are too long."""
    try:
        return _check_length(notes.strip())
    except ValueError as error:
        raise UserError(f"These notes cannot be kept: {error}.") from None


def config_text(config: Mapping[str, Any]) -> str:
    """A run config as it goes to the daemon; a UserError says that it is too large."""
    check_plain(config, "The run config is not valid: it")
    text = json.dumps(dict(config))
    if len(text) > MOST_CONFIG_BYTES:
        raise UserError(too_large("The run config", len(text), MOST_CONFIG_BYTES))
    return text


def _check_length(notes: str) -> str:
    if len(notes) > LONGEST_NOTES:
        raise ValueError(f"notes have at most {LONGEST_NOTES:,} characters, not {len(notes):,}")
    return notes


def fill_in(config: TrainRunConfig, variables: Mapping[str, str]) -> TrainRunConfig:
    """Replace `${NAME}` in every string value."""
    return TrainRunConfig.model_validate(_fill(config.as_json(), variables))


def _fill(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in variables.items():
            value = value.replace("${" + name + "}", text)
        return value
    if isinstance(value, dict):
        return {key: _fill(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, variables) for item in value]
    return value


def _explain(error: ValidationError) -> str:
    problems = [_explain_one(dict(problem)) for problem in error.errors(include_url=False)]
    more = f" ({len(problems) - 1} more problem{'s' * (len(problems) > 2)})" if len(problems) > 1 else ""
    return f"The run config is not valid: {problems[0]}{more}."


def _explain_one(problem: dict[str, Any]) -> str:
    location = [str(part) for part in problem["loc"]]
    path = ".".join(location) or "the whole payload"
    if problem["type"] == "extra_forbidden":
        known = _keys_at(location[:-1])
        hint = closest(location[-1], known) or f"; allowed here: {', '.join(known)}"
        return f"'{path}' is not a known key{hint.rstrip('?')}"
    if problem["type"] == "missing":
        return f"'{path}' is missing"
    rule = str(problem["msg"]).removeprefix("Input ").removeprefix("Value error, ")
    return f"'{path}' is {problem['input']!r:.80}, but {rule}"


def _keys_at(location: list[str]) -> list[str]:
    """The keys that the model at this place of the config knows."""
    model: type[BaseModel] = TrainRunConfig
    for part in location:
        annotation = model.model_fields[part].annotation
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return []
        model = annotation
    return sorted(model.model_fields)
