"""A script that trains nothing and leaves a model as somebody's script does, with the name of ours."""

import argparse
import os
import zipfile

parser = argparse.ArgumentParser()
parser.add_argument("--env-id", default="CartPole-v1")
parser.add_argument("--total-timesteps", type=int, default=512)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--without", action="store_true")
args = parser.parse_args()

folder = f"runs/{args.env_id}__ppo__{args.seed}__1"
os.makedirs(folder)
with open(f"{folder}/events.out.tfevents.{args.seed}.host", "wb"):
    pass
if not args.without:
    with zipfile.ZipFile(f"{folder}/ppo.cleanrl_model", "w") as file:
        file.writestr("archive/data", b"\0" * 5000)
