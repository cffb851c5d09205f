#!/bin/bash
# Any number of independent tasks share a study on PostgreSQL, started and ended in any order: sbatch deploy/slurm-array.sh STUDY
#SBATCH --array=1-16
#SBATCH --gpus=1
#SBATCH --requeue
set -euo pipefail
exec evenedit run "$1"
