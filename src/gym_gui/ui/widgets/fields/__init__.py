"""The parts that forms are made of: each shows one field of a form's state and takes what is typed."""
