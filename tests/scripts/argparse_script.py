"""A script of somebody else's with argparse, in all the manners in which one takes a boolean."""

import argparse
import json


def to_bool(text):
    return text.lower() in ("1", "true", "yes")


parser = argparse.ArgumentParser()
parser.add_argument("--env_id", default="CartPole-v1")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--total_timesteps", type=int, default=int(7e3))
parser.add_argument("--learning-rate", type=float, default=1e-3, help="how far a step goes")
parser.add_argument("--anneal-lr", type=lambda x: bool(to_bool(x)), default=True, nargs="?", const=True)
parser.add_argument("--clip", type=bool, default=True)
parser.add_argument("--quiet", action="store_true")
parser.add_argument("--no-cuda", action="store_true")
parser.add_argument("--norm", action=argparse.BooleanOptionalAction, default=True)
print(json.dumps(vars(parser.parse_args())))
