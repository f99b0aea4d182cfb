"""Where EnvPool keeps its doors."""
