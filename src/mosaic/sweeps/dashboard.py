"""Optuna's dashboard on the study of a sweep, in a process of its own, on this machine only."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mosaic.sweeps.storage import open_storage


def main(arguments: Sequence[str]) -> int:
    """Serve the storage of the sweep in a folder on a port, until the process ends."""
    storage, folder, port = arguments
    from optuna_dashboard import run_server

    print(f"The dashboard is at http://127.0.0.1:{port} (Ctrl-C ends it)", flush=True)
    run_server(open_storage(storage, Path(folder), os.environ), host="127.0.0.1", port=int(port))
    return 0
