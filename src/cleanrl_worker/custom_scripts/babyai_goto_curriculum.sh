#!/usr/bin/env bash
# @description BabyAI GoTo: one ball, a ball among other things, any object, whatever the mission names
# @env_family babyai
# @phases 4
# @total_timesteps 1000000
# @author MOSAIC
set -euo pipefail
source "${BASH_SOURCE[0]%/*}/train_phase.bash"

share=$((MOSAIC_TOTAL_TIMESTEPS / 10))
flags=(--num-envs=16 --num-minibatches=8 --learning-rate=1e-3 --no-anneal-lr)
train_phase 1 ppo BabyAI-GoToRedBallNoDists-v0 "$((share * 2))" "${flags[@]}" "$@"
train_phase 2 ppo BabyAI-GoToRedBall-v0 "$((share * 2))" "${flags[@]}" "$@"
train_phase 3 ppo BabyAI-GoToObj-v0 "$((share * 2))" "${flags[@]}" "$@"
train_phase 4 ppo BabyAI-GoToLocal-v0 "$((share * 4))" "${flags[@]}" "$@"
