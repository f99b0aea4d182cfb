"""What the daemon's log holds."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from mosaic.trainer import log


class ExecuteBatchError(Exception):
    """What gRPC raises when its caller has left; the real one cannot be imported by a stable name."""


@pytest.mark.parametrize(("kind", "told"), [(ExecuteBatchError, False), (ValueError, True)])
def test_a_caller_who_left_is_not_an_error_of_the_daemon(
    tmp_path: Path, kind: type[Exception], told: bool
) -> None:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    log.set_up(tmp_path / "trainer.log")
    try:
        try:
            raise kind("while it was answered")
        except kind:
            logging.getLogger("grpc._cython.cygrpc").exception("a call has failed")
    finally:
        for handler in [one for one in root.handlers if one not in before]:
            root.removeHandler(handler)
            handler.close()
        root.setLevel(level)
    assert ("Traceback" in (tmp_path / "trainer.log").read_text()) is told
