"""The exceptions a person may see: each message says what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Iterable


class MosaicError(Exception):
    """Base of all our errors. Its text is one sentence meant for a person."""

    exit_code = 1
    status = "INTERNAL"
    """The gRPC status with which the daemon ends a call that meets this error."""

    @property
    def sentences(self) -> list[str]:
        """A sentence for each thing that is wrong."""
        return [str(self)]


class UserError(MosaicError):
    """The input is wrong: nothing was started and nothing was written."""

    exit_code = 2
    status = "INVALID_ARGUMENT"


class NotFoundError(UserError):
    """The thing that was named does not exist."""

    status = "NOT_FOUND"


class UntrustedModuleError(UserError):
    """A file names a module that nobody has asked for; with the user's yes to `module` it can go on."""

    def __init__(self, text: str, module: str) -> None:
        super().__init__(text)
        self.module = module


class ConflictError(MosaicError):
    """The request is right, but not in the state the thing is in."""

    status = "FAILED_PRECONDITION"


class StorageError(MosaicError):
    """A file or folder cannot be read or written: full, missing or forbidden, which the user can change."""

    exit_code = 2
    status = "RESOURCE_EXHAUSTED"


class UnavailableError(MosaicError):
    """The trainer daemon cannot be reached."""

    status = "UNAVAILABLE"


def is_text(value: str) -> bool:
    """Whether this can be stored and sent: a file's name in another encoding than UTF-8 cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def closest(name: str, known: Iterable[str]) -> str:
    """A hint such as `; did you mean 'ppo'?`, or nothing when no name is near."""
    # Everybody imports this module, and few make a mistake.
    import difflib

    names = list(known)
    match = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if not match:
        lowered = {candidate.lower(): candidate for candidate in names}
        near = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.6)
        match = [lowered[near[0]]] if near else []
    return f"; did you mean '{match[0]}'?" if match else ""
