"""Several environments in one run, one after the other or drawn at random."""
