"""What to show and in which words, without Qt."""
