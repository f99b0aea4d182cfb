"""One module for each command: `parser(argv)` and `run(args)`."""
