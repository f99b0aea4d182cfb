"""`filters`: saved filters of runs, and what `runs @NAME` makes of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from mosaic.cli.output import console, print_json, program, say, table
from mosaic.cli.parsers import FILTER_ACTIONS
from mosaic.client.saved_filters import SavedFilter, SavedFilters
from mosaic.contract.errors import UserError, closest
from mosaic.contract.paths import choose_var
from mosaic.contract.run_filter import RUN_STATES


def run_filters(args: argparse.Namespace) -> int:
    if args.action not in FILTER_ACTIONS:
        hint = closest(args.action, FILTER_ACTIONS) or "."
        raise UserError(f"filters can {', '.join(FILTER_ACTIONS)}, not '{args.action}'{hint}")
    if args.state is not None and args.action != "save":
        raise UserError("--state is for saving a filter: add `save NAME`.")
    store = SavedFilters(choose_var(args.var))
    if args.action == "save":
        return _save(store, args)
    if args.action == "rm":
        if not args.words:
            raise UserError("filters rm needs NAME: `mosaic filters` lists them.")
        gone = store.remove(args.words)
        if args.json:
            print_json([asdict(one) for one in gone])
        for one in () if args.json else gone:
            say(f"@{one.name} is removed: {_looks_for(one)}")
        return 0
    if args.words:
        raise UserError(f"'{args.words[0]}' is one word too many: `{program()} runs @NAME` uses a filter.")
    _tell(store.all(), args)
    return 0


def _save(store: SavedFilters, args: argparse.Namespace) -> int:
    if not args.words:
        raise UserError("filters save needs NAME and conditions: save good 'algo=ppo return>400'.")
    name, *text = args.words
    wanted = SavedFilter(name, " ".join(text), args.state or "all").checked()
    before = store.save(wanted)
    if args.json:
        print_json([asdict(wanted)])
    else:
        instead = f", in place of {_looks_for(before)}" if before is not None and before != wanted else ""
        quoted = f"'@{wanted.name}'" if " " in wanted.name else f"@{wanted.name}"
        say(f"Saved{instead}. `{program()} runs {quoted}` lists these runs, and so does the window.")
    return 0


def _tell(kept: Sequence[SavedFilter], args: argparse.Namespace) -> None:
    if args.json:
        print_json([asdict(one) for one in kept])
    elif not kept:
        say(f"No filter is saved yet. Save the first:\n  {program()} filters save good 'return>400'")
    else:
        listed = table("name", "state", "looks for", fold=("looks for",))
        for one in kept:
            listed.add_row(f"@{one.name}", one.state, one.text)
        console().print(listed)


def _looks_for(one: SavedFilter) -> str:
    state = "" if one.state == "all" else one.state
    return " ".join(filter(None, (state, one.text)))


def wanted_runs(args: argparse.Namespace) -> tuple[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Words and conditions that were typed, with those of saved filters; and the statuses and outcomes
    that such a filter asks for."""
    parts, states = [*args.filter], dict[str, str]()
    for word in args.wanted:
        if not word.startswith("@"):
            parts.append(word)
            continue
        saved = SavedFilters(choose_var(args.var)).find(word)
        parts.append(saved.text)
        if saved.state != "all":
            states.setdefault(saved.state, f"@{saved.name}")
    if len(states) > 1 or (states and args.state):
        named = [*states.values(), *(["--state"] if args.state else [])]
        raise UserError(f"{' and '.join(named)} ask for different states: leave one of them out.")
    return " ".join(filter(None, parts)), RUN_STATES[next(iter(states), "all")]
