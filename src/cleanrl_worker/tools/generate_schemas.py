"""Writes schemas.json from the arguments of every algorithm of ours.

`python -m cleanrl_worker.tools.generate_schemas [--check]`
"""

from __future__ import annotations

import json
import sys

from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY
from cleanrl_worker.kit.describe import describe_algorithm
from cleanrl_worker.kit.loading import load_spec
from cleanrl_worker.schemas.model import SCHEMAS_FILE
from cleanrl_worker.tools import write_or_check


def generate() -> str:
    """The text of schemas.json as it should be."""
    ours = [name for name, module in DEFAULT_ALGO_REGISTRY.items() if module.startswith("cleanrl_worker.")]
    schemas = {name: describe_algorithm(load_spec(name)) for name in ours}
    for name, schema in schemas.items():
        for parameter in schema["parameters"]:
            if not parameter["help"]:
                raise SystemExit(f"{name}: Args.{parameter['name']} has no text under it; say what it does.")
    return json.dumps(schemas, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check(SCHEMAS_FILE, generate, "generate_schemas", __doc__))
