"""The steps of word vectors by themselves: `python -m bench.training.vectors_tfm < JSON`. Prints JSON."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.dataset.store import load_dataset
from tfm.model.build import build
from tfm.model.config import ModelConfig
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.tasks.registry import make_task
from tfm.pipeline.tasks.task import TaskContext
from tfm.pipeline.training.assembly.word2vec import Word2vecGradientComputer, initialize_as_word2vec
from tfm.pipeline.training.optimizers import make_optimizer, set_learning_rate
from tfm.pipeline.training_config import TrainingConfig

SEED = 1


def main(request: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    config, training = ModelConfig.model_validate(request["model"]), TrainingConfig.model_validate(request["training"])
    data = load_dataset(Path(request["dataset"]))
    pair = load_tokenizer_pair(data.tokenizer_folder)
    task = make_task(TaskContext(training, config, *pair, data.batch_tokens, 1))
    model: Any = build(config, source_vocab=pair[0].vocab_size, target_vocab=pair[1].vocab_size, seed=SEED)
    task.prepare_model(model, data)
    initialize_as_word2vec(model)
    optimizer = make_optimizer(model, training.optimizer)
    updates = Word2vecGradientComputer(model, task, data.train, training, SEED, World(), optimizer)  # compiles
    epochs, step, total = task.epochs(data.train, data.batch_tokens, SEED), 0, 0
    num_steps = sum(epochs.num_batches(number) for number in range(request["epochs"]))
    start, start_cpu = time.perf_counter(), time.process_time()
    for number in range(request["epochs"]):
        for rows in epochs(number):
            step += 1
            set_learning_rate(optimizer, request["peak"] * (1 - step / num_steps))
            updates.start_gradient([rows], step, stop=False).wait_for_update_sums()
            total += int(data.train.target_lengths[rows].sum())
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    assert np.isfinite(model.table.weight.detach().numpy()).all()
    print(json.dumps({"rate": total / seconds, "cpu_rate": total / cpu}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
