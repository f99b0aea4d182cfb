"""A script with an error in it."""


def train():
    raise ValueError("the reward is not a number")


train()
