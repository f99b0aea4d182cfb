"""A plan of `mosaic gc` on the screen, as JSON, and carried out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mosaic.cli import words
from mosaic.cli.live.board import Row
from mosaic.cli.output import console, say
from mosaic.client import Client, RunRecord
from mosaic.client.retention import Leftover, LeftoverKind, Plan, Rule, ended_at, remove_leftover
from mosaic.contract.errors import NotFoundError
from mosaic.contract.sizes import bytes_text

if TYPE_CHECKING:
    from rich.table import Table

_MOST_ROWS = 50
_ROOMY = 100
_LEFTOVERS = {
    LeftoverKind.LOG: ("old log of a removed run", "old logs of removed runs"),
    LeftoverKind.LINK: ("link for TensorBoard that leads nowhere", "links for TensorBoard that lead nowhere"),
    LeftoverKind.TEMPORARY: ("unfinished file of a write", "unfinished files of writes"),
}


def describe(plan: Plan, rule: Rule) -> None:
    """What would go and how much that frees."""
    if plan.empty:
        say(f"Nothing to remove: there is no run that {_which(rule)}, and nothing is left over.")
        return
    if plan.runs:
        console().print(_runs(plan))
        say("")
    console().print(_amounts(plan, rule))


def amount(plan: Plan) -> str:
    """`3 runs and 1 leftover`."""
    counts = ((len(plan.runs), "run"), (len(plan.leftovers), "leftover"))
    return " and ".join(f"{count} {name}{'s' * (count > 1)}" for count, name in counts if count)


def plan_json(plan: Plan, removed: bool, freed: int) -> dict[str, Any]:
    """The plan for programs."""
    return {
        "removed": removed,
        "bytes": plan.size,
        "freed_bytes": freed,
        "runs": [
            {
                "run_id": run.run_id,
                "run_name": run.run_name,
                "outcome": run.outcome,
                "ended_at": ended_at(run),
                "run_dir": run.run_dir,
                "bytes": plan.sizes[run.run_id],
            }
            for run in plan.runs
        ],
        "leftovers": [
            {"kind": item.kind, "path": str(item.path), "bytes": item.size} for item in plan.leftovers
        ],
    }


def carry_out(client: Client, plan: Plan) -> int:
    """Remove everything in the plan; gives the bytes freed. What an interrupt leaves goes the next time."""
    freed, gone, total = 0, 0, len(plan.runs) + len(plan.leftovers)
    try:
        with console().status("") as status:
            for run in plan.runs:
                status.update(f"Removing {gone + 1} of {total}")
                freed, gone = freed + _remove(client, run), gone + 1
            for item in plan.leftovers:
                remove_leftover(item)
                freed, gone = freed + item.size, gone + 1
    except KeyboardInterrupt:
        say(f"Stopped: {gone} of {total} removed, {bytes_text(freed)} freed; the same command goes on.")
        raise
    return freed


def _remove(client: Client, run: RunRecord) -> int:
    try:
        return client.remove(run.run_id)
    except NotFoundError:
        # Somebody else was faster.
        return 0


def _which(rule: Rule) -> str:
    """The rule in words: `ended more than 30 days ago as failed, with tag a`."""
    parts = [f"ended more than {words.duration(rule.older_than)} ago" if rule.older_than else "ended"]
    if rule.outcomes:
        parts.append(f"as {' or '.join(words.OUTCOMES[name] for name in sorted(rule.outcomes))}")
    said = " ".join(parts)
    for tags, how in ((rule.tags, "with"), (rule.not_tags, "without")):
        if tags:
            said += f", {how} tag {', '.join(sorted(tags))}"
    return said + (f", but for the newest {rule.keep}" if rule.keep else "")


def _runs(plan: Plan) -> Table:
    from rich.table import Table
    from rich.text import Text

    shown, rest = plan.runs[:_MOST_ROWS], plan.runs[_MOST_ROWS:]
    ids = words.unique_prefixes([run.run_id for run in shown])
    gap = 2 if console().width >= _ROOMY else 1
    table = Table(box=None, padding=(0, gap, 0, 0), header_style="dim", show_edge=False)
    table.add_column("id", no_wrap=True, min_width=max(map(len, ids.values())))
    table.add_column("run")
    table.add_column("outcome", no_wrap=True)
    for title in ("ended", "size"):
        table.add_column(title, justify="right", no_wrap=True)
    for run in shown:
        row = Row.from_record(run)
        table.add_row(
            ids[run.run_id],
            # The column that gives way when the terminal is narrow.
            Text.assemble(row.name, (f"  {', '.join(run.tags)}", "dim"), no_wrap=True, overflow="ellipsis"),
            Text(row.state, style=words.style(row.state)),
            words.age(ended_at(run)),
            bytes_text(plan.sizes[run.run_id]),
        )
    if rest:
        table.add_row("", f"and {len(rest)} more", "", "", bytes_text(_size(plan, rest)))
    return table


def _amounts(plan: Plan, rule: Rule) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    if plan.runs:
        what = f"run{'s' * (len(plan.runs) > 1)} that {_which(rule)}"
        table.add_row(str(len(plan.runs)), what, bytes_text(_size(plan, plan.runs)))
    for kind, (singular, plural) in _LEFTOVERS.items():
        found: list[Leftover] = [item for item in plan.leftovers if item.kind == kind]
        if found:
            name = singular if len(found) == 1 else plural
            table.add_row(str(len(found)), name, bytes_text(sum(item.size for item in found)))
    table.add_row("", Text("in all", style="bold"), Text(bytes_text(plan.size), style="bold"))
    return table


def _size(plan: Plan, runs: Sequence[RunRecord]) -> int:
    return sum(plan.sizes[run.run_id] for run in runs)
