"""`scripts` and `phase`: training scripts of several phases."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from rich.text import Text

from mosaic.cli import words
from mosaic.cli.output import console, print_json, say, table
from mosaic.cli.words import program
from mosaic.contract.capabilities import ScriptCatalog, discover_workers
from mosaic.contract.errors import UserError
from mosaic.contract.phases import RUN_DIR_VARIABLE, announce_phase


def run_scripts(args: argparse.Namespace) -> int:
    catalogs = [worker.load_catalog() for worker in discover_workers().values() if worker.catalog]
    found = [entry for one in catalogs if isinstance(one, ScriptCatalog) for entry in one.scripts()]
    if args.json:
        print_json(found)
        return 0
    if not found:
        say("There is no script yet.")
        return 0
    titles = ("script", "what it does", "environments", "phases", "steps", "by")
    listed = table(*titles, right=("phases", "steps"), fold=("what it does", "by"), gap=2)
    for script in found:
        if script["problem"]:
            listed.add_row(script["name"], Text(script["problem"], style="red"))
            continue
        listed.add_row(
            script["name"],
            Text(script["description"] or "–"),
            Text(script["env_family"] or "–"),
            words.whole(script["phases"]),
            words.whole(script["total_timesteps"]),
            Text(script["author"] or "–"),
        )
    console().print(listed)
    say(f"\n  {program()} train {found[0]['name']}")
    return 0


def run_phase(args: argparse.Namespace) -> int:
    named = os.environ.get(RUN_DIR_VARIABLE)
    if not named:
        raise UserError(
            "There is no run here: `mosaic phase` is for scripts that `mosaic train script.sh` runs."
        )
    if not Path(named).is_dir():
        raise UserError(f"The run's folder {named} in ${RUN_DIR_VARIABLE} does not exist.")
    announce_phase(Path(named), args.number, " ".join(args.text))
    return 0
