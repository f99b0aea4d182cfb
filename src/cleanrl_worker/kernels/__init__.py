"""Updates of small networks on the CPU, written out in numpy.

A kernel does what the torch code in its algorithm's file does, on the same memory: weights, gradients and
optimizer state are views of the flat tensors in `training.optimizer.Adam`. It is faster because nothing is
recorded, allocated or dispatched. Tests hold it equal to the torch code.
"""
