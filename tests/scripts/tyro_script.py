"""A script of somebody else's in the manner of CleanRL: tyro, torch's SummaryWriter, `__main__` guard."""

import time
from dataclasses import dataclass

import tyro
from torch.utils.tensorboard import SummaryWriter


@dataclass
class Args:
    env_id: str = "CartPole-v1"
    total_timesteps: int = 100
    seed: int = 1
    learning_rate: float = 1e-3
    anneal: bool = True


if __name__ == "__main__":
    args = tyro.cli(Args)
    writer = SummaryWriter(f"runs/{args.env_id}__tyro_script__{args.seed}__{int(time.time())}")
    for step in range(0, args.total_timesteps + 1, 10):
        writer.add_scalar("charts/episodic_return", step * args.learning_rate, step)
    writer.add_scalar("charts/annealed", float(args.anneal), args.total_timesteps)
    writer.close()
