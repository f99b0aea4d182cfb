"""Having another run's checkpoint in one's own folder, where nobody else removes it."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from cleanrl_worker.config.checkpoint_files import Origin
from mosaic.contract.errors import NotFoundError, StorageError


def take_over(origin: Origin, own: Path) -> Path:
    """Where a checkpoint lies in a run's own folder, once it is there with all its files."""
    if origin.path.parent.absolute() == own.absolute():
        return origin.path
    for name in origin.chunks:
        link_or_copy(origin.path.parent / name, own / name)
    path = own / f"step-{origin.step:012d}.npz"
    link_or_copy(origin.path, path)
    return path


def link_or_copy(source: Path, target: Path) -> None:
    """The same file under another name; a copy where that cannot be. Such files are never changed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.link")
    temporary.unlink(missing_ok=True)
    try:
        os.link(source, temporary)
    except FileNotFoundError as error:
        raise NotFoundError(f"{source} has been removed meanwhile.") from error
    except OSError:
        _copy(source, temporary)
    os.replace(temporary, target)
    with suppress(FileNotFoundError):
        # Renaming a name of a file to another name of the same file does nothing.
        temporary.unlink()


def _copy(source: Path, target: Path) -> None:
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        target.unlink(missing_ok=True)
        raise StorageError(
            f"{source} cannot be copied to {target.parent}: {error.strerror}; free some space."
        ) from error
