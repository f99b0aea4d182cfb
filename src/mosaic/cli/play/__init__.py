"""`mosaic play`: a trained policy at the terminal, step by step."""
