"""Widgets: wiring and painting."""
