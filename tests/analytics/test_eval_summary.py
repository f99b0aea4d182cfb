"""`eval_summary.json` says the same after it was read."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from mosaic.analytics.eval_summary import FILE_NAME, EvalScores, EvalSummary, read_eval_summary
from mosaic.contract.errors import StorageError

SCORES = EvalScores(
    batch=2,
    episodes=5,
    mean=10.5,
    median=10.0,
    min=1.0,
    max=20.0,
    std=3.25,
    interval=(9.5, 11.5),
    iqm=10.25,
    discounted_mean=4.5,
    mean_length=12.0,
    steps=60,
    cut_off=1,
    duration_seconds=0.5,
)
SUMMARY = EvalSummary({"algo": "ppo"}, 10, SCORES, (replace(SCORES, batch=1), SCORES))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    assert read_eval_summary(tmp_path) is None
    SUMMARY.write(tmp_path)
    assert read_eval_summary(tmp_path) == SUMMARY
    raw = json.loads((tmp_path / FILE_NAME).read_text())
    assert (raw["batch"], raw["mean"], raw["interval"]) == (2, 10.5, [9.5, 11.5])
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_numbers_that_json_has_not_are_null(tmp_path: Path) -> None:
    endless = replace(SCORES, mean=math.inf, interval=(math.nan, math.inf))
    replace(SUMMARY, overall=endless, batches=(endless,)).write(tmp_path)
    assert json.loads((tmp_path / FILE_NAME).read_text())["interval"] == [None, None]
    found = read_eval_summary(tmp_path)
    assert found is not None and math.isnan(found.overall.mean)


@pytest.mark.parametrize("text", ["", "[]", '{"format": 1}', '{"format": 99}'])
def test_another_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(StorageError, match=FILE_NAME):
        read_eval_summary(tmp_path)
