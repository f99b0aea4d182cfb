"""The training kit: what an algorithm's page calls. Nothing here calls back into an algorithm."""
