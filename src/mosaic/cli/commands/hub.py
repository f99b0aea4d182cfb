"""`push` and `pull`: policies to and from the Hugging Face hub."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from mosaic.cli.output import console, facts, note, place_text, print_json, program, say
from mosaic.cli.runs import connect, find_run
from mosaic.contract import words
from mosaic.contract.errors import UserError
from mosaic.contract.paths import choose_var
from mosaic.hub.account import require_account
from mosaic.hub.models import pull
from mosaic.hub.uploads import push

_BEST = ":best"


def run_push(args: argparse.Namespace) -> int:
    require_account()
    best = args.run.endswith(_BEST)
    with connect(args) as client:
        run = find_run(client, args.run.removesuffix(_BEST))
    if not run.ended:
        raise UserError(
            f"Run {run.run_id} has not ended yet, and may still change its model: wait, or end it with "
            f"`{program()} cancel {run.run_id}`."
        )
    entity = (run.worker_config.get("extras") or {}).get("hf_entity")
    to = args.to or (f"{entity}/" if entity else None)
    if not args.json:
        note("Uploading …")
    done = push(Path(run.run_dir), to, args.private, best)
    if args.json:
        print_json({"run_id": run.run_id, "repo": done.repo, "url": done.url, "private": done.private})
        return 0
    say(f"Run {run.run_id} is at {done.url}")
    say(f"  {program()} pull {done.repo}")
    return 0


def run_pull(args: argparse.Namespace) -> int:
    var = choose_var(args.var)
    if not args.json:
        note("Downloading …")
    found = pull(args.model, var, args.revision)
    path = found.path(var)
    if args.json:
        print_json({**asdict(found), "path": str(path)})
        return 0
    console().print(
        facts(
            [
                ("model", found.repo),
                ("is of", f"{found.algo or '?'} on {found.env_id or '?'}"),
                ("seed", None if found.seed is None else str(found.seed)),
                ("steps", words.whole(found.step) if found.step is not None else None),
                ("mean return", words.measured(found.mean_return) if found.mean_return is not None else None),
                ("file", place_text(path)),
            ]
        )
    )
    more = "".join(
        f" {flag}" for flag, known in (("--algo NAME", found.algo), ("--env ID", found.env_id)) if not known
    )
    say(f"  {program()} eval {found.repo}{more}")
    return 0
