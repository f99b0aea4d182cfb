"""What each algorithm takes, readable without importing it."""
