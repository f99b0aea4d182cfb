"""Hostile checks by area, each a table of cases and what is good."""
