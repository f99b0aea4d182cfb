"""What commands do: `run_NAME(args)` for each, imported when it is used."""
