"""The desktop: a Qt client of the trainer daemon."""
