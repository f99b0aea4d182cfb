"""MOSAIC: train, watch and resume single-agent reinforcement learning."""

__version__ = "0.1.0"
