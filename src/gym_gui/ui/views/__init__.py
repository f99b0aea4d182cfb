"""The pages of the window: the tabs of a run, a comparison of several, and the table of all."""
