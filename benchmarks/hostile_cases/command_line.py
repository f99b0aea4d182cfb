"""Wrong words on the command line: each is refused in one sentence, and nothing is made for it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from hostile_cases.ground import Check, Ground, absent, answered, expect, good, refused

DEEP = "[" * 900 + "]" * 900
OPTIONS: dict[str, tuple[str, ...]] = {
    "--total-timesteps": ("0", "-1", "abc", "", "nan", "inf", "1e400", "1.5", "9" * 30, "1 000", "1"),
    "--seed": ("-1", "abc", "1.5", "", "nan", str(2**64), str(2**63), "9" * 30),
    "--seeds": ("3,3,3", "", "5-1", "a-b", "1-", "1,,2", "1-100000000", f"1,{2**64}"),
    "--cpus": ("0", "-1", "abc", "1.5", "", "1000000", "9" * 30),
    "--memory-mb": ("0", "-1", "abc", "", "9" * 12, "9" * 30),
    "--gpus": ("-1", "abc", "1.5", "", "9" * 30),
    "--max-minutes": ("0", "-1", "abc", "nan", "inf", ""),
    "--max-restarts": ("-1", "abc", "1.5", "", "9" * 30),
    "--priority": ("1001", "-1001", "abc", "1.5", "9" * 30),
    "--set": (
        *("", "=1", "learning_rate", "learning_rate=abc", "learning_rate=nan", "learning_rate=inf", "nope=1"),
        *("learning_rate=1e999", "num_envs=0", "num_envs=-1", "num_envs=1.5", "num_minibatches=1000000"),
        *(
            "num_steps=0",
            "gamma=2",
            "gamma=-1",
            "anneal_lr=maybe",
            "env_id=Acrobot-v1",
            "seed=3",
            "num_envs=" + "9" * 20,
        ),
    ),
    "--name": ("x" * 1000, "x" * 100_000),
    "--tag": ("x" * 5000,),
    "--env-kwargs": ("[]", "{", "1", "", DEEP, '{"a": NaN}'),
    "--curriculum": ("nope", "{", "[1]", '[{"env_id": 1}]', "/dev/zero", DEEP),
    "--extra": ("", "=x", "mode=fly", "eval_episodes=abc", "fastlane_grid_limit=-1", "fastlane_video_mode=x"),
    "--python": ("/nowhere/python", "/etc/passwd", "/", "python-that-is-not-there"),
    "--env": ("", "=x", "1X=2", "A B=1"),
    "--extend": ("5", "abc", "-1"),
}
ENVIRONMENTS = (
    *(
        "",
        " ",
        "NoSuch-v0",
        "cartpole-v1",
        "CartPole-v99",
        "../../etc/passwd",
        "/",
        "a" * 500,
        "a" * 100_000,
    ),
    *("no_such_module:Env-v0", ":", ":Env-v0", "a:b:c", "os:Env-v0", "CartPole-v1\n", "\udcff", "\x1b[31m"),
)
ALGORITHMS = (
    *(
        "",
        " ",
        "pppo",
        "PPO",
        "missing.py",
        "./missing.sh",
        "/",
        ".",
        "..",
        "./",
        "/dev/zero",
        "/dev/null",
        "/dev/stdin",
    ),
    *(
        "a.b.c",
        "-",
        "--",
        "binary.sh",
        "folder.sh",
        "folder.py",
        "pipe.sh",
        "pipe.py",
        "loop.py",
        "a" * 500,
        "\udcff",
    ),
)
FILES = (
    *(
        "missing.json",
        "/dev/zero",
        "/dev/null",
        "/dev/full",
        "folder.json",
        "binary.json",
        "empty.json",
        "list.json",
    ),
    *(
        "deep.json",
        "deeper.json",
        "pipe.json",
        "huge.json",
        "latin.json",
        "half.json",
        "loop.json",
        "/proc/self/mem",
    ),
    *("many.json", "", "number.json", "unknown.json", "nan.json", "a" * 500 + ".json"),
)
ORIGINS = (
    "nope",
    "",
    "/dev/zero",
    "binary.npz",
    "folder.npz",
    "pipe.npz",
    "binary.cleanrl_model",
    "empty.npz",
    "/",
)
WORDS = (
    *(
        ["--nope"],
        ["train", "--nope"],
        ["tran"],
        ["runs", "--limit"],
        ["runs", "--limit", "-1"],
        ["runs", "--limit", "x"],
    ),
    *(
        ["runs", "--limit", "9" * 30],
        ["runs", "--state", "flying"],
        ["logs"],
        ["logs", "last", "-n", "-1"],
        ["help", "nope"],
    ),
    *(
        ["gc", "--keep", "-1"],
        ["gc", "--older-than", "soon"],
        ["gc", "--outcome", "nice"],
        ["gc", "--older-than", "-1d"],
    ),
    *(
        ["queue", "last", "--priority", "x"],
        ["daemon", "fly"],
        ["daemon", "start", "--idle", "x"],
        ["show"],
    ),
    *(
        ["extras", "install", "nope"],
        ["extras", "install", "../x"],
        ["snapshot", "last", "x.txt"],
        ["tag"],
        ["rm"],
        ["--var"],
    ),
    *(
        ["train", "ppo", "CartPole-v1", "Acrobot-v1"],
        ["train"],
        ["train", "ppo"],
        ["eval"],
        ["play"],
        ["watch"],
        ["record"],
    ),
)


def make_files(user: Path) -> None:
    """Files that are none, do not end, or do not hold what they should."""
    config = {"run_name": "x", "metadata": {"worker": {"type": "cleanrl", "config": {}}}}
    for suffix in (".sh", ".py", ".json", ".npz", ".cleanrl_model"):
        (user / f"binary{suffix}").write_bytes(bytes(range(256)) * 16)
        (user / f"folder{suffix}").mkdir()
        (user / f"empty{suffix}").write_bytes(b"")
        (user / f"loop{suffix}").symlink_to(user / f"loop{suffix}")
        os.mkfifo(user / f"pipe{suffix}")
    texts = {
        "list": "[]",
        "number": "1",
        "deep": DEEP,
        "deeper": '{"run_name": ' * 50_000,
        "half": json.dumps({**config, "run_name": "\ud800"}),
        "unknown": json.dumps({**config, "nope": 1}),
        "nan": json.dumps({**config, "schedule": {"max_wallclock_minutes": float("nan")}}),
        "many": json.dumps({**config, "tags": [f"tag{number}" for number in range(2000)]}),
    }
    for name, text in texts.items():
        (user / f"{name}.json").write_text(text)
    (user / "latin.json").write_bytes(b'{"run_name": "caf\xe9"}')
    with (user / "huge.json").open("w") as file:
        file.write('{"run_name": "' + "x" * 40_000_000 + '"}')


def checks(ground: Ground) -> Iterator[Check]:
    make_files(ground.user)
    for option, values in OPTIONS.items():
        for value in values:
            yield _refusal(
                ground,
                f"train {option} {value[:30]!r}",
                "train",
                "ppo",
                "CartPole-v1",
                f"{option}={value}",
                "--dry-run",
            )
    for env_id in ENVIRONMENTS:
        yield _refusal(ground, f"train ppo {env_id[:30]!r}", "train", "ppo", env_id, "--dry-run")
    for algo in ALGORITHMS:
        yield _refusal(
            ground, f"train {algo[:30]!r}", "train", algo, "CartPole-v1", "--steps", "1000", "--dry-run"
        )
    for file in FILES:
        yield _refusal(ground, f"train --config {file[:30]!r}", "train", f"--config={file}", "--dry-run")
    for origin in ORIGINS:
        yield _refusal(ground, f"train --resume {origin[:30]!r}", "train", f"--resume={origin}", "--dry-run")
        yield _refusal(ground, f"eval {origin[:30]!r}", "eval", origin, "--dry-run")
    for words in WORDS:
        yield _refusal(ground, " ".join(words)[:40], *words)
    tags = [f"--tag=t{number}" for number in range(2000)]
    yield _refusal(ground, "2,000 tags", "train", "ppo", "CartPole-v1", "--dry-run", *tags)
    yield from _right_ones(ground)


def _refusal(ground: Ground, name: str, *words: str) -> Check:
    return Check(name, lambda: _refused(ground, *words))


def _refused(ground: Ground, *words: str) -> None:
    var = ground.fresh()
    refused(ground.mosaic(*words, var=var))
    absent(var)


def _right_ones(ground: Ground) -> Iterator[Check]:
    """What must not be refused for being near to what is."""
    for words in (
        ("--seed", str(2**31 - 1)),
        ("--seeds", "1-3"),
        ("--seeds", "7"),
        ("--steps", "500k"),
        ("--set", "learning_rate=1e-3"),
        ("--name", "naïve 日本 👍"),
        ("--name", "x" * 200),
        ("--priority", "-1000"),
        ("--max-minutes", "0.5"),
        ("--env-kwargs", "{}"),
    ):
        yield Check(f"{' '.join(words)[:40]} is right", lambda words=words: _dry_run(ground, *words))


def _dry_run(ground: Ground, *words: str) -> None:
    var = ground.fresh()
    done = good(ground.mosaic("train", "ppo", "CartPole-v1", *words, "--dry-run", var=var))
    expect(done.out.strip(), "the dry run tells nothing")
    absent(var)


READING = (
    *(
        ["runs"],
        ["runs", "--json"],
        ["show", "last"],
        ["show", "01M7", "--json"],
        ["watch", "last"],
        ["logs", "last"],
    ),
    *(
        ["queue"],
        ["queue", "--json"],
        ["policies"],
        ["policies", "--json"],
        ["daemon"],
        ["daemon", "status"],
        ["daemon", "stop"],
    ),
    *(
        ["cancel", "last"],
        ["cancel", "--all"],
        ["pause", "last"],
        ["resume", "last"],
        ["rm", "last", "--yes"],
    ),
    *(
        ["tag", "last"],
        ["tag", "last", "--add", "x"],
        ["gc", "--dry-run"],
        ["gc", "--yes"],
        ["rerun", "last"],
    ),
    *(
        ["snapshot", "last", "x.png"],
        ["eval", "last"],
        ["train", "--resume", "last"],
        ["scripts"],
        ["extras"],
    ),
    *(
        ["tensorboard", "last"],
        ["doctor"],
        ["doctor", "--json"],
        ["--help"],
        ["--version"],
        ["train", "--help"],
    ),
)


def reading_checks(ground: Ground) -> Iterator[Check]:
    """Commands that read make no folder and start no daemon."""
    for words in READING:
        yield Check(f"{' '.join(words)} where nothing is", lambda words=words: _reads(ground, *words))
    for words in (["runs"], ["daemon", "status"], ["train", "ppo", "CartPole-v1", "--detach"]):
        name = " ".join(words)
        yield Check(f"{name} where the var folder is a file", lambda words=words: _file(ground, *words))
    for words in (["runs"], ["daemon", "status"]):
        name = " ".join(words)
        yield Check(f"{name} where it is a link to nowhere", lambda words=words: _dangling(ground, *words))


def _reads(ground: Ground, *words: str) -> None:
    var = ground.fresh()
    answered(ground.mosaic(*words, var=var))
    pid = ground.daemon_pid(var)
    expect(pid is None, f"a daemon was started (pid {pid})")
    absent(var)


def _file(ground: Ground, *words: str) -> None:
    var = ground.fresh()
    var.write_text("mine")
    answered(ground.mosaic(*words, var=var))
    expect(var.read_text() == "mine", "it was changed")


def _dangling(ground: Ground, *words: str) -> None:
    var = ground.fresh()
    var.symlink_to(f"{var.name}-nowhere")
    answered(ground.mosaic(*words, var=var))
    absent(var.with_name(f"{var.name}-nowhere"))


IDS = (
    "",
    "nope",
    "..",
    "%",
    "_",
    "Z",
    "a" * 100_000,
    "'; DROP TABLE runs; --",
    "\x1b[31m",
    "01M7\n",
    "\udcff",
    "last:best:x",
)
ASKING = (
    *(
        ["show"],
        ["logs"],
        ["watch"],
        ["pause"],
        ["resume"],
        ["cancel"],
        ["rm", "--yes"],
        ["tag", "--add", "x"],
        ["rerun"],
    ),
    *(["queue", "--first"], ["snapshot", "x.png"], ["tensorboard"]),
)


def id_checks(ground: Ground) -> Iterator[Check]:
    """Runs that there are not, by strange names."""
    ground.client()
    kept = ground.finish(str(_quick(ground)), "CartPole-v1")
    for command in ASKING:
        for run_id in IDS:
            name, *options = command
            words = [name, run_id, *options]
            yield Check(
                f"{name} {run_id[:20]!r}", lambda words=words: refused(ground.mosaic(*words), codes=(1, 2))
            )
    yield Check("the run that there is stays as it was", lambda: _unchanged(ground, kept))


def _quick(ground: Ground) -> Path:
    path = ground.user / "quick.py"
    path.write_text("print('done')\n")
    return path


def _unchanged(ground: Ground, before: dict[str, object]) -> None:
    (now,) = ground.json("runs", "--all")
    expect(
        now["run_id"] == before["run_id"] and now["outcome"] == "completed" and now["tags"] == [],
        f"it is {now}",
    )
