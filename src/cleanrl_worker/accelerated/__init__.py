"""Gradients and outputs of small networks on the CPU, written out without autograd.

A kernel computes what the torch code in its algorithm's page computes, on the same memory: weights and
gradients are views of the flat tensors in `kit.torch_backend.Adam`. It is faster because nothing is recorded,
allocated or dispatched. `kit.accelerate` compares it with the page whenever a run begins.
"""
