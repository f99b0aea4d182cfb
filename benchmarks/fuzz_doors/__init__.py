"""The doors through which data of others comes in, and what is thrown at them."""
