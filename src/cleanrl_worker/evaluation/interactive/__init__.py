"""A trained policy in its environment, step by step: JSON lines in and out (see docs/interactive.md)."""

from __future__ import annotations

from collections.abc import Sequence

from cleanrl_worker.evaluation.interactive.messages import take_over_stdout
from mosaic.contract.process import open_closed_streams


def main(argv: Sequence[str] | None = None) -> int:
    """Serve one session on stdin and stdout; returns the exit code."""
    open_closed_streams()
    # What is imported next may greet on stdout, also from C.
    replies = take_over_stdout()
    from cleanrl_worker.evaluation.interactive.serving import serve

    return serve(argv, replies)
