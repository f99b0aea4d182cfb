"""The faults that the daemon must outlive, one file for each. `run` of each takes a var folder and counts."""
