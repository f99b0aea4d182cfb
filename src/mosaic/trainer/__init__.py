"""The trainer daemon: accepts runs, queues them, starts their supervisors and tells how they fare."""
