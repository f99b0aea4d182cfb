"""`envs`: the environments that are known, by family, and what trains on them."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from itertools import groupby

from rich.text import Text

from mosaic.cli.output import console, print_json, program, say
from mosaic.contract import words
from mosaic.contract.capabilities import EnvironmentFacts, EnvironmentFamily, FormCatalog, discover_workers
from mosaic.contract.errors import UserError, closest
from mosaic.contract.extras import is_installed

_WIDEST = 110
_LABEL = 12
_is_there = cache(is_installed)


def run_envs(args: argparse.Namespace) -> int:
    catalogs = [worker.load_catalog() for worker in discover_workers().values() if worker.catalog]
    able = [one for one in catalogs if isinstance(one, FormCatalog)]
    families = {family.name: family for one in able for family in one.environment_families()}
    fits = _filter(args, families, {algo for one in able for algo in one.algorithms()})
    found = [facts for one in able for facts in one.environment_facts() if fits(facts)]
    if args.json:
        print_json([_as_json(one) for one in found])
    elif not found:
        say(f"No known environment matches. `{program()} envs` lists all; name your own as module:EnvId.")
    else:
        for _, members in groupby(found, key=lambda one: one.family):
            console().print(_family(list(members), console().width), soft_wrap=True)
        owners = [one for one in able if args.algo in one.algorithms()]
        needed = [name for one in owners for name in one.requirements(args.algo, "auto")]
        _say_more(args, found, families.values(), needed)
    return 0


def _filter(
    args: argparse.Namespace, families: Mapping[str, EnvironmentFamily], algorithms: set[str]
) -> Callable[[EnvironmentFacts], bool]:
    """Whether an environment is among those that are asked for; UserError for a name that nobody knows."""
    for name, what, known in ((args.family, "a family", families), (args.algo, "an algorithm", algorithms)):
        if name is not None and name not in known:
            hint = closest(name, known) or f". There are {', '.join(sorted(known))}."
            raise UserError(f"'{name}' is not {what}{hint}")
    wanted = [word.lower() for text in args.filter for word in text.split()]

    def fits(facts: EnvironmentFacts) -> bool:
        told = f"{facts.env_id} {facts.family} {facts.family_title}".lower()
        return (
            args.family in (None, facts.family)
            and (args.algo is None or args.algo in facts.algorithms)
            and (not args.installed or _there(facts.extra))
            and all(word in told for word in wanted)
        )

    return fits


def _there(extra: str | None) -> bool:
    return extra is None or _is_there(extra)


def _install(extra: str | None) -> str:
    """The command that installs a set; empty when nothing has to be installed."""
    return "" if _there(extra) else f"{program()} extras install {extra}"


def _as_json(facts: EnvironmentFacts) -> dict[str, object]:
    return {**asdict(facts), "installed": _there(facts.extra), "install": _install(facts.extra) or None}


def _family(members: Sequence[EnvironmentFacts], width: int) -> Text:
    """A heading, then the environments in groups on which the same algorithms train."""
    made = Text(no_wrap=True, overflow="ignore", end="\n")
    made.append(f"{members[0].family_title} ({members[0].family})", style="bold")
    for extra in dict.fromkeys(one.extra for one in members):
        command = _install(extra)
        made.append("\n  ")
        made.append(*(("installed", "green") if not command else (command, "cyan")))
    made.append("\n")
    groups: dict[tuple[object, ...], list[EnvironmentFacts]] = {}
    for one in members:
        groups.setdefault((one.algorithms, *one.backends), []).append(one)
    for group in groups.values():
        made.append("\n")
        for line in _lines(group, width):
            made.append(f"{line}\n")
    return made


def _lines(group: Sequence[EnvironmentFacts], width: int) -> Iterator[str]:
    widest = max(len(one.env_id) for one in group)
    beside = 4 + widest + max(len(one.spaces) for one in group) <= width
    for one in group:
        if beside:
            yield f"  {one.env_id:<{widest}}  {one.spaces}"
        else:
            yield f"  {one.env_id}"
            yield from textwrap.wrap(f"    {one.spaces}", width, subsequent_indent=" " * 6)
    first = group[0]
    known = first.backends.items()
    backends = [name if _there(extra) else f"{name} (not installed)" for name, extra in known]
    for label, names in (("algorithms", first.algorithms), ("backends", backends)):
        line = f"  {label:<{_LABEL}}{', '.join(names) or 'none of ours'}"
        least = min(width, _WIDEST)
        yield from textwrap.wrap(line, least, subsequent_indent=" " * (_LABEL + 2), break_long_words=False)


def _say_more(
    args: argparse.Namespace,
    found: Sequence[EnvironmentFacts],
    families: Iterable[EnvironmentFamily],
    needed: Iterable[str],
) -> None:
    """How many there were, what the algorithm that was asked for needs, and how to go on."""
    there = [one for one in found if _there(one.extra)]
    installed = "all" if len(there) == len(found) else str(len(there)) if there else "none"
    say(f"{words.count(len(found), 'environment')}, {installed} of them installed.")
    for command in filter(None, map(_install, dict.fromkeys(needed))):
        say(f"{args.algo} itself needs `{command}`.")
    examples = {one.env_id: one.algo for one in families}
    usable = sorted((one for one in there if one.algorithms), key=lambda one: one.env_id not in examples)
    for one in usable[:1]:
        algo = args.algo or examples.get(one.env_id, one.algorithms[0])
        say(f"\n  {program()} train {algo} {one.env_id}")
