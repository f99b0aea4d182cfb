"""What stands beside the forms that are about no algorithm."""

from __future__ import annotations

from gym_gui.ui.presenters.form_page import AlgorithmPage

RESUMING = AlgorithmPage(
    """A **full checkpoint** holds everything: networks, optimizers, counters, buffers, random states. A run
that goes on from it to its old budget ends as if it had never been stopped.

With **more steps** than it was begun with, what falls over the run, such as the learning rate, is computed
anew over the longer budget.

A **model** is the weights alone: training begins anew with them, with any parameters.

It is a new run. The old one, its files and its curves stay as they are."""
)

EVALUATING = AlgorithmPage(
    """Plays the policy for whole episodes and tells how good it is: mean, spread, least and most of the
returns, batch by batch. It is a run of its own.

Episodes start from the **same seeds** each time, so two evaluations with one seed can be compared.

**The best action** is what counts in the end. Drawing actions as in training tells how much the policy
still explores.

**Another environment** must have the same spaces as the one it was trained on."""
)

SCRIPTS = AlgorithmPage(
    """A **shell script** trains in as many phases as it likes, and its head tells what it does:

```
# @description Growing rooms
# @env_family minigrid
# @phases 3
# @total_timesteps 800000
```

Scripts in the folder that `$MOSAIC_CUSTOM_SCRIPTS_DIR` names are in the list.

A **Python script** runs as it is, with the run's folder as its working directory. It gets `--env-id`,
`--total-timesteps`, `--seed` and the parameters below. What it writes as event files is charted, and its
environments can be watched.

A Python file that binds `SPEC` is an **algorithm on the training kit**: its parameters are shown, and it is
checked, checkpointed, resumed and evaluated as ours are."""
)
