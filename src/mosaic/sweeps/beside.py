"""What needs Optuna, in a process of its own beside whoever must not wait for it, such as the window.

`python -m mosaic.sweeps.beside importance FOLDER OBJECTIVE` prints which parameters of a sweep matter, as
JSON; `… dashboard STORAGE FOLDER PORT` serves optuna-dashboard on its study, on this machine only, until it
is ended.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mosaic.contract.errors import MosaicError
from mosaic.sweeps.study import COMPLETE, Study, read_study

MODULE = "mosaic.sweeps.beside"


def of_objective(study: Study, at: int) -> Study:
    """The same study as if it had this objective only."""
    trials = tuple(
        replace(one, values=one.values[at : at + 1])
        for one in study.with_state(COMPLETE)
        if len(one.values) > at
    )
    return replace(
        study, objectives=(study.objectives[at],), directions=(study.directions[at],), trials=trials
    )


def _importance(folder: str, at: str) -> None:
    from mosaic.sweeps.optuna_records import importance

    study = read_study(Path(folder))
    print(json.dumps(importance(of_objective(study, int(at))) if study else {}))


def _dashboard(storage: str, folder: str, port: str) -> None:
    from optuna_dashboard import run_server

    from mosaic.sweeps.storage import open_storage

    print(f"The dashboard is at http://127.0.0.1:{port} (Ctrl-C ends it)", flush=True)
    run_server(open_storage(storage, Path(folder), os.environ), host="127.0.0.1", port=int(port))


def main(arguments: Sequence[str]) -> int:
    what, *rest = arguments
    known: dict[str, Callable[..., None]] = {"importance": _importance, "dashboard": _dashboard}
    try:
        known[what](*rest)
    except MosaicError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
