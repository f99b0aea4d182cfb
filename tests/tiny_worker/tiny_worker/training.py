"""The training process: counts, and tells of each step what the config asks for.

    python training.py --parent PID --go-fd N CONFIG STEPS_FD

CONFIG is JSON; STEPS_FD is a pipe to the supervisor, for runs that publish.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import nullcontext
from io import TextIOWrapper

from mosaic.worker.tether import hold

_CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


def main(argv: list[str]) -> int:
    _, parent, _, go_fd, text, *steps_fd = argv
    hold(int(parent), int(go_fd))
    config = json.loads(text)
    for _ in range(config["children"]):
        os.posix_spawn(sys.executable, [sys.executable, "-S", "-c", _CHILD], os.environ, setsid=True)
    with open(int(steps_fd[0]), "w") if steps_fd else nullcontext() as pipe:
        count(config, pipe)
    if config["complain"]:
        print(config["complain"], file=sys.stderr)
    return int(config["exit_code"])


def count(config: dict, pipe: TextIOWrapper | None) -> None:
    for step in range(1, config["steps"] + 1):
        print(f"step={step}", flush=True)
        if pipe is not None:
            line = {"step": step, "padding": "x" * config["padding"]}
            print("steps", json.dumps(line), file=pipe, flush=True)
            if step % config["episode_steps"] == 0:
                episode = {"episode": step // config["episode_steps"], "return": step}
                print("episodes", json.dumps(episode), file=pipe, flush=True)
        time.sleep(config["pause"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
