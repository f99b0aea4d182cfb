"""Commands that make the committed data files, or prepare an environment."""
