"""What runs in any interpreter of the user's: old Python, numpy and gymnasium only."""
