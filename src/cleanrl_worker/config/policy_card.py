"""The card beside a model file: which algorithm made it, with which arguments, and what it was shown."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cleanrl_worker.config.registry import AlgorithmFile
from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import StorageError
from mosaic.contract.outside import read_json

FORMAT = 1
MODEL_SUFFIX = ".cleanrl_model"
CARD_SUFFIX = ".policy.json"


@dataclass(frozen=True)
class PolicyCard:
    """What `<exp>.policy.json` says of `<exp>.cleanrl_model`."""

    algo: str
    args: dict[str, Any]
    step: int
    normaliser: dict[str, Any] | None
    """Mean, variance, count and clip of the observations that the policy was trained on, if it was so."""
    file: AlgorithmFile | None = None
    """The user's file that it was trained by, if the algorithm is one."""

    def write(self, model: Path) -> None:
        """Put the card beside a model file, whole or not at all."""
        # An argument may be infinite, which Python's own JSON can say.
        content = {name: value for name, value in asdict(self).items() if name != "file" or value}
        text = json.dumps({"format": FORMAT, **content}, indent=2)
        write_atomic(card_path(model), f"{text}\n".encode())


def card_path(model: Path) -> Path:
    """Where the card of a model file lies."""
    return model.with_name(model.name.removesuffix(MODEL_SUFFIX) + CARD_SUFFIX)


def read_card(model: Path) -> PolicyCard | None:
    """The card of a model file; None when there is none, as beside files of other people's scripts."""
    path = card_path(model)
    try:
        content = read_json(path)
        if content["format"] != FORMAT:
            raise StorageError(f"{path} has format {content['format']}, this release knows {FORMAT}.")
        file = AlgorithmFile.in_json(content)
        card = PolicyCard(content["algo"], content["args"], content["step"], content["normaliser"], file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise _broken(path) from error
    if not (isinstance(card.algo, str) and isinstance(card.args, dict) and isinstance(card.step, int)):
        raise _broken(path)
    return card


def _broken(path: Path) -> StorageError:
    return StorageError(f"{path} is not the card of a policy; delete it to play the model without.")
