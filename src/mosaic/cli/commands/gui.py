"""`gui`, the only command that may reach Qt."""

from __future__ import annotations

import argparse

from gym_gui.launch import launch


def run_gui(args: argparse.Namespace) -> int:
    return launch(args.var)
