"""CTranslate2 on an exported model, read by its own converter: `python generate_ctranslate2.py < JSON`.

Prints tokens and seconds. Needs ctranslate2, torch and transformers, and nothing of tfm.
"""

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ctranslate2
from transformers import AutoTokenizer


def name_end_token(config: Path) -> None:
    """Give an engine of running text, which nothing ends, an end token: CTranslate2 loads none without."""
    content = json.loads(config.read_text("utf-8"))
    content["eos_token"] = content["eos_token"] or content["bos_token"]
    config.write_text(json.dumps(content), "utf-8")


def main(request: dict[str, Any]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(request["model"])
    with TemporaryDirectory() as folder:
        ctranslate2.converters.TransformersConverter(request["model"]).convert(folder, force=True)
        name_end_token(Path(folder) / "config.json")
        engine = ctranslate2.Generator(folder, device=request["device"], intra_threads=request["threads"])
    start = tokenizer.convert_ids_to_tokens(tokenizer(request["prompt"])["input_ids"]) or [tokenizer.bos_token]
    num_texts = 1 if request["greedy"] else request["texts"]
    options: dict[str, Any] = {
        "max_length": request["tokens"],
        "min_length": request["tokens"],
        "include_prompt_in_result": False,
    }
    options |= {"beam_size": 1} if request["greedy"] else {"sampling_topk": request["top_k"]}
    tokens, start_time = 0, 0.0
    for number in range(request["repeats"] + 1):
        if number == 1:
            tokens, start_time = 0, time.perf_counter()
        results = engine.generate_batch([start] * num_texts, **options)
        tokens += sum(len(each.sequences_ids[0]) for each in results)
    print(json.dumps({"tokens": tokens, "seconds": time.perf_counter() - start_time}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
