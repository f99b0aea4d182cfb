"""The command line, thin over `mosaic.client`."""

from mosaic.cli.app import main

__all__ = ["main"]
