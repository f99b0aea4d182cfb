"""Uploads of runs: done, told of in the run's folder while they go on, and started when a run has completed.

`python -m mosaic.hub.uploads RUN_FOLDER [USER/MODEL [private]]` does one, in a process of its own that nobody
waits for: `hub.json` in the run's folder tells how it stands.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mosaic.contract import words
from mosaic.contract.atomic import write_json
from mosaic.contract.connection import FOLDER_VARIABLE, RUN_VARIABLE, SECRET_VARIABLE
from mosaic.contract.errors import ConflictError, MosaicError, UserError
from mosaic.contract.outside import read_json
from mosaic.contract.process import ProcessIdentity, boot_id, wear_mark
from mosaic.contract.secrets import HIDDEN_VARIABLE
from mosaic.hub.account import NO_TOKEN, Hub, check_entity, endpoint, find_token, parse_repo, usual_name

FILE_NAME = "hub.json"
UPLOADING, UPLOADED, FAILED = "uploading", "uploaded", "failed"
_CUT_OFF = "It was interrupted."
_NOT_FOR_UPLOADS = (RUN_VARIABLE, FOLDER_VARIABLE, SECRET_VARIABLE, HIDDEN_VARIABLE)


@dataclass(frozen=True)
class Upload:
    """How the newest upload of a run stands."""

    state: str
    """`uploading`, `uploaded` or `failed`."""
    repo: str
    """`USER/MODEL`; before the hub has told whose token it is only MODEL, and at first nothing."""
    at: float
    """When that began to be so, in seconds since 1970."""
    url: str = ""
    problem: str = ""
    """Why it failed, in a sentence."""
    private: bool = False
    process: Mapping[str, Any] | None = None
    """Who uploads."""

    def told(self) -> str:
        """In words for a person, who may have to do it again."""
        if self.state == UPLOADED:
            return f"{self.url} ({words.ago(self.at)})"
        what = self.repo or "its model"
        return (
            f"{what} is being uploaded"
            if self.state == UPLOADING
            else f"{what} was not uploaded: {self.problem}"
        )


def read_upload(run_dir: Path) -> Upload | None:
    """The newest upload of a run; None when there was none. One whose process is gone has failed."""
    try:
        told = read_json(run_dir / FILE_NAME)
        found = Upload(**told)
        sound = all(isinstance(one, str) for one in (found.state, found.repo, found.url, found.problem))
    except (OSError, ValueError, TypeError):
        return None
    if not sound or not isinstance(found.at, int | float):
        return None
    if found.state == UPLOADING and not _lives(found.process):
        return replace(found, state=FAILED, problem=_CUT_OFF)
    return found


def _lives(process: Mapping[str, Any] | None) -> bool:
    try:
        assert process is not None
        return process["boot"] == boot_id() and ProcessIdentity(process["pid"], process["start"]).alive()
    except (AssertionError, KeyError, TypeError):
        return False


def _write(run_dir: Path, upload: Upload) -> None:
    # The run may have been removed meanwhile, and then nobody asks.
    with contextlib.suppress(FileNotFoundError):
        write_json(run_dir / FILE_NAME, asdict(upload))


def _process(pid: int) -> dict[str, Any] | None:
    found = ProcessIdentity.of(pid)
    return None if found is None else {"pid": found.pid, "start": found.start, "boot": boot_id()}


_started: list[subprocess.Popen[bytes]] = []
"""Those of this process: what was started last ends whoever of them has ended."""


def start_upload(run_dir: Path, to: str | None = None, private: bool = False) -> None:
    """Upload an ended run by a process that outlives this one, its run's supervisor or a window.

    Nothing raises: how a run has ended stays true, whatever becomes of its upload. `to` is as for `push`.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_UPLOADS}
    command = [sys.executable, "-P", "-m", "mosaic.hub.uploads", str(run_dir), to or "", "private" * private]
    _started[:] = [one for one in _started if one.poll() is None]
    try:
        # By this mark the daemon ends whatever of the run is left.
        wear_mark(None)
        uploader = subprocess.Popen(
            command,
            cwd=run_dir,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        _started.append(uploader)
        first = Upload(UPLOADING, "", time.time(), private=private, process=_process(uploader.pid))
    except OSError as error:
        first = Upload(FAILED, "", time.time(), problem=f"it could not be started: {error.strerror}.")
    with contextlib.suppress(OSError):
        _write(run_dir, first)


def push(run_dir: Path, to: str | None = None, private: bool = False, best: bool = False) -> Upload:
    """Upload a run's policy; gives where it is. A MosaicError says what went wrong, and `hub.json` too.

    `to` is USER/MODEL, MODEL for the token's own user, or USER/ for CleanRL's usual name with that user or
    organization; without it that name with the token's own user. `private` concerns a model that is not there
    yet.
    """
    before = read_upload(run_dir)
    if before is not None and before.state == UPLOADING and (before.process or {}).get("pid") != os.getpid():
        raise ConflictError(
            f"Run {run_dir.name} is being uploaded already: `mosaic show` tells when it is there."
        )
    wanted = check_target(to)
    repo = "" if wanted is None or wanted.endswith("/") else wanted
    now = Upload(UPLOADING, repo, time.time(), private=private, process=_process(os.getpid()))
    _write(run_dir, now)
    try:
        done = _push(run_dir, wanted, best, now)
    except BaseException as error:
        known = read_upload(run_dir) or now
        told = str(error) if isinstance(error, Exception) else _CUT_OFF
        with contextlib.suppress(OSError):
            _write(run_dir, replace(known, state=FAILED, problem=told, at=time.time(), process=None))
        raise
    _write(run_dir, done)
    return done


def check_target(to: str | None) -> str | None:
    """What `push` is told as `to`, once it is known to be a name."""
    if not to:
        return None
    if to.endswith("/"):
        check_entity(to[:-1])
        return to
    return parse_repo(to) if "/" in to else parse_repo(f"me/{to}").removeprefix("me/")


def _push(run_dir: Path, wanted: str | None, best: bool, now: Upload) -> Upload:
    # Only here: the light half of whoever starts an upload reads no event files.
    from mosaic.hub.bundle import collect
    from mosaic.hub.card import FILE_NAME as CARD
    from mosaic.hub.card import write_card

    token = find_token()
    if token is None:
        raise UserError(NO_TOKEN)
    hub, bundle = Hub(token), collect(run_dir, best)
    name = usual_name(bundle.env_id, bundle.exp_name, bundle.seed)
    repo = wanted if wanted and not wanted.endswith("/") else f"{wanted or ''}{name}"
    _write(run_dir, replace(now, repo=repo))
    with hub.asked(f"The model {repo}"):
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        repo = hub.api.create_repo(repo, private=now.private or None, exist_ok=True).repo_id
    _write(run_dir, replace(now, repo=repo))
    files = {**bundle.files, CARD: write_card(bundle, repo)}
    with hub.asked(f"The model {repo}"):
        # Curves and films of an earlier upload have names of their own, and would stay.
        old = {name for name in hub.api.list_repo_files(repo) if _is_ours(name)} - set(files)
        gone = [CommitOperationDelete(path_in_repo=name) for name in sorted(old)]
        added = [
            CommitOperationAdd(
                path_in_repo=name, path_or_fileobj=str(file) if isinstance(file, Path) else file
            )
            for name, file in files.items()
        ]
        hub.api.create_commit(
            repo, [*gone, *added], commit_message=f"Run {run_dir.name}: {bundle.algo} on {bundle.env_id}"
        )
    return replace(now, state=UPLOADED, repo=repo, url=f"{endpoint()}/{repo}", at=time.time(), process=None)


def _is_ours(name: str) -> bool:
    return "tfevents" in name or name.endswith(".mp4") or name == "eval_summary.json"


def main(run_dir: str, to: str = "", private: str = "") -> int:
    """Upload a run; what goes wrong stands in its folder."""
    with contextlib.suppress(MosaicError):
        push(Path(run_dir), to, bool(private))
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
