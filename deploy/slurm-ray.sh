#!/bin/bash
# One job with several nodes, which Ray joins to one cluster: sbatch deploy/slurm-ray.sh STUDY
#SBATCH --nodes=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --ntasks-per-node=1
set -euo pipefail
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun ray symmetric-run --address "$head:6379" --min-nodes "$SLURM_NNODES" -- evenedit run "$1"
