"""Numbers in environment variables."""

from __future__ import annotations

import pytest

from conftest import RunMosaic
from mosaic.contract.errors import UserError
from mosaic.contract.process import GRACE_VARIABLE, grace_seconds
from mosaic.contract.variables import list_variable, number_variable, whole_variable

NAME = "MOSAIC_TEST_NUMBER"


def test_a_variable_that_says_nothing_leaves_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (number_variable(NAME, 2.5), whole_variable(NAME, 3, 1), list_variable(NAME)) == (2.5, 3, None)
    monkeypatch.setenv(NAME, " ")
    assert (number_variable(NAME, 2.5), whole_variable(NAME, 3, 1), list_variable(NAME)) == (2.5, 3, ())


def test_numbers_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, " 12 ")
    assert (number_variable(NAME, 0.0), whole_variable(NAME, 0, 1), list_variable(NAME)) == (12.0, 12, (12,))
    monkeypatch.setenv(NAME, "2, 0,2")
    assert list_variable(NAME) == (2, 0)


@pytest.mark.parametrize("text", ["abc", "-1", "nan", "1e400", "1,x", "1,,2", ",", "٣", "9" * 30])
def test_a_wrong_number_is_told_with_its_variable(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(NAME, text)
    for read in (lambda: whole_variable(NAME, 1, 1), lambda: list_variable(NAME)):
        with pytest.raises(UserError, match=f"{NAME} is '{text}"):
            read()
    monkeypatch.setenv(GRACE_VARIABLE, text)
    if text != "٣":
        with pytest.raises(UserError, match=f"{GRACE_VARIABLE} is '{text}"):
            grace_seconds()


@pytest.mark.parametrize(
    ("variable", "text"),
    [("MOSAIC_CPUS", "abc"), ("MOSAIC_CPUS", "-1"), ("MOSAIC_GPUS", "a,b"), ("MOSAIC_GRACE_SECONDS", "abc")],
)
def test_a_command_that_starts_the_daemon_says_which_variable_is_wrong(
    run_mosaic: RunMosaic, variable: str, text: str
) -> None:
    done = run_mosaic("daemon", "start", check=False, env={variable: text})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"mosaic: {variable} is '{text}', but must be ")
