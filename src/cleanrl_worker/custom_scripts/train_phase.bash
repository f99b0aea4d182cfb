# Sourced by the scripts beside it: training in phases, each with the weights of the one before.

# train_phase NUMBER ALGO ENV_ID STEPS [flags of the algorithm…]
# A run that is started again passes over phases that are done and goes on in the one that it was in.
train_phase() {
    local number=$1 algo=$2 env_id=$3 steps=$4 folder=$MOSAIC_RUN_DIR/runs/phase-$1
    local start=() found
    shift 4
    mosaic phase "$number" "$env_id"
    found=("$folder"/checkpoints/step-*.npz)
    if [ -e "${found[0]}" ]; then
        start=("--resume-from=$folder/checkpoints")
    elif [ ! -e "$folder/done" ]; then
        rm -rf -- "$folder"
        start=(${weights:+"--resume-from=$weights"})
    fi
    if [ ! -e "$folder/done" ]; then
        mkdir -p "$folder"
        # A folder of its own: each phase counts its steps and keeps its checkpoints by itself.
        (cd "$folder" && exec python -m "cleanrl_worker.algorithms.$algo" --env-id="$env_id" \
            --total-timesteps="$steps" --seed="${MOSAIC_SEED:-1}" ${start[@]+"${start[@]}"} "$@")
        touch "$folder/done"
    fi
    found=("$folder"/runs/*/"$algo.cleanrl_model")
    weights=${found[-1]}
}
