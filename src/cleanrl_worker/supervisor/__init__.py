"""The light process that starts a run, watches it and tells the daemon of it."""
