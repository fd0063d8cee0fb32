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


def main(asked: dict[str, Any]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(asked["model"])
    with TemporaryDirectory() as folder:
        ctranslate2.converters.TransformersConverter(asked["model"]).convert(folder, force=True)
        name_end_token(Path(folder) / "config.json")
        engine = ctranslate2.Generator(folder, device=asked["device"], intra_threads=asked["threads"])
    start = tokenizer.convert_ids_to_tokens(tokenizer(asked["prompt"])["input_ids"]) or [tokenizer.bos_token]
    num_texts = 1 if asked["greedy"] else asked["texts"]
    how: dict[str, Any] = {
        "max_length": asked["tokens"],
        "min_length": asked["tokens"],
        "include_prompt_in_result": False,
    }
    how |= {"beam_size": 1} if asked["greedy"] else {"sampling_topk": asked["top_k"]}
    tokens, began = 0, 0.0
    for number in range(asked["repeats"] + 1):
        if number == 1:
            tokens, began = 0, time.perf_counter()
        found = engine.generate_batch([start] * num_texts, **how)
        tokens += sum(len(each.sequences_ids[0]) for each in found)
    print(json.dumps({"tokens": tokens, "seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
