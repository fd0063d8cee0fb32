"""Hugging Face Marian and Seq2SeqTrainer on files of words p17: what they translate after how many seconds, as JSON.

Usage: python learn_huggingface.py < JSON     (needs: torch, transformers, accelerate)

Files and batches are those of train_huggingface.py. Adam and a rate that rises to `rate` over `warmup` updates and
comes down to 0. Every `every` updates, and after the last, the validation source is translated; the clock stands still.
"""

import json
import sys
import time
from typing import Any

from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, TrainerCallback

from bench.peers.decoding.decode_huggingface import decode_greedily
from bench.peers.training.train_huggingface import SETTINGS, Pairs, StepClock, make_model, read_pieces


class Curve(TrainerCallback):  # type: ignore[misc]
    """Translates the validation source from time to time."""

    def __init__(self, sources: list[list[int]], every: int, decoding_options: dict[str, int]) -> None:
        self.sources, self.every, self.how = sources, every, decoding_options
        self.points: list[dict[str, Any]] = []
        self.seconds = self.resumed = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self.resumed = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        step, model = state.global_step, rest["model"]
        if step % self.every and step != state.max_steps:
            return
        self.seconds += time.perf_counter() - self.resumed
        model.eval()
        outputs = decode_greedily(model, self.sources, **self.how)
        model.train()
        self.points.append({"step": step, "seconds": self.seconds, "found": outputs})
        print(f"step {step} after {self.seconds:.0f} s", file=sys.stderr)
        self.resumed = time.perf_counter()


def main(request: dict[str, Any]) -> None:
    sources, targets = read_pieces(request["source"]), read_pieces(request["target"])
    valid_sources, longest = read_pieces(request["valid"]), max(map(len, sources + targets))
    curve = Curve(valid_sources, request["every"], {"beam": request["beam"], "batch": 64, "longest": longest - 2})
    arguments = Seq2SeqTrainingArguments(
        "hf_out",
        per_device_train_batch_size=request["sentences"],
        max_steps=request["updates"],
        label_smoothing_factor=request["size"]["smoothing"],
        learning_rate=request["rate"],
        warmup_steps=request["warmup"],
        lr_scheduler_type="linear",
        adam_beta2=0.98,
        use_cpu=True,
        **SETTINGS,
    )
    Seq2SeqTrainer(
        model=make_model(request["size"], max(longest, *map(len, valid_sources))),
        args=arguments,
        train_dataset=Pairs(sources, targets),
        data_collator=StepClock(0, 0).collate,
        callbacks=[curve],
    ).train()
    print(json.dumps({"points": curve.points}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
