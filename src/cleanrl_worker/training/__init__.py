"""What every algorithm needs and none of them is about: arguments, seeds, environments, logging."""
