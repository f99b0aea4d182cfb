"""A form as the command that asks for the same runs."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from gym_gui.models.command_line import NotTold, command_for
from gym_gui.models.seeds import show_seeds
from gym_gui.ui.presenters.form import Config
from mosaic.contract.errors import UserError
from mosaic.contract.secrets import lift_secrets

KEY_LEFT_OUT = "No secret is in it: set {names} where you run it."


def command_of(configs: Sequence[Config]) -> tuple[str, str]:
    """The command for configs that differ in their seed only, and what has to be said about it.

    A UserError says when no options of the command line mean the same.
    """
    lifted = lift_secrets(configs[0], os.environ)
    try:
        text = command_for(lifted.config)
    except NotTold:
        raise UserError(
            "The command line has no options for all of this: take the live view, TensorBoard or the "
            "resources as they are by default, or submit from here."
        ) from None
    seeds = [one["metadata"]["worker"]["config"]["seed"] for one in configs]
    if len(seeds) > 1:
        listed = show_seeds(seeds).replace(" ", "")
        text = re.sub(rf"--seed {seeds[0]}\b", f"--seeds {listed}", text, count=1)
    unset = [name for name in lifted.values if name not in os.environ]
    return text, KEY_LEFT_OUT.format(names=" and ".join(unset)) if unset else ""
