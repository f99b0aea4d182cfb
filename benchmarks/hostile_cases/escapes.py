"""Words of others that command a terminal, in every place where somebody may write, through every command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hostile_cases.ground import (
    OBEYED,
    Bad,
    Check,
    Done,
    Ground,
    at_terminal,
    expect,
    good,
    quiet,
    without_own_sequences,
)

ATTACKS = {
    "colours": "\x1b[31mred\x1b[0m",
    "a cleared screen": "\x1b[2J\x1b[H",
    "a window title": "\x1b]0;title\x07",
    "the clipboard": "\x1b]52;c;cm0gLXJmIC8=\x07",
    "a link": "\x1b]8;;http://127.0.0.1/\x1b\\link\x1b]8;;\x1b\\",
    "C1 controls": "\u009b31m\u009d0;title\u009c",
    "turned writing": "\u202egnp.exe\u202c \u2066x\u2069",
    "bell, backspace and carriage return": "\x07\x08\x08\rforged",
    "a query": "\x1b[6n\x1bP+q544e\x1b\\",
}
COMMANDS = (
    *(
        ["runs"],
        ["runs", "--json"],
        ["show", "RUN"],
        ["show", "RUN", "--json"],
        ["watch", "RUN"],
        ["watch", "RUN", "--json"],
    ),
    *(
        ["logs", "RUN"],
        ["logs", "RUN", "--stderr"],
        ["logs", "RUN", "--events"],
        ["logs", "RUN", "-f"],
        ["tag", "RUN"],
    ),
    *(["gc", "--dry-run", "--older-than", "0"], ["policies"], ["rerun", "RUN", "--dry-run"]),
)
SCRIPT = """import sys
attack = {attack!r}
sys.stdout.reconfigure(errors="replace")
print("out", attack, flush=True)
sys.stderr.write("ValueError: " + attack + "\\n")
sys.exit(3)
"""


def checks(ground: Ground) -> Iterator[Check]:
    client = ground.client()
    for name, attack in ATTACKS.items():
        (ground.user / "attack.py").write_text(SCRIPT.format(attack=attack))
        words = (
            "attack.py",
            "CartPole-v1",
            "--name",
            f"n{attack}",
            "--tag",
            f"t{attack}",
            "--extra",
            f"notes=x{attack}",
        )
        run = ground.finish(*words)
        run_id = str(run["run_id"])
        client.label(run_id, notes=f"later {attack}")
        for command in COMMANDS:
            filled = [run_id if word == "RUN" else word for word in command]
            yield Check(f"{name}: {' '.join(command)}", lambda filled=filled: _plain(ground.mosaic(*filled)))
        for command in (["runs"], ["show", "RUN"], ["watch", "RUN"]):
            filled = [run_id if word == "RUN" else word for word in command]
            yield Check(
                f"{name}: {' '.join(command)} at a terminal",
                lambda filled=filled: _plain_at_terminal(ground, *filled),
            )
        for wrong in (
            ["show", attack],
            ["train", "ppo", f"Env{attack}-v0", "--dry-run"],
            [attack],
            ["runs", f"--{attack}"],
        ):
            yield Check(
                f"{name}: error of {wrong[0][:6]!r} {len(wrong)}",
                lambda wrong=wrong: _plain(ground.mosaic(*wrong)),
            )
        yield Check(
            f"{name}: logs --raw has it", lambda run_id=run_id, attack=attack: _raw(ground, run_id, attack)
        )
        yield Check(
            f"{name}: --json has it", lambda run_id=run_id, attack=attack: _whole(ground, run_id, attack)
        )


def _plain(done: Done) -> None:
    quiet(done)
    expect(done.out or done.err, "nothing was shown")
    for text in (done.out, done.err):
        found = OBEYED.search(text.replace("\r\n", "\n")) or ("\r" in text.replace("\r\n", "\n"))
        if found:
            raise Bad(f"a terminal would obey this: {text[:300]!r}")


def _plain_at_terminal(ground: Ground, *words: str) -> None:
    done = quiet(at_terminal(ground, *words, columns=120))
    left = without_own_sequences(done.out)
    expect(not OBEYED.search(left), f"a terminal would obey this: {left[:300]!r}")
    expect("\x1b[2J" not in done.out and "\x1b[6n" not in done.out, "a command of others came through")


def _raw(ground: Ground, run_id: str, attack: str) -> None:
    done = good(ground.mosaic("logs", run_id, "--raw"))
    expect(attack.strip("\r") in done.out, f"{done.out[:200]!r}")


def _whole(ground: Ground, run_id: str, attack: str) -> None:
    told: dict[str, Any] = json.loads(good(ground.mosaic("show", run_id, "--json")).out)
    expect(told["run_name"].strip() == f"n{attack}".strip(), f"{told['run_name']!r}")
