"""The page behind `mosaic --help`."""

from __future__ import annotations

from mosaic.cli.catalog import COMMANDS
from mosaic.cli.program import program

_NAME_WIDTH = max(len(command.name) for command in COMMANDS) + 2


def overview() -> str:
    """All commands by purpose, and examples to start from."""
    name = program()
    lines = [
        "MOSAIC trains reinforcement learning agents, shows them learning and keeps what they leave.",
        "",
        f"Usage: {name} COMMAND [options]",
    ]
    group = ""
    for command in COMMANDS:
        if command.group != group:
            group = command.group
            lines += ["", group]
        lines.append(f"  {command.name:<{_NAME_WIDTH}}{command.summary}")
    lines += [
        "",
        "Examples",
        f"  {name} train ppo CartPole-v1",
        f"  {name} train ppo Acrobot-v1 --seeds 1-5 --set learning_rate=1e-3",
        f"  {name} show last",
        "",
        f"`{name} COMMAND --help` tells more; `{name} train ppo --help` lists the parameters of ppo.",
        "Every command takes --var PATH (where everything is kept) and --debug (the traceback of an error).",
    ]
    return "\n".join(lines)
