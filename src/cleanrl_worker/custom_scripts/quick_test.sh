#!/usr/bin/env bash
# @description Two short trainings of PPO on CartPole, to see that everything works
# @env_family classic
# @phases 2
# @total_timesteps 16384
# @author MOSAIC
set -euo pipefail
source "${BASH_SOURCE[0]%/*}/train_phase.bash"

half=$((MOSAIC_TOTAL_TIMESTEPS / 2))
env_id=${MOSAIC_ENV_ID:-CartPole-v1}
train_phase 1 ppo "$env_id" "$half" --eval-episodes=0 "$@"
train_phase 2 ppo "$env_id" "$half" --eval-episodes=5 "$@"
