"""Threads, timers and the daemon: Qt core only."""
