"""Keys and passwords: what is declared stands nowhere; what is not is neither dropped nor taken silently."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from hostile_cases.ground import Bad, Check, Ground, expect, good, refused

KEY = "sk-Zq4Jw81LmX0vT7bRk3Nc9Hy2"
SCRIPT = """import argparse, hashlib, os
parser = argparse.ArgumentParser()
names = "env-id seed total-timesteps api-key token pad-token eos-token key-frames tokenizer"
for name in names.split():
    parser.add_argument("--" + name, default="")
given = vars(parser.parse_args())
for name in sorted(given):
    if name not in ("api_key", "token"):
        print(name, "=", given[name])
for name in ("api_key", "token"):
    print(name, "hash", hashlib.sha256(given[name].encode()).hexdigest()[:12] if given[name] else "none")
print("variable hash", hashlib.sha256(os.environ.get("MY_KEY", "").encode()).hexdigest()[:12])
"""
WAYS: dict[str, tuple[list[str], dict[str, str]]] = {
    "--secret": (["--set", f"api_key={KEY}", "--secret", "api_key"], {}),
    "@env": (["--set", "api_key=@env:MY_KEY"], {"MY_KEY": KEY}),
    "--extra and --secret": (["--extra", f"token={KEY}", "--secret", "token"], {}),
    "--env and --secret": (["--env", f"MY_KEY={KEY}", "--secret", "MY_KEY"], {}),
    "wandb_api_key": (["--extra", f"wandb_api_key={KEY}"], {}),
    "WANDB_API_KEY": ([], {"WANDB_API_KEY": KEY}),
    "a run config": (["--config", "secret.json"], {}),
}
LOOKS_SO = {
    "an OpenAI key": ["--set", f"api_key={KEY}"],
    "a key as an extra": ["--extra", f"openai_key={KEY}"],
    "a GitHub token": ["--set", "token=ghp_Zq4Jw81LmX0vT7bRk3Nc9Hy2Qw6Zq4Jw81Lm"],
    "an address with a password": ["--extra", "optuna_db=postgresql://me:Pa55w0rd@127.0.0.1/db"],
    "an AWS key": ["--extra", "notes=AKIAIOSFODNN7EXAMPLE"],
    "a variable": ["--env", f"OPENAI_API_KEY={KEY}"],
    "a private key": ["--extra", "notes=-----BEGIN RSA PRIVATE KEY-----"],
    "a tag": ["--tag", KEY],
}
HARMLESS = {
    "pad_token": "<pad>",
    "eos_token": "</s>",
    "key_frames": "12",
    "tokenizer": "bpe",
    "token": "word",
    "api_key": "",
}


def checks(ground: Ground) -> Iterator[Check]:
    (ground.user / "keys.py").write_text(SCRIPT)
    worker = {"algo": str(ground.user / "keys.py"), "env_id": "CartPole-v1", "run_id": "${RUN_ID}", "seed": 1}
    worker |= {"total_timesteps": 0, "extras": {"api_key": KEY}}
    config = {
        "run_name": "x",
        "secrets": ["api_key"],
        "metadata": {"worker": {"type": "cleanrl", "config": worker}},
    }
    (ground.user / "secret.json").write_text(json.dumps(config))
    for way, (words, env) in WAYS.items():
        told = _Told(ground, words, env)
        yield Check(f"{way}: the run completes", told.completes)
        for place in ("configs", "database", "manifest and provenance", "logs", "everything else"):
            yield Check(f"{way}: not in {place}", lambda told=told, place=place: told.is_nowhere(place))
        yield Check(f"{way}: not on a screen", told.is_not_shown)
        if "wandb" not in way.lower():
            yield Check(f"{way}: the script got it", told.has_arrived)
    good(ground.mosaic("daemon", "start"))
    for name, words in LOOKS_SO.items():
        yield Check(f"{name}, undeclared, is not taken", lambda words=words: _stopped(ground, words))
    for name, value in HARMLESS.items():
        yield Check(f"{name}={value} arrives", lambda name=name, value=value: _kept(ground, name, value))
    yield Check(
        "a key that is to be stored: --plain",
        lambda: good(ground.mosaic(*_train("--set", f"api_key={KEY}", "--plain", "api_key", "--dry-run"))),
    )
    yield Check(
        "--secret of what is not there",
        lambda: refused(ground.mosaic(*_train("--secret", "nope", "--dry-run"))),
    )
    yield Check("--secret with the value itself", lambda: _never_echoed(ground))


def _train(*words: str) -> list[str]:
    return ["train", *(() if "--config" in words else ("keys.py", "CartPole-v1")), *words]


class _Told:
    """One way to tell a secret, in a var folder of its own."""

    def __init__(self, ground: Ground, words: list[str], env: dict[str, str]) -> None:
        self._ground, self._words, self._env = ground, words, env
        self._var, self._run_id = ground.fresh(), "last"

    def completes(self) -> None:
        run = self._ground.finish(*_train(*self._words)[1:], var=self._var, **self._env)
        self._run_id = str(run["run_id"])
        expect(run["outcome"] == "completed", f"{run['outcome']}: {run['reason']}")

    def is_nowhere(self, place: str) -> None:
        """No file of the kind holds the key."""
        for path in self._var.rglob("*"):
            kinds = {
                "configs": "configs" in path.parts,
                "database": "sqlite" in path.name,
                "manifest and provenance": path.name in ("analytics.json", "provenance.json"),
                "logs": "logs" in path.parts,
            }
            mine = kinds[place] if place in kinds else not any(kinds.values())
            if mine and path.is_file() and KEY.encode() in path.read_bytes():
                raise Bad(f"it stands in {path.relative_to(self._var)}")

    def is_not_shown(self) -> None:
        run_id = self._run_id
        for words in (["show", run_id], ["show", run_id, "--json"], ["runs", "--json"], ["logs", run_id]):
            done = self._ground.mosaic(*words, var=self._var)
            expect(KEY not in done.out + done.err, f"{' '.join(words)} shows it")

    def has_arrived(self) -> None:
        said = good(self._ground.mosaic("logs", self._run_id, var=self._var)).out
        expect(hashlib.sha256(KEY.encode()).hexdigest()[:12] in said, f"{said[-300:]!r}")


def _stopped(ground: Ground, words: list[str]) -> None:
    before = len(ground.json("runs", "--all"))
    done = refused(ground.mosaic(*_train(*words, "--detach")), "secret")
    secret = words[-1].partition("=")[2] or words[-1]
    expect(secret not in done.err, f"the sentence has it: {done.err!r}")
    expect(len(ground.json("runs", "--all")) == before, "a run was made")


def _kept(ground: Ground, name: str, value: str) -> None:
    run = ground.finish("keys.py", "CartPole-v1", "--set", f"{name}={value}")
    expect(run["outcome"] == "completed", f"{run['reason']}")
    stored = json.dumps(run["config"]["metadata"]["worker"]["config"])
    expect(f'"{name}"' in stored, f"it was dropped: {stored[-300:]}")
    told = good(ground.mosaic("logs", str(run["run_id"]))).out
    expect(name in ("token", "api_key") or f"{name} = {value}" in told, f"{told!r:.300}")


def _never_echoed(ground: Ground) -> None:
    done = refused(ground.mosaic(*_train("--secret", KEY, "--dry-run")))
    expect(KEY not in done.err, f"{done.err!r}")
