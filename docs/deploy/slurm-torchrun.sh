#!/bin/bash
# Training of a recipe on several nodes of SLURM, by torchrun: sbatch docs/deploy/slurm-torchrun.sh RECIPE [OPTION...]
# Submit it in the folder of runs/, which all nodes share. Stopped by SLURM, it saves a checkpoint and is queued again.
#SBATCH --job-name=tfm-train
#SBATCH --nodes=2                     # machines
#SBATCH --ntasks-per-node=1           # one torchrun on each, which starts the processes of its GPUs
#SBATCH --gpus-per-node=8             # without GPUs: remove this line
#SBATCH --cpus-per-task=16
#SBATCH --time=24:00:00
#SBATCH --signal=TERM@300             # five minutes before the end: tfm saves a checkpoint and ends with exit code 75
#SBATCH --requeue                     # a node that fails puts the job into the queue again
#SBATCH --open-mode=append            # the log of a job that was queued again goes on
#SBATCH --output=%x-%j.log
set -euo pipefail

recipe=$1
shift
processes=${TFM_PROCESSES_PER_NODE:-${SLURM_GPUS_ON_NODE:-1}}
port=${TFM_PORT:-29500}
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}  # since 22.05 srun does not take it over from sbatch
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
address=$(srun --nodes=1 --ntasks=1 --nodelist="${nodes[0]}" hostname --ip-address | cut -d ' ' -f 1)
threads=$((${SLURM_CPUS_PER_TASK:-1} / processes))
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((threads > 0 ? threads : 1))}

status=0
# SLURM_NODEID is known on each node alone: hence the single quotes.
# shellcheck disable=SC2016
srun --kill-on-bad-exit=1 bash -c '
    exec torchrun --nnodes="$1" --nproc-per-node="$2" --node-rank="$SLURM_NODEID" --master-addr="$3" --master-port="$4" \
        -m tfm.cli.app train --recipe "${@:5}"
' torchrun "$SLURM_JOB_NUM_NODES" "$processes" "$address" "$port" "$recipe" "$@" || status=$?

if [ "$status" -eq 75 ] || [ "$status" -eq 143 ]; then  # stopped, and the same command resumes
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
