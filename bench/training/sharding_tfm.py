"""Some updates of a training by several processes: torchrun's `-m bench.training.sharding_tfm FILE`.

The first prints JSON.
"""

import json
import os
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tfm.model.config import ModelConfig
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.stages.train import train
from tfm.pipeline.training.loop import Trainer
from tfm.pipeline.training.update import UpdateSums
from tfm.pipeline.training_config import TrainingConfig


class MeasurementDone(BaseException):
    """All updates to measure are done."""


def main(request: dict[str, Any]) -> None:
    times: list[float] = []
    tokens: list[int] = []
    size: list[int] = []
    log_update = Trainer.log_update

    def note(trainer: Trainer, update: UpdateSums, *rest: Any) -> None:
        log_update(trainer, update, *rest)
        times.append(time.perf_counter())
        tokens.append(update.tokens)
        if not size:
            size.append(sum(each.numel() for each in trainer.state.model.parameters()))
        if len(times) > request["updates"]:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            peaks = trainer.world.all_gather_object(peak)
            rate = sum(tokens[1:]) / (times[-1] - times[0])
            if trainer.world.is_main_process:
                print(json.dumps({"memory": max(peaks), "rate": rate, "parameters": size[0]}), flush=True)
            trainer.world.barrier()
            raise MeasurementDone

    Trainer.log_update = note  # type: ignore[assignment,method-assign]
    model, training = ModelConfig.model_validate(request["model"]), TrainingConfig.model_validate(request["training"])
    rest: dict[str, Any] = {
        "seed": 1,
        "evaluation": EvaluationConfig(),
        "command": ["bench"],
        "reporter": NullReporter(),
    }
    with suppress(MeasurementDone):
        train(
            training,
            model,
            DecodingConfig(),
            Path(request["dataset"]),
            Path(request["out"]),
            reporter=NullReporter(),
            **rest,
        )
    sys.stdout.flush()
    os._exit(0)  # torch's own end waits for communication that is over


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
