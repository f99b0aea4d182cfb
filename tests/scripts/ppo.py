"""A script of somebody else's named after its algorithm, which saves a model as CleanRL's do."""

import argparse
from pathlib import Path

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--env-id", default="CartPole-v1")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--exp-name", default="ppo")
args = parser.parse_args()


def net(outputs, inputs):
    return nn.Sequential(
        nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)
    )


torch.manual_seed(args.seed)
agent = nn.Module()
if args.env_id == "CartPole-v1":
    agent.critic, agent.actor = net(1, 4), net(2, 4)
else:
    agent.critic, agent.actor_mean = net(1, 3), net(1, 3)
    agent.actor_logstd = nn.Parameter(torch.zeros(1, 1))
folder = Path("runs") / f"{args.env_id}__{args.exp_name}__{args.seed}__1"
folder.mkdir(parents=True)
torch.save(agent.state_dict(), folder / f"{args.exp_name}.cleanrl_model")
