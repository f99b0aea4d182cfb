"""How soon a submitted run works: submit to HSHK, to EXEC and to the first environment step.

python benchmarks/startup.py --rounds 10

Each round also times `python -c "import torch, gymnasium, tensorboard"`, the least that training needs.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tables import write_table

from mosaic.client import Client, train_config
from mosaic.client.daemon import stop_daemon

HERE = Path(__file__).parent
IMPORTS = "import torch, gymnasium, tensorboard"


def measure_run(client: Client) -> dict[str, float]:
    """Seconds from the submit to each point of one short run."""
    config = train_config("ppo", "first_step_env:FirstStep-v0", total_timesteps=2_000, folder=HERE)
    submitted = time.time()
    run = client.wait(client.submit(config).run_id, timeout=120)
    assert run.outcome == "completed", run.reason
    reached = {entry.status: entry.at - submitted for entry in run.history}
    first_step = float((Path(run.run_dir) / "first_step").read_text()) - submitted
    return {"HSHK": reached["HSHK"], "EXEC": reached["EXEC"], "first environment step": first_step}


def measure_imports() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", IMPORTS], check=True)
    return time.perf_counter() - started


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    imports, points = list[float](), list[dict[str, float]]()
    with tempfile.TemporaryDirectory() as var, Client.connect(Path(var)) as client:
        try:
            for _ in range(options.rounds):
                imports.append(measure_imports())
                points.append(measure_run(client))
        finally:
            stop_daemon(client.paths)
    base = statistics.median(imports)
    limits = {"HSHK": 0.15, "EXEC": 1.0, "first environment step": 1.3 * base + 0.5}
    rows = [[f"`{IMPORTS}`", f"{base:.3f}", f"{max(imports):.3f}", "", ""]]
    for name, limit in limits.items():
        values = [point[name] for point in points]
        median = statistics.median(values)
        verdict = "yes" if median <= limit else "no"
        rows.append([f"submit → {name}", f"{median:.3f}", f"{max(values):.3f}", f"{limit:.3f}", verdict])
    write_table(
        "startup",
        "Start-up",
        f"Seconds over {options.rounds} rounds, the import and the run in turn. The limit of the last row is "
        "1.3 × the imports' median + 0.5 s.",
        ["", "median", "most", "limit", "within"],
        rows,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
