"""Hugging Face's `generate` on an exported model: `python generate_huggingface.py < JSON`. Prints tokens and seconds.

Needs torch and transformers, and nothing of tfm.
"""

import json
import sys
import time
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main(request: dict[str, Any]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(request["model"])
    model = AutoModelForCausalLM.from_pretrained(request["model"]).to(request["device"]).eval()
    ids = tokenizer(request["prompt"], return_tensors="pt")["input_ids"].long().to(request["device"])
    if not ids.numel():
        ids = torch.tensor(
            [[model.generation_config.bos_token_id or model.config.bos_token_id]], device=request["device"]
        )
    options: dict[str, Any] = {
        "max_new_tokens": request["tokens"],
        "min_new_tokens": request["tokens"],
        "use_cache": True,
    }
    options |= {"do_sample": False} if request["greedy"] else {"do_sample": True, "top_k": request["top_k"]}
    tokens, start = 0, 0.0
    with torch.inference_mode():
        for number in range(request["repeats"] + 1):
            if number == 1:
                tokens, start = 0, time.perf_counter()
            output = model.generate(ids.expand(1 if request["greedy"] else request["texts"], -1), **options)
            tokens += output.shape[0] * (output.shape[1] - ids.shape[1])
    print(json.dumps({"tokens": tokens, "seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
