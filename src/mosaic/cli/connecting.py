"""A command's line to the daemon. Only a command that makes a run makes a var folder."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from mosaic.cli.output import note
from mosaic.contract.errors import NotFoundError
from mosaic.contract.paths import VAR_VARIABLE, VarPaths, choose_var

if TYPE_CHECKING:
    from mosaic.client import Client


def connect(args: argparse.Namespace, make: bool = False) -> Client:
    """A client of the var folder's daemon. Where nothing is, and nothing is to be made, a NotFoundError."""
    from mosaic.client import Client

    if not make:
        holds_runs(args)
    client = Client.connect(args.var, make=make)
    if client.start_notice:
        note(f"mosaic: {client.start_notice}")
    return client


def holds_runs(args: argparse.Namespace) -> bool:
    """Whether there is or was a run in the var folder; a folder that was named must be there."""
    root = choose_var(args.var)
    named = "--var" if args.var is not None else VAR_VARIABLE if os.environ.get(VAR_VARIABLE) else ""
    if named and not root.exists():
        raise NotFoundError(f"There is no folder {root}, and so no run in it: correct {named}.")
    return VarPaths(root).used
