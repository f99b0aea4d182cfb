"""What the window knows, without Qt."""
