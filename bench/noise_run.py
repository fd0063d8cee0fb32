"""One run on text with typing errors, in a separate process: `python -m bench.noise_run < JSON`. One thread.

Prints its main figure at each rate and seed of the errors, and the sentences that it read in a second of CPU time.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tfm.data.dataset.store import load_dataset
from tfm.data.typing_errors import add_typos_to_lines
from tfm.model.build import num_parameters
from tfm.pipeline.artifacts.artifact import read_artifact
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.inference.translation import translate_lines
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.runtime.threads import cpu_seconds
from tfm.pipeline.scoring.ledger import texts_fingerprint
from tfm.pipeline.scoring.metrics.registry import score_texts
from tfm.pipeline.tasks.abilities import TASK_SPECS, task_evaluation_config


def measure_run(run: Path, rates: list[float], draws: int, beam: int) -> dict[str, Any]:
    """The main figure of the run's first test set at each rate, for each seed of the errors; its speed on clean text.

    The clean text is read once for each seed too, so that the speed is of several rounds; the first one, in which
    everything is loaded, does not count.
    """
    loaded = load_model(run / "model", "cpu")
    data = read_artifact(run / "dataset", lambda _: load_dataset(run / "dataset"), "preprocess")
    sources, references = next(iter(data.tests.values())).texts()
    task = loaded.config.task
    decoding = DecodingConfig(beam=beam) if TASK_SPECS[task].translates else DecodingConfig()  # a label needs none
    figure = TASK_SPECS[task].figures[0]
    config = task_evaluation_config(task, EvaluationConfig.model_validate({"metrics": (figure,)}))
    scores, seconds = list[list[float]](), list[float]()
    for rate in rates:
        scores.append([])
        for seed in range(1, draws + 1):
            lines = add_typos_to_lines(sources, rate, seed)
            start = cpu_seconds()
            outputs = [each[0].text for each in translate_lines(loaded, lines, decoding, reporter=NullReporter())]
            if rate == 0:
                seconds.append(cpu_seconds() - start)
            scores[-1].append(score_texts(outputs, [references], config)[figure].score)
    return {
        "figure": figure,
        "scores": scores,
        "texts": texts_fingerprint(references, sources),
        "parameters": num_parameters(loaded.model),
        "tokens": float(np.mean([len(ids) for ids in loaded.source_tokenizer.encode_batch(sources)])),
        "sentences_per_second": len(sources) / float(np.median(seconds[1:] or seconds)),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    request = json.load(sys.stdin)
    print(json.dumps(measure_run(Path(request["run"]), request["rates"], request["draws"], request["beam"])))
