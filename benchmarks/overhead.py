"""What the platform costs: CPU time of supervisor and daemon beside that of the training process.

python benchmarks/overhead.py --steps 500000
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tables import write_table

from mosaic.client import Client, train_config
from mosaic.client.daemon import stop_daemon

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float | None:
    """User and system time of a process so far; None when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / TICKS


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=500_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as var, Client.connect(Path(var)) as client:
        try:
            daemon = client.health().pid
            before = cpu_seconds(daemon) or 0.0
            run = client.submit(train_config("ppo", "CartPole-v1", total_timesteps=options.steps))
            for update in client.watch(run.run_id):
                if getattr(update, "status", "") == "EXEC":
                    break
            run = client.get(run.run_id)
            pids = {"training process": run.training_pid, "supervisor": run.supervisor_pid}
            used = dict.fromkeys(pids, 0.0)
            while any(Path(f"/proc/{pid}").exists() for pid in pids.values()):
                for name, pid in pids.items():
                    used[name] = max(used[name], cpu_seconds(pid or 0) or 0.0)
                time.sleep(0.1)
            run = client.wait(run.run_id)
            used["daemon"] = (cpu_seconds(daemon) or 0.0) - before
        finally:
            stop_daemon(client.paths)
    assert run.outcome == "completed", run.reason
    training = used["training process"]
    shares = {name: seconds / training for name, seconds in used.items()}
    together = shares["supervisor"] + shares["daemon"]
    rows = [[name, f"{seconds:.2f}", f"{shares[name]:.2%}"] for name, seconds in used.items()]
    rows.append(["supervisor and daemon", f"{together * training:.2f}", f"{together:.2%} (limit 2 %)"])
    write_table(
        "overhead",
        "Overhead",
        f"CPU seconds over one run of ppo on CartPole-v1, {options.steps:,} steps.",
        ["process", "CPU seconds", "share of training"],
        rows,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
