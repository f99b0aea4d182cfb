"""Wrappers for anybody's environments."""
