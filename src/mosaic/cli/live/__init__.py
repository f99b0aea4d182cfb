"""Following runs: what is known of them, and how it is shown."""
