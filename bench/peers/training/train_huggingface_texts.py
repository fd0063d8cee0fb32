"""GPT-2, BERT or CANINE and the Trainer of Hugging Face on examples of a task: predictions a second, as JSON.

Usage: python train_huggingface_texts.py < JSON     (needs: torch, transformers, accelerate)

The examples are a file of JSON lines, {"input_ids": [...], "labels": [...]}: a window of a running text and its tokens
again; a text and nothing, of which a share is hidden for each batch; a text and its label, or a label for each of its
tokens. 0 is padding. A prediction is what the loss counts.
"""

import json
import sys
import time
from typing import Any

import torch
from torch import Tensor
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertForTokenClassification,
    CanineConfig,
    CanineForSequenceClassification,
    CanineForTokenClassification,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from bench.peers.huggingface import PAD, canine_settings
from bench.peers.training.train_huggingface import IGNORED_LABEL, SETTINGS, pad_rows

CHOSEN, HIDDEN, RANDOM = 0.15, 0.8, 0.1
NUM_SPECIALS = 4
BERTS = {
    "masked_language_model": BertForMaskedLM,
    "classification": BertForSequenceClassification,
    "tagging": BertForTokenClassification,
}
CANINES = {"classification": CanineForSequenceClassification, "tagging": CanineForTokenClassification}


class Examples(torch.utils.data.Dataset[dict[str, Any]]):
    """The examples of a file."""

    def __init__(self, name: str) -> None:
        with open(name, encoding="utf-8") as file:
            self.examples = [json.loads(line) for line in file]

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, i: int) -> dict[str, Any]:
        example: dict[str, Any] = self.examples[i]
        return example


def hide_tokens(tokens: Tensor, vocab: int) -> tuple[Tensor, Tensor]:
    """Return (B, T) tokens of which some are hidden, and the labels: BERT's masks, as DataCollatorForLanguageModeling
    draws them."""
    draw, fate = torch.rand(tokens.shape), torch.rand(tokens.shape)
    chosen = (draw < CHOSEN) & (tokens >= NUM_SPECIALS)
    labels = torch.where(chosen, tokens, IGNORED_LABEL)
    tokens = torch.where(chosen & (fate < HIDDEN), PAD, tokens)
    is_random = chosen & (fate >= HIDDEN) & (fate < HIDDEN + RANDOM)
    return torch.where(is_random, torch.randint(NUM_SPECIALS, vocab, tokens.shape), tokens), labels


class Collator(TrainerCallback):  # type: ignore[misc]
    """Makes batches, counts the predictions of those after the warm-up, and their time."""

    def __init__(self, task: str, vocab: int, warmup: int, steps: int) -> None:
        self.task, self.vocab, self.first, self.last = task, vocab, warmup, warmup + steps
        self.batches = self.predictions = 0
        self.start = self.ended = 0.0

    def collate(self, examples: list[dict[str, Any]]) -> dict[str, Tensor]:
        tokens = pad_rows([each["input_ids"] for each in examples], PAD)
        mask = (torch.arange(tokens.shape[1]) < torch.tensor([[len(each["input_ids"])] for each in examples])).long()
        if self.task == "masked_language_model":
            tokens, labels = hide_tokens(tokens, self.vocab)
        elif self.task == "classification":
            labels = torch.tensor([each["labels"] for each in examples])
        else:
            labels = pad_rows([each["labels"] for each in examples], IGNORED_LABEL)
        predicted_labels = labels[:, 1:] if self.task == "language_model" else labels  # GPT-2 shifts them
        if self.first <= self.batches < self.last:
            self.predictions += int((predicted_labels != IGNORED_LABEL).sum())
        self.batches += 1
        return {"input_ids": tokens, "attention_mask": mask, "labels": labels}

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        if state.global_step == self.first:
            self.start = time.perf_counter()
        if state.global_step == self.last:
            self.ended = time.perf_counter()


def make_model(task: str, size: dict[str, Any], longest: int) -> Any:
    """GPT-2, BERT or CANINE of these sizes. size: layers, dim, heads, inner, dropout, vocab, labels, canine."""
    dropout = size["dropout"]
    if task == "language_model":
        shape = {"n_layer": size["layers"], "n_embd": size["dim"], "n_head": size["heads"], "n_inner": size["inner"]}
        rates = {"resid_pdrop": dropout, "embd_pdrop": dropout, "attn_pdrop": 0.0}
        rest = {"n_positions": longest, "vocab_size": size["vocab"], "bos_token_id": PAD, "eos_token_id": PAD}
        return GPT2LMHeadModel(GPT2Config(**shape, **rates, **rest, use_cache=False))
    shape = {"num_hidden_layers": size["layers"], "hidden_size": size["dim"], "num_attention_heads": size["heads"]}
    rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": 0.0}
    rest = {"intermediate_size": size["inner"], "max_position_embeddings": longest, "num_labels": size["labels"]}
    if size["canine"]:
        return CANINES[task](
            CanineConfig(**shape, **rates, **rest, **canine_settings(size["canine"]), pad_token_id=PAD)
        )
    return BERTS[task](BertConfig(**shape, **rates, **rest, vocab_size=size["vocab"], pad_token_id=PAD))


def main(request: dict[str, Any]) -> None:
    examples, task, size = Examples(request["examples"]), request["task"], request["size"]
    collator = Collator(task, size["vocab"], request["warmup"], request["steps"])
    arguments = TrainingArguments(
        "hf_out",
        per_device_train_batch_size=request["batch"],
        max_steps=collator.last,
        learning_rate=5e-4,
        label_smoothing_factor=0.0 if task == "language_model" else size["smoothing"],
        use_cpu=request["device"] == "cpu",
        bf16=request["device"] == "cuda",
        **SETTINGS,
    )
    longest = max(len(each["input_ids"]) for each in examples.examples)
    Trainer(
        model=make_model(task, size, longest),
        args=arguments,
        train_dataset=examples,
        data_collator=collator.collate,
        callbacks=[collator],
    ).train()
    predictions, seconds = collator.predictions, collator.ended - collator.start
    print(json.dumps({"rate": predictions / seconds, "tokens": predictions / request["steps"]}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
