"""Bad input gets one line on stderr, the nearest valid name, exit code 2 and no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mosaic.cli import main
from mosaic.cli.app import COMMANDS, exit_code_for
from mosaic.cli.values import read_given
from mosaic.contract.errors import ConflictError, NotFoundError, StorageError


@pytest.fixture(autouse=True)
def _own_var(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOSAIC_VAR", str(tmp_path / "var"))


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["trian", "ppo"], "did you mean 'train'?"),
        (["--versoin"], "did you mean '--version'?"),
        (["runs", "--statsu", "EXEC"], "did you mean '--status'?"),
        (["runs", "--state", "traning"], "did you mean 'training'?"),
        (["runs", "-x"], "no option '-x'"),
        (["doctor", "extra-word"], "'extra-word' is one word too many"),
        (["runs", "--limit", "none"], "--limit: 'none' is not a positive whole number"),
        (["show"], "show needs RUN"),
        (["cancel"], "cancel needs RUN, or --all"),
        (["queue", "--first"], "queue needs the RUN that is to move"),
        (["queue", "01M7"], "needs --priority N, --before RUN or --first"),
        (["queue", "01M7", "--priority", "high"], "'high' is not a whole number from -1000 to 1000"),
        (["queue", "01M7", "--first", "--before", "01M8"], "not allowed with"),
        (["gc", "--older-than", "30"], "'30' is not a length of time"),
        (["gc", "--outcome", "faild"], "did you mean 'failed'?"),
        (["gc", "--json"], "add --yes to remove"),
        (["train", "ppo", "CartPole-v1", "--gpus-mandatory"], "add --gpus N"),
        (["train", "ppo", "CartPole-v1", "--priority", "1001"], "--priority: '1001' is not a whole number"),
        (["daemon", "strat"], "did you mean 'start'?"),
        (["extras", "install", "atrai"], "did you mean 'atari'?"),
        (["extras", "install"], "No optional set is named"),
        (["train"], "train needs ALGO and ENV"),
        (["train", "ppo"], "train needs ENV"),
        (["train", "pop", "CartPole-v1", "--gamma", "1"], "did you mean 'ppo'?"),
        (["train", "ppo", "CartPole-v2000"], "CartPole"),
        (["train", "ppo", "CartPole-v1", "--set", "learning_rat=1e-3"], "did you mean 'learning_rate'?"),
        (["train", "ppo", "CartPole-v1", "--learning-rat", "1e-3"], "did you mean '--learning-rate'?"),
        (["train", "ppo", "CartPole-v1", "--set", "learning_rate=fast"], "'fast'"),
        (["train", "ppo", "CartPole-v1", "--set", "gamma"], "not of the form name=value"),
        (["train", "ppo", "CartPole-v1", "--gamma", "0.9", "--set", "gamma=0.8"], "given twice"),
        (["train", "ppo", "CartPole-v1", "--steps", "lots"], "'lots' is not a positive whole number"),
        (["train", "ppo", "CartPole-v1", "--seeds", "5-1"], "not a list of seeds"),
        (["train", "ppo", "CartPole-v1", "--seed", "1", "--seeds", "1-2"], "not both"),
        (["train", "ppo", "CartPole-v1", "--seeds", f"1,{2**64}", "--dry-run"], f"'seed' is {2**64}"),
        (["train", "ppo", "CartPole-v1", "--cpus", "1000000", "--dry-run"], "'resources.cpus' is 1000000"),
        (["--var"], "--var needs a value"),
        (["train", "ppo", "CartPole-v1", "--env-kwargs", "gravity"], "not a JSON object"),
        (["train", "ppo", "CartPole-v1", "--python", "no-such-python"], "'no-such-python'"),
        (["train", "--config", "no-such-file.json"], "No such file"),
        (["train", "ppo", "CartPole-v1", "--config", "run.json"], "leave ALGO and ENV out"),
        (["train", "no_such_script.py", "CartPole-v1"], "no_such_script.py"),
    ],
)
def test_a_mistake_gets_one_helpful_line(
    argv: list[str], expected: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("mosaic: ")
    assert err.count("\n") == 1
    assert expected in err
    assert not (tmp_path / "var").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "is not valid JSON"),
        ("[]", "The run config is not valid"),
        ('{"run_name": "x", "metadata": {"worker": {"type": "cleanrl"}}, "tagz": []}', "did you mean 'tags'"),
        ('{"run_name": "x", "metadata": {"worker": {"type": "cleanr"}}}', "did you mean 'cleanrl'?"),
        ('{"run_name": "x", "metadata": {"worker": {"type": "cleanrl"}}}', "algo"),
        (
            '{"run_name": "x", "metadata": {"worker": {"type": "cleanrl", "config": '
            '{"algo": "ppo", "env_id": "CartPole-v1", "total_timesteps": 9, "extras": [1]}}}}',
            "extras",
        ),
    ],
)
def test_a_wrong_config_file_is_refused_before_anything_starts(
    text: str, expected: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "run.json"
    file.write_text(text)
    assert main(["train", "--config", str(file)]) == 2
    err = capsys.readouterr().err
    assert expected in err
    assert err.count("\n") == 1
    assert not (tmp_path / "var").exists()


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("zero", "it has more than 1,048,576 bytes"),
        ("folder", "Is a directory"),
        ("pipe", "nothing came from it for 0.1 s"),
        ("huge", "it has more than 1,048,576 bytes"),
        ("deep", "is not valid JSON"),
    ],
)
@pytest.mark.parametrize("option", ["--config", "--curriculum"])
def test_what_is_no_config_file_holds_nothing_up(
    place: str,
    option: str,
    expected: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("mosaic.cli.values._PIPE_SECONDS", 0.1)
    path = tmp_path / f"{place}.json"
    if place == "pipe":
        # Nobody writes to it.
        os.mkfifo(path)
    elif place == "huge":
        path.write_bytes(b" " * (2**20 + 1))
    elif place == "deep":
        path.write_text("[" * 100_000)
    elif place == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    argv = ["train", option, str(path), *(["ppo"] if option == "--curriculum" else [])]
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert expected.removeprefix("is not valid ") in err
    assert err.count("\n") == 1


def test_a_config_may_come_through_a_pipe(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.write(write, b"[1]")
    os.close(write)
    assert read_given(Path(f"/dev/fd/{read}")) == b"[1]"
    os.close(read)


@pytest.mark.parametrize("argv", [["--debug", "show"], ["show", "--debug"]])
def test_debug_shows_the_traceback(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("mosaic: show needs RUN")


def test_the_debug_variable_does_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOSAIC_DEBUG", "1")
    assert main(["show"]) == 2
    assert "Traceback" in capsys.readouterr().err


WITHOUT_VAR = ("envs", "extras", "phase", "scripts")


@pytest.mark.parametrize("command", [one.name for one in COMMANDS if one.name not in WITHOUT_VAR])
def test_a_var_that_is_a_file_is_refused(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_TOKEN", "one that push asks for first")
    file = tmp_path / "file"
    file.write_text("")
    words = {
        **{name: [] for name in ("runs", "doctor", "queue", "gc", "policies", "gui", "filters")},
        **{name: ["show", "last"] for name in ("sweep", "benchmark")},
        "plot": ["last", "-o", str(tmp_path / "curve.svg")],
        "report": ["last", "-o", str(tmp_path / "report.html")],
        "export": ["last", "-o", str(tmp_path / "run.tar")],
        "train": ["ppo", "CartPole-v1"],
        "daemon": ["start"],
        "snapshot": ["last", "now.png"],
        "record": ["last", "film.mp4"],
    }
    code = main([command, *words.get(command, ["last"]), "--var", str(file)])
    if command == "doctor":
        assert code == 1
        assert "cannot be written" in capsys.readouterr().out
    else:
        err = capsys.readouterr().err
        assert (code, err.count("\n")) == (2, 1)
        assert str(file) in err


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (ConflictError("Run X is still training."), 1, "mosaic: Run X is still training.\n"),
        (StorageError("The disk is full."), 2, "mosaic: The disk is full.\n"),
        (PermissionError(13, "Permission denied", "/x"), 2, "mosaic: /x cannot be used (Permission denied)"),
        (RuntimeError("two\nlines"), 1, "mosaic: Something unexpected went wrong (RuntimeError: two lines)"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_every_exception_has_its_line_and_code(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_for(error, debug=False) == code
    err = capsys.readouterr().err
    assert err.startswith(line)
    assert err.count("\n") == (1 if line else 0)


def test_commands_in_errors_are_named_as_the_user_can_type_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = NotFoundError("There is no run 'X': `mosaic runs` lists them, `./mosaic doctor` checks.")
    monkeypatch.chdir(Path(__file__).parents[2])
    exit_code_for(error, debug=False)
    assert "`./mosaic runs` lists them, `./mosaic doctor`" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["/somewhere/bin/mosaic"])
    exit_code_for(error, debug=False)
    assert "`mosaic runs` lists them, `mosaic doctor`" in capsys.readouterr().err


def test_a_sentence_about_something_endless_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "ppo", "a" * 100_000, "--dry-run"]) == 2
    said = capsys.readouterr().err
    assert len(said) < 2000
    assert said.startswith("mosaic: ")
    assert " … " in said


def test_a_full_device_and_a_folder_that_is_gone_are_told_in_one_sentence(tmp_path: Path) -> None:
    command = f"{sys.executable} -m mosaic"
    gone = tmp_path / "gone"
    for words, sentence, code in (
        (f"{command} --help > /dev/full", "mosaic: The output cannot be written: there is no space left", 1),
        (
            f"mkdir {gone} && cd {gone} && rmdir {gone} && {command} runs",
            "mosaic: The current folder is no",
            2,
        ),
    ):
        done = subprocess.run(["bash", "-c", words], capture_output=True, text=True)
        assert done.stderr.startswith(sentence)
        assert (done.stderr.count("\n"), done.returncode) == (1, code)
