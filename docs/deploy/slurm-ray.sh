#!/bin/bash
# A stage on several nodes of SLURM, by Ray: sbatch docs/deploy/slurm-ray.sh preprocess --recipe RECIPE
# or: sbatch docs/deploy/slurm-ray.sh translate runs/NAME FILE --out DIR
# Submit it in the folder of runs/, which all nodes share. Queued again, it goes on with the chunks that are done.
#SBATCH --job-name=tfm-ray
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1           # one part of Ray on each node, which starts a process for each processor
#SBATCH --cpus-per-task=16
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log
set -euo pipefail

port=${TFM_RAY_PORT:-6379}
cpus=${SLURM_CPUS_PER_TASK:-1}
export RAY_USAGE_STATS_ENABLED=0
RAY_AUTH_TOKEN=$(python -c 'import secrets; print(secrets.token_hex(32))')
export RAY_AUTH_TOKEN RAY_AUTH_MODE=token  # Ray's ports run commands of this job alone
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}  # since 22.05 srun does not take it over from sbatch
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
address=$(srun --nodes=1 --ntasks=1 --nodelist="${nodes[0]}" hostname --ip-address | cut -d ' ' -f 1)

# --overlap: the command at the end runs beside these steps. --block: a step goes on until it is sent a signal.
srun --overlap --nodes=1 --ntasks=1 --nodelist="${nodes[0]}" \
    ray start --head --node-ip-address="$address" --port="$port" --num-cpus="$cpus" --include-dashboard=false --block &
head=$!
until srun --overlap --nodes=1 --ntasks=1 --nodelist="${nodes[0]}" ray health-check --address "$address:$port" 2> /dev/null; do
    if ! kill -0 "$head" 2> /dev/null; then
        echo "Ray did not start on ${nodes[0]}; submit the job again" >&2
        exit 1
    fi
    sleep 2
done
for node in "${nodes[@]:1}"; do
    srun --overlap --nodes=1 --ntasks=1 --nodelist="$node" \
        ray start --address="$address:$port" --num-cpus="$cpus" --block &
done

status=0
srun --overlap --nodes=1 --ntasks=1 --nodelist="${nodes[0]}" \
    python -m tfm.cli.app "$@" --cluster "$address:$port" || status=$?
srun --overlap --ntasks-per-node=1 ray stop > /dev/null || true
mapfile -t steps < <(jobs -p)
kill "${steps[@]}" 2> /dev/null || true  # ray start --block outlives a part of Ray that was stopped
wait
exit "$status"
