"""Trainings by several processes, in float64: each process a program of its own, as torchrun starts them."""

import os
import subprocess
import sys
from pathlib import Path

from tests.killing import free_port
from tfm.model.config import ModelConfig
from tfm.pipeline.training_config import TrainingConfig

ROOT = Path(__file__).parents[1]


def train_by_ranks(
    dataset: Path, out: Path, config: TrainingConfig, model: ModelConfig, ranks: int, precision: str = "float64"
) -> list[tuple[int, str]]:
    """Train by so many processes; the exit code and the output of each."""
    shared = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    given = str(dataset), str(out), config.model_dump_json(), model.model_dump_json(), precision
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.sharded_ranks", *given],
            cwd=ROOT,
            env={**os.environ, **(shared if ranks > 1 else {}), "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(ranks)
    ]
    try:
        output = [process.communicate(timeout=500)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(process.returncode, text) for process, text in zip(processes, output, strict=True)]


def main(dataset: Path, out: Path, config: TrainingConfig, model: ModelConfig, precision: str) -> None:
    """Train as one of the processes."""
    from contextlib import nullcontext

    from tests.tiny_training import in_float64, run

    with in_float64() if precision == "float64" else nullcontext():
        run(dataset, out, config, model=model)


if __name__ == "__main__":
    from tfm.pipeline.errors import TfmError

    read = TrainingConfig.model_validate_json, ModelConfig.model_validate_json
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]), read[0](sys.argv[3]), read[1](sys.argv[4]), sys.argv[5])
    except TfmError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
