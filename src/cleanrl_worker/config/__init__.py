"""What a run is asked to do, and the files that it names, read without importing anything heavy."""
