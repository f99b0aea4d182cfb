#!/usr/bin/env bash
# @description DoorKey in growing rooms: fetch the key, open the door, reach the goal
# @env_family minigrid
# @phases 3
# @total_timesteps 800000
# @author MOSAIC
set -euo pipefail
source "${BASH_SOURCE[0]%/*}/train_phase.bash"

share=$((MOSAIC_TOTAL_TIMESTEPS / 8))
flags=(--num-envs=16 --num-minibatches=8 --learning-rate=1e-3 --no-anneal-lr)
train_phase 1 ppo MiniGrid-DoorKey-5x5-v0 "$((share * 2))" "${flags[@]}" "$@"
train_phase 2 ppo MiniGrid-DoorKey-6x6-v0 "$((share * 2))" "${flags[@]}" "$@"
train_phase 3 ppo MiniGrid-DoorKey-8x8-v0 "$((share * 4))" "${flags[@]}" "$@"
