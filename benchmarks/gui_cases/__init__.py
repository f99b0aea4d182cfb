"""The cases of benchmarks/gui.py."""
