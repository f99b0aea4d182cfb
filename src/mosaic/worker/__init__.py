"""What every worker package needs: the line to the daemon, events, publishing, care of a training process.

Only `link` and `publisher` import gRPC: a supervisor that has started its training process first loads them
while that one is busy with imports of its own.
"""
