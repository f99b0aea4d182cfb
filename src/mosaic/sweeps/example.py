"""A sweep file to begin with."""

from __future__ import annotations

from mosaic.client.configs import worker_for
from mosaic.sweeps.space import known_spaces
from mosaic.sweeps.toml_text import value_text


def example(algo: str, env_id: str) -> str:
    """A sweep file to begin with: the space that is known to be good, and all that can be set, explained."""
    budget = worker_for(algo).load_catalog().default_timesteps(algo) or 100_000
    known = known_spaces().get(algo)
    source = known.source if known else "nobody has tried one yet: write the parameters that matter"
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
