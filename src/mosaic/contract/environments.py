"""Environments, as configs name them."""

NO_ENVIRONMENT = "none"
"""Stands for the environment of a script that names none."""
