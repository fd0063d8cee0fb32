"""Hugging Face Marian and Seq2SeqTrainer on files of words p17: target tokens a second, as JSON.

Usage: python train_huggingface.py < JSON     (needs: torch, transformers, accelerate)

The words' numbers are the ids; 0 is padding, 1 unknown, 2 start, 3 end. Batches are those of the Trainer: a number of
sentences, grouped by length.
"""

import json
import sys
import time
from typing import Any

import torch
from torch import Tensor
from transformers import MarianConfig, MarianMTModel, Seq2SeqTrainer, Seq2SeqTrainingArguments, TrainerCallback

from bench.peers.huggingface import BEGIN, END, PAD, size_settings

IGNORED_LABEL = -100
Row = list[int]
SETTINGS: dict[str, Any] = {
    "train_sampling_strategy": "group_by_length",
    "optim": "adamw_torch_fused",
    "report_to": [],
    "save_strategy": "no",
    "logging_steps": 10_000,
    "dataloader_num_workers": 0,
    "remove_unused_columns": False,
    "disable_tqdm": True,
    "seed": 1,
}
"""Of every Trainer that is measured."""


def read_pieces(name: str) -> list[Row]:
    with open(name, encoding="utf-8", newline="\n") as file:
        return [[int(word[1:]) for word in line.split()] + [END] for line in file]


class Pairs(torch.utils.data.Dataset[dict[str, Any]]):
    """Sentence pairs with what Seq2SeqTrainer groups by."""

    def __init__(self, sources: list[Row], targets: list[Row]) -> None:
        self.sources, self.targets = sources, targets

    def __len__(self) -> int:
        return len(self.sources)

    def __getitem__(self, i: int) -> dict[str, Any]:
        return {"input_ids": self.sources[i], "labels": self.targets[i], "length": len(self.targets[i])}


def pad_rows(rows: list[Row], value: int) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [value] * (width - len(row)) for row in rows])


class StepClock(TrainerCallback):  # type: ignore[misc]
    """Counts tokens and positions of the batches after the warm-up, and their time."""

    def __init__(self, warmup: int, steps: int) -> None:
        self.first, self.last = warmup, warmup + steps
        self.batches = self.tokens = self.real = self.positions = 0
        self.start = self.ended = 0.0

    def collate(self, examples: list[dict[str, Any]]) -> dict[str, Tensor]:
        sources, targets = [each["input_ids"] for each in examples], [each["labels"] for each in examples]
        source, labels = pad_rows(sources, PAD), pad_rows(targets, IGNORED_LABEL)
        if self.first <= self.batches < self.last:
            tokens = sum(map(len, targets))
            self.tokens += tokens
            self.real += tokens + sum(map(len, sources))
            self.positions += source.numel() + labels.numel()
        self.batches += 1
        shifted = pad_rows([[BEGIN, *row[:-1]] for row in targets], PAD)
        mask = (source != PAD).long()
        return {"input_ids": source, "attention_mask": mask, "decoder_input_ids": shifted, "labels": labels}

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        if state.global_step == self.first:
            self.start = time.perf_counter()
        if state.global_step == self.last:
            self.ended = time.perf_counter()


def make_model(size: dict[str, Any], longest: int) -> MarianMTModel:
    rest = {"dropout": size["dropout"], "attention_dropout": 0.0, "forced_eos_token_id": END}
    return MarianMTModel(MarianConfig(**size_settings(size, longest), **rest))


def main(request: dict[str, Any]) -> None:
    sources, targets = read_pieces(request["source"]), read_pieces(request["target"])
    clock = StepClock(request["warmup"], request["steps"])
    arguments = Seq2SeqTrainingArguments(
        "hf_out",
        per_device_train_batch_size=request["sentences"],
        max_steps=clock.last,
        label_smoothing_factor=request["size"]["smoothing"],
        learning_rate=5e-4,
        use_cpu=request["device"] == "cpu",
        bf16=request["device"] == "cuda",
        **SETTINGS,
    )
    longest = max(map(len, sources + targets))
    Seq2SeqTrainer(
        model=make_model(request["size"], longest),
        args=arguments,
        train_dataset=Pairs(sources, targets),
        data_collator=clock.collate,
        callbacks=[clock],
    ).train()
    rate, padding = clock.tokens / (clock.ended - clock.start), 1 - clock.real / clock.positions
    print(json.dumps({"rate": rate, "tokens": clock.tokens / request["steps"], "padding": padding}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
