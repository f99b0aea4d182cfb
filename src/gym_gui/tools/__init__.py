"""Programs around the window, for those who work on it."""
