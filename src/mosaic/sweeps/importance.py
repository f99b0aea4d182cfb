"""`python -m mosaic.sweeps.importance FOLDER OBJECTIVE`: which parameters of a sweep matter, as JSON.

A process of its own for whoever must not wait for Optuna to be imported, such as the window.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mosaic.contract.errors import MosaicError
from mosaic.sweeps.study import COMPLETE, Study, read_study


def of_objective(study: Study, at: int) -> Study:
    """The same study as if it had this objective only."""
    trials = tuple(
        replace(one, values=one.values[at : at + 1])
        for one in study.with_state(COMPLETE)
        if len(one.values) > at and one.values[at] is not None
    )
    return replace(
        study, objectives=(study.objectives[at],), directions=(study.directions[at],), trials=trials
    )


def main(arguments: Sequence[str]) -> int:
    folder, at = arguments
    try:
        from mosaic.sweeps.optuna_records import importance

        study = read_study(Path(folder))
        print(json.dumps(importance(of_objective(study, int(at))) if study else {}))
    except MosaicError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
