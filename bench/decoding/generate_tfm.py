"""Our own generation, in a separate process: `python -m bench.decoding.generate_tfm < JSON`.

Prints tokens and seconds.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.inference.generation.generator import TextGenerationModel, TextGenerator
from tfm.pipeline.runtime.progress import NullReporter


def load(request: dict[str, Any]) -> TextGenerationModel:
    """Return the model by the engine that is asked for; its texts go on through the ends of lines."""
    if request["engine"] == "numpy":
        from tfm.pipeline.inference.generation.numpy_prompt_encoder import load_small_language_model

        model = load_small_language_model(Path(request["model"]), continue_past_line_end=True)
        if model is None:
            raise SystemExit("numpy does not have all parts of this model")
        return model
    from tfm.pipeline.inference.generation.prompt_encoder import PromptEncoder
    from tfm.pipeline.model_io.loaded_model import load_model

    return PromptEncoder(load_model(Path(request["model"]), request["device"]), continue_past_line_end=True)


def main(request: dict[str, Any]) -> None:
    settings: dict[str, Any] = {"max_length": request["tokens"]}
    sampling = {"strategy": "sample", "n_best": request["texts"], "top_k": request["top_k"] or None}
    settings |= {"beam": 1} if request["greedy"] else sampling
    generator = TextGenerator(load(request), DecodingConfig(**settings), NullReporter())
    tokens, start = 0, 0.0
    for number in range(request["repeats"] + 1):
        if number == 1:
            tokens, start = 0, time.perf_counter()
        tokens += sum(each.num_tokens for each in generator.generate_texts(request["prompt"]))
    print(json.dumps({"tokens": tokens, "seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
