"""What live frames must reach, case by case; `benchmarks/fastlane.py` runs them."""
