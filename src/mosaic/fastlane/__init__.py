"""FastLane: live frames from environments to viewers, through a file in shared memory.

Written so that any interpreter from Python 3.8 on can run it; it needs the standard library and numpy only.
"""
