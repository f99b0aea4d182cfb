"""Secrets: how they are declared, and how they leave a run config before it is stored or shown.

A secret is declared by its worker (`WorkerCapabilities.secrets`), by its name or path in the run config's
list `secrets`, by a value `@env:NAME`, which stands for a variable of whoever asks for the run, or here
(`DECLARED_VARIABLES`, proxies with a user's name). Where it stood, a config that was lifted has `@env:NAME`:
the training process has the value in its environment.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from mmap import mmap
from pathlib import Path
from typing import Any

from mosaic.contract.errors import UserError, closest, is_text
from mosaic.contract.outside import check_depth, leaves

_PREFIXED = re.compile(
    r"(?<![\w-])(?:sk-|hf_|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|npm_|pypi-|dckr_pat_|gsk_|r8_)([\w-]{16,})"
)
"""OpenAI and others, Hugging Face, GitHub, GitLab, Slack, npm, PyPI, Docker, Groq, Replicate."""
_WHOLE = re.compile(
    r"(?<!\w)(?:AKIA|ASIA)[A-Z0-9]{16}(?!\w)|(?<!\w)AIza[\w-]{35}|(?<!\w)eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
)
"""Amazon, Google, a signed JSON web token, a private key in PEM."""
_USER = re.compile(r"://([^/@\s]+)@")
_RUN = re.compile(r"[A-Za-z0-9]{16,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CLASSES = (str.isupper, str.islower, str.isdigit)
_LEAST = 16
_LEAST_DIGITS = 3
_CHANGES = 0.35
"""Random letters and digits change between the kinds more often than words with numbers do."""
_CHANGES_OF_PATHS = 0.45
_ALWAYS = re.compile(
    r"(?:.*_)?(?:password|passwd|passphrase|api_?key|(?:secret|access|private)_key|client_secret|secret_access_key"
    r"|(?:access|auth|api|bearer|session)_token)"
)
"""Names under which any text is a secret."""
_OFTEN = frozenset(["key", "token", "secret", "credential", "credentials", "auth", "pat", "cookie"])
"""The last words of names under which a text that looks random is one."""
_NO_VALUE = re.compile(r"<.*>|\$\{.*\}|\$\w+|none|null", re.IGNORECASE)


def looks_secret(name: str, text: str) -> bool:
    """Whether a text, which has this name, is most likely a key or a password."""
    # `apiKey` and `api-key` as `api_key`.
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\W+", "_", name).lower()
    return has_known_shape(text) or _named_so(words, text.strip())


def has_known_shape(text: str) -> bool:
    """Whether there is a key of a known service in a text, or an address with a password."""
    if any(_dense(found[1]) for found in _PREFIXED.finditer(text)) or _WHOLE.search(text):
        return True
    users = [found[1] for found in _USER.finditer(text)]
    return any((":" in user and "${" not in user) or _dense(user) for user in users)


def _named_so(name: str, text: str) -> bool:
    if len(text) < 2 or _NO_VALUE.fullmatch(text):
        return False
    if _ALWAYS.fullmatch(name):
        return not (name.endswith("key") and re.match(r"[~.]{0,2}/", text))
    *before, last = name.split("_")
    return last in _OFTEN and "public" not in before and not re.search(r"\s", text) and _dense(text)


def _dense(text: str) -> bool:
    """Whether letters and digits stand together as nobody writes them."""
    if any(sum(map(str.isdigit, run)) >= _LEAST_DIGITS and not run.isdigit() for run in _RUN.findall(text)):
        return "/" not in text or _changes(text) >= _CHANGES_OF_PATHS
    plain = re.sub(r"[^A-Za-z0-9]", "", text)
    least = _CHANGES_OF_PATHS if "/" in text else _CHANGES
    return len(plain) >= _LEAST and any(map(str.isdigit, plain)) and _changes(plain) >= least


def _changes(text: str) -> float:
    kinds = [next((at for at, is_one in enumerate(_CLASSES) if is_one(letter)), -1) for letter in text]
    return sum(one != other for one, other in pairwise(kinds)) / len(kinds)


DECLARED_VARIABLES = (
    *("WANDB_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"),
    *("MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN", "TRACKIO_WRITE_TOKEN"),
)
"""Variables that are secrets in every config. Addresses of proxies and servers are when they name a user."""
HIDDEN_VARIABLE = "MOSAIC_SECRETS"
"""Tells a supervisor which variables of its environment are secrets."""
_CALLERS = re.compile(
    r"(WANDB|HF|MLFLOW|TRACKIO)_\w+|CUDA_VISIBLE_DEVICES|MUJOCO_GL|(https?|no)_proxy|(HTTPS?|NO)_PROXY"
)
_ADDRESSES = ("http_proxy", "https_proxy", "mlflow_tracking_uri", "trackio_server_url", "wandb_base_url")
_REFERENCE = re.compile(r"@env:([A-Za-z_]\w*)")
_NOT_FOR_SECRETS = re.compile(
    r"(PATH|HOME|USER|LOGNAME|SHELL|TERM|PWD|TMPDIR|DISPLAY|LANG|IFS|PS\d|ENV|BASH_ENV)"
    r"|(LD|LC|PYTHON|MOSAIC|CLEANRL|OMP|MKL|OPENBLAS|NUMEXPR|CUDA|XDG|SDL|QT)_?.*"
)
"""Variables that mean something to programs: a secret of such a name gets another one."""
_FREE = (("metadata", "worker", "config"), ("metadata", "ui"))
_USUAL = (("metadata", "worker", "config"), ("extras",), ("algo_params",))
"""What stands before nearly every name and tells nobody anything."""
_LEAST_REPEATED = 8
_LEAST_HIDDEN = 4

Place = tuple[str, ...]


def is_callers(name: str) -> bool:
    """Whether a run takes this variable from whoever asks for it, never from whoever started the daemon."""
    return _CALLERS.fullmatch(name) is not None


def callers_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What a run takes from the environment of its caller; a UserError names one that cannot be sent."""
    return {name: _sendable(name, value) for name, value in environment.items() if is_callers(name)}


def _sendable(name: str, value: str) -> str:
    if not is_text(value):
        raise UserError(f"The variable {name} is not text in UTF-8: correct it, or unset it.")
    return value


def declared_variables(environment: Mapping[str, str]) -> list[str]:
    """Those of some variables that are secrets without anybody saying so."""
    return [name for name, value in environment.items() if _is_known(name, value)]


def reference(name: str) -> str:
    """What stands in a config for the value of a variable."""
    return f"@env:{name}"


def referred(value: object) -> str | None:
    """The variable that a value stands for; None for a value that stands for itself."""
    match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    return match[1] if match else None


def references_in(value: Any, path: Place = ()) -> Iterator[tuple[Place, str]]:
    """Where a value stands for a variable, and for which."""
    for place, leaf in leaves(value, path):
        name = referred(leaf)
        if name is not None:
            yield place, name


def worth_hiding(secrets: Mapping[str, str]) -> list[tuple[str, str]]:
    """Secrets by their variables, but for very short ones; the longest first, as it may hold another."""
    found = [(name, value) for name, value in secrets.items() if len(value) >= _LEAST_HIDDEN]
    return sorted(found, key=lambda one: -len(one[1]))


def mask(log: Path, secrets: Mapping[str, str]) -> None:
    """Put stars over secrets in what a script has printed; every line stays where it is."""
    values = [value.encode() for _, value in worth_hiding(secrets)]
    if not values:
        return
    with contextlib.suppress(OSError, ValueError), log.open("r+b") as file, mmap(file.fileno(), 0) as text:
        for value in values:
            at = text.find(value)
            while at >= 0:
                text[at : at + len(value)] = b"*" * len(value)
                at = text.find(value, at + len(value))


@dataclass(frozen=True)
class Lifted:
    """A run config without its secrets, and these as variables."""

    config: dict[str, Any]
    values: dict[str, str] = field(repr=False)


def lift_secrets(payload: Mapping[str, Any], caller: Mapping[str, str]) -> Lifted:
    """The config with a reference in place of each secret; `caller` has the variables that it refers to.

    A UserError names a value that looks like a key and is not declared, a declared name that nothing has, and
    a variable that is not set.
    """
    lifting = _Lifting(payload)
    lifting.resolve(caller)
    return lifting.finish()


def set_secrets_apart(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The config with its secrets in its `environment` alone, so that the rest can be checked and told of.

    What it takes from its caller is not looked up yet. To be submitted, or lifted to be shown.
    """
    lifting = _Lifting(payload)
    lifted = lifting.finish()
    if not lifted.values:
        return lifted.config
    names = _names(payload.get("secrets"))
    known = {*map(_plain, names)}
    declared = [*names, *(name for name in lifted.values if _plain(name) not in known)]
    variables = {**lifted.config.get("environment", {}), **lifted.values}
    return {**lifted.config, "environment": variables, "secrets": declared}


class _Lifting:
    """One config on its way."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        # The first that walks through a config: nothing behind this may run out of stack.
        check_depth(payload, "The run config")
        self._declared = _names(payload.get("secrets"))
        self._plain = _names(payload.get("plain"))
        self._workers = _worker_names(payload)
        self._values: dict[str, str] = {}
        self._matched: set[str] = set()
        given = payload.get("environment")
        self._variables: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {}
        for name, value in self._variables.items():
            place = ("environment", str(name))
            if self._is_declared(place, value) and value not in (None, "") and referred(value) is None:
                self._values[name] = _checked_text(place, value)
        self._config = dict(payload)
        for path in _FREE:
            _change(self._config, path, partial(self._walk, path=path))
        self._referred = {
            name: place
            for path in _FREE
            for place, name in references_in(_at(self._config, path), path)
            if not any(_ends_with(place, plain) for plain in self._plain)
        }

    def _is_declared(self, path: Place, value: object) -> bool:
        by_user = [name for name in self._declared if _ends_with(path, name)]
        self._matched.update(by_user)
        by_worker = any(_ends_with(path, name) for name in self._workers)
        return bool(by_user) or by_worker or _is_known(path[-1], value)

    def _walk(self, value: Any, path: Place, declared: bool = False) -> Any:
        declared = self._is_declared(path, value) or declared
        if isinstance(value, Mapping):
            return {key: self._walk(item, (*path, str(key)), declared) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._walk(item, (*path, str(at)), declared) for at, item in enumerate(value)]
        if not declared or value in (None, "") or referred(value) is not None:
            return value
        return reference(self._keep(path, _checked_text(path, value)))

    def _keep(self, path: Place, value: str) -> str:
        """The variable in which a secret waits."""
        first = _variable(path)
        number, name = 1, first
        while self._is_taken(name, value):
            number += 1
            name = f"{first}_{number}"
        self._values[name] = value
        return name

    def _is_taken(self, name: str, value: str) -> bool:
        if name in self._values:
            return self._values[name] != value
        # A variable that only stands for itself is what an earlier run of this config has left.
        return name in self._variables and referred(self._variables[name]) is None

    def _take_variables(self, caller: Mapping[str, str]) -> None:
        """What is declared and not in the config is a variable of the caller's, or a typing error."""
        known = {_plain(name) for name in (*self._referred, *self._variables)}
        for name in self._declared:
            if name in self._matched or _plain(name) in known:
                continue
            if has_known_shape(name):
                raise UserError("A secret is declared by the name of its setting, but a value was given.")
            if not caller.get(name):
                settings = leaves(_at(self._config, _FREE[0]))
                names = {_name(path) for path, value in settings if isinstance(value, str)}
                hint = closest(name, sorted({*names, *self._variables})) or ": correct it, or leave it out."
                raise UserError(
                    f"'{name}' is declared as a secret, but is neither a setting nor a variable here{hint}"
                )
            self._variables[name] = reference(name)

    def resolve(self, caller: Mapping[str, str]) -> None:
        """Find the value of every reference."""
        self._take_variables(caller)
        for name, value in self._variables.items():
            wanted = referred(value)
            if wanted is not None and name not in self._values:
                self._values[name] = _found(caller, wanted, name)
        for name, place in self._referred.items():
            if name not in self._values and referred(self._variables.get(name, reference(name))) is not None:
                self._values[name] = _found(caller, name, _shown(place))

    def finish(self) -> Lifted:
        """What was made of the config, once nothing is left in it that looks like a secret."""
        config = self._config
        if self._variables:
            config["environment"] = {
                name: reference(name) if name in self._values else value
                for name, value in self._variables.items()
                # What stands elsewhere in the config stands for the variable as well.
                if not (name in self._referred and (name in self._values or referred(value) == name))
            }
        repeated = [value for value in self._values.values() if len(value) >= _LEAST_REPEATED]
        for path, text in leaves({key: config[key] for key in config if key not in ("secrets", "plain")}):
            plain = not isinstance(text, str) or any(_ends_with(path, name) for name in self._plain)
            if plain or referred(text) is not None:
                continue
            if looks_secret(_name(path), text) or any(value in text for value in repeated):
                name, place = _name(path), _shown(path)
                raise UserError(
                    f"'{place}' looks like a key or a password: declare it as a secret with --secret {name} "
                    f"('secrets' in a config or form), or allow storing it with --plain {name} ('plain')."
                )
        return Lifted(config, self._values)


def _checked_text(path: Place, value: object) -> str:
    if not isinstance(value, str):
        raise UserError(
            f"'{_shown(path)}' is declared as a secret, but only text can be one: put it in quotes."
        )
    return value


def _found(caller: Mapping[str, str], variable: str, place: str) -> str:
    value = caller.get(variable)
    if not value:
        raise UserError(
            f"'{place}' is a secret, which is not kept after its run has ended, and the variable {variable} "
            f"is not set here: set {variable}, or give '{place}' again."
        )
    return _sendable(variable, value)


def _is_known(name: str, value: object) -> bool:
    if _plain(name).endswith(_ADDRESSES):
        return isinstance(value, str) and (_USER.search(value) is not None or "write_token=" in value)
    return name.upper() in DECLARED_VARIABLES


def _names(given: object) -> list[str]:
    return [name for name in given if isinstance(name, str)] if isinstance(given, list | tuple) else []


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_")


def _worker_names(payload: Mapping[str, Any]) -> Sequence[str]:
    # A run's supervisor has a config without secrets, and does not look for workers.
    from mosaic.contract.capabilities import discover_workers

    kind = _at(payload, ("metadata", "worker", "type"))
    worker = discover_workers().get(kind) if isinstance(kind, str) else None
    return worker.secrets if worker is not None else ()


def _ends_with(path: Place, name: str) -> bool:
    """Whether a name or dotted path means this place."""
    parts = tuple(_plain(name).split("."))
    return tuple(map(_plain, path[-len(parts) :])) == parts


def _at(value: Any, path: Place) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _change(config: dict[str, Any], path: Place, change: Callable[[Any], Any]) -> None:
    """Put what `change` makes of the value at a place there; the config that was given stays as it is."""
    for part in path[:-1]:
        if not isinstance(config.get(part), Mapping):
            return
        config[part] = dict(config[part])
        config = config[part]
    if path[-1] in config:
        config[path[-1]] = change(config[path[-1]])


def _name(path: Place) -> str:
    """The nearest name: a place in a list has that of the list."""
    return next((part for part in reversed(path) if not part.isdigit()), path[-1])


def _shown(path: Place) -> str:
    for usual in _USUAL:
        path = path[len(usual) :] if path[: len(usual)] == usual and len(path) > len(usual) else path
    return ".".join(path)


def _variable(path: Place) -> str:
    named = re.sub(r"\W", "_", _name(path)).upper()
    return f"SECRET_{named}" if _NOT_FOR_SECRETS.fullmatch(named) or named[:1].isdigit() else named
