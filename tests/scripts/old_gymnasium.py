"""A script for gymnasium 0.29 and tensorboardX, in an interpreter that has nothing of ours."""

import argparse
import importlib.util

import gymnasium
from tensorboardX import SummaryWriter

parser = argparse.ArgumentParser()
parser.add_argument("--env-id", default="CartPole-v1")
parser.add_argument("--total-timesteps", type=int, default=100)
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args()

# What live frames need is there, and nothing else.
for ours in ("mosaic.contract", "cleanrl_worker.config", "torch", "pydantic", "grpc"):
    assert importlib.util.find_spec(ours) is None, f"{ours} leaks into this interpreter"
print("gymnasium", gymnasium.__version__)
env = gymnasium.make(args.env_id)
env.reset(seed=args.seed)
writer = SummaryWriter(f"runs/{args.env_id}__old__{args.seed}")
total = 0.0
for step in range(1, args.total_timesteps + 1):
    _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
    total += float(reward)
    if terminated or truncated:
        writer.add_scalar("charts/episodic_return", total, step)
        total = 0.0
        env.reset()
writer.close()
