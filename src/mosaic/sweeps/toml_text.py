"""Sweep files as text: the TOML that the form and `sweep init` write, and an explained one to begin with."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mosaic.client.configs import worker_for
from mosaic.sweeps.space import known_spaces

_WORD = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(table: Mapping[str, Any]) -> str:
    """A sweep file: plain values first, then a section for each table."""
    plain = {name: value for name, value in table.items() if not _is_section(value)}
    lines = [f"{_key(name)} = {value_text(value)}" for name, value in plain.items()]
    for name, value in table.items():
        if _is_section(value):
            lines += _section(_key(name), value)
    return "\n".join(lines) + "\n"


def _is_section(value: Any) -> bool:
    tables = isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)
    return isinstance(value, Mapping) or tables


def _section(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from ("", f"[[{name}]]")
            yield from (f"{_key(key)} = {value_text(item)}" for key, item in one.items())
        return
    # A table for each algorithm stands by itself.
    nested = {key: item for key, item in value.items() if name in ("set", "space") and _is_plain_table(item)}
    plain = [f"{_key(key)} = {value_text(item)}" for key, item in value.items() if key not in nested]
    if plain or not nested:
        yield from ("", f"[{name}]", *plain)
    for key, item in nested.items():
        yield from _section(f"{name}.{_key(key)}", item)


def _is_plain_table(item: Any) -> bool:
    """Whether it is the table of an algorithm, and not the range of a parameter."""
    return isinstance(item, Mapping) and not {"low", "high", "choices"} & item.keys()


def _key(name: str) -> str:
    return name if _WORD.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def value_text(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:_}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(name)} = {value_text(one)}' for name, one in value.items())} }}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(value_text, value))}]"
    return _quoted(str(value))


def example(algo: str, env_id: str) -> str:
    """A sweep file to begin with: the space that is known to be good, and all that can be set, explained."""
    budget = worker_for(algo).load_catalog().default_timesteps(algo) or 100_000
    known = known_spaces().get(algo)
    source = known.source if known else "there is no known space: list the parameters to search"
    rows = [f"{name} = {value_text(told)}" for name, told in known.space.items()] if known else []
    return _EXAMPLE.format(
        algo=value_text(algo),
        env_id=value_text(env_id),
        budget=f"{min(budget, 100_000):_}",
        warmup=f"{min(budget, 100_000) // 5:_}",
        source=source,
        space="\n".join(rows),
    )


_EXAMPLE = """\
# A sweep: `mosaic sweep FILE --dry-run` checks it, `mosaic sweep FILE` starts it. See docs/sweeps.md.

algo = {algo}  # or a list, such as ["ppo", "dqn"]: the search chooses among them
env = {env_id}  # or a list: each trial trains on all; [scores] then says what a return is worth
total_timesteps = {budget}  # of each run
seeds = [1]  # one run for each in every trial; "1-3" is three
trials = 20
# parallel = 2  # trials at once; without it as many as fit
# max_minutes = 60  # after that no new trial begins

# [set]  # parameters that are the same in all trials
# num_envs = 8

# The space is known to be good. Where it comes from: {source}.
# A list is a choice, a table a range: low, high, and log or step. `when` makes it depend on another one:
# alpha = {{ low = 0.01, high = 0.5, when = {{ autotune = false }} }}
[space]
{space}

[objective]
metric = "charts/episodic_return"  # any curve that the runs log
take = "mean"  # of the last `points`; or last; or best, of any `points` in a row
points = 50
over_seeds = "mean"  # or iqm, or lower: the lower end of the interval
direction = "maximize"

[sampler]
name = "tpe"  # any of Optuna's, with its options below
seed = 1

[pruner]
name = "median"  # or hyperband, successivehalving, percentile, threshold, … or none
n_startup_trials = 5
n_warmup_steps = {warmup}  # of the run; a fifth of it, if you leave this out

# [run]  # of each run: cpus, memory_mb, max_minutes, max_restarts, env_kwargs
# cpus = 1
"""
