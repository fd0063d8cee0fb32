"""Hugging Face's `generate` on an exported model: `python generate_huggingface.py < JSON`. Prints tokens and seconds.

Needs torch and transformers, and nothing of tfm.
"""

import json
import sys
import time
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main(asked: dict[str, Any]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(asked["model"])
    model = AutoModelForCausalLM.from_pretrained(asked["model"]).to(asked["device"]).eval()
    ids = tokenizer(asked["prompt"], return_tensors="pt")["input_ids"].long().to(asked["device"])
    if not ids.numel():
        ids = torch.tensor(
            [[model.generation_config.bos_token_id or model.config.bos_token_id]], device=asked["device"]
        )
    how: dict[str, Any] = {"max_new_tokens": asked["tokens"], "min_new_tokens": asked["tokens"], "use_cache": True}
    how |= {"do_sample": False} if asked["greedy"] else {"do_sample": True, "top_k": asked["top_k"]}
    tokens, began = 0, 0.0
    with torch.inference_mode():
        for number in range(asked["repeats"] + 1):
            if number == 1:
                tokens, began = 0, time.perf_counter()
            found = model.generate(ids.expand(1 if asked["greedy"] else asked["texts"], -1), **how)
            tokens += found.shape[0] * (found.shape[1] - ids.shape[1])
    print(json.dumps({"tokens": tokens, "seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
