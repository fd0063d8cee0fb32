"""Scores of models that do not translate: how probable they find the texts of a test set.

The figures are those of validation, on the test set, with their signatures.
"""

import math
from dataclasses import replace

import numpy as np
import torch

from tfm.data.dataset.split import Split
from tfm.data.errors import DataError
from tfm.model.config import ModelConfig
from tfm.pipeline.config import TrainingConfig
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.character_counts import Characters, warn_of_unknown
from tfm.pipeline.scoring.evaluation import Evaluation
from tfm.pipeline.scoring.ledger import fingerprint
from tfm.pipeline.scoring.metrics.score import Score, exp_or_inf
from tfm.pipeline.scoring.validation import Validator
from tfm.pipeline.tasks.abilities import ABILITIES
from tfm.pipeline.tasks.language_model import LineWindows
from tfm.pipeline.tasks.registry import task_of
from tfm.pipeline.tasks.task import Task, TaskContext
from tfm.tokenizer.special import UNK_ID


def held_out(loaded: LoadedModel, name: str, split: Split, batch_tokens: int, reporter: Reporter) -> Evaluation:
    """Perplexity and accuracy by token of a test set and, of a language model, bits a character.

    Of word vectors that learned by negative sampling, which has no probabilities, the loss a prediction. Of texts that
    are longer than the model reads a language model scores windows one by one, and a masked one what is not cut off;
    both are said. Raises DataError where there is nothing to predict.
    """
    config, tokenizers = loaded.config, (loaded.source_tokenizer, loaded.target_tokenizer)
    task = task_of(TaskContext(TrainingConfig(), config, *tokenizers, batch_tokens))
    task, split, num_long = _within(task, split, loaded, name, reporter)
    device = next(loaded.model.parameters()).device
    validator = Validator(task, split, task.ordered(split, batch_tokens), None)
    with torch.inference_mode():
        nll, correct, count, _ = validator.sums(loaded.model.eval(), World(device=device), lambda: None)
    if not count:
        raise DataError(f"{name} has nothing that this model ({config.task}) predicts")
    signature = _signature(config, count) + _beside(config, split, num_long, name, reporter)
    accuracy = Score(100 * correct / count, f"{signature}|stat:share*100")
    if not task.has_perplexity:
        return _evaluation(name, split, {"loss": Score(nll / count, signature), "token_accuracy": accuracy})
    scores = {
        "perplexity": Score(exp_or_inf(nll / count), f"{signature}|vocab:{loaded.target_tokenizer.vocab_size}"),
        "token_accuracy": accuracy,
    }
    if "bits_per_character" in ABILITIES[config.task].figures:
        # a line break is a character, as the end token that stands for it is a token
        characters = Characters.of(split.texts()[1], loaded.target_tokenizer, breaks=True)
        bits = nll / math.log(2) / characters.count
        scores["bits_per_character"] = Score(bits, f"{characters.signature}|breaks:counted|{signature}")
    return _evaluation(name, split, scores)


def _within(task: Task, split: Split, loaded: LoadedModel, name: str, reporter: Reporter) -> tuple[Task, Split, int]:
    """Task and split such that no text is longer than the model reads, and how many texts were."""
    abilities, reads = ABILITIES[loaded.config.task], loaded.model.max_length
    remedy = abilities.by_probability.long_texts
    if remedy is None or loaded.config.block is not None:
        return task, split, 0
    num_long = int(((split.source_lengths if abilities.reads == "source" else split.target_lengths) >= reads).sum())
    if not num_long:
        return task, split, 0
    way = "were cut" if remedy == "cut" else f"are scored in windows of {reads} tokens, each by itself"
    reporter.warn(
        f"{name}: {num_long} of {len(split)} texts are longer than the {reads - 1} pieces that the model reads, and "
        f"{way}"
    )
    if remedy != "cut":
        return LineWindows(split, reads), split, num_long
    source = replace(split.source, lengths=np.minimum(split.source_lengths, reads - 1))
    return task, replace(split, source=source), num_long


def _signature(config: ModelConfig, count: float) -> str:
    """What is predicted, how many of it, and from what."""
    abilities = ABILITIES[config.task]
    unit = abilities.by_probability.unit
    if abilities.within_window:
        words, unit = config.word_vectors, "neighbour" if config.architecture == "skip_gram" else unit
        noise = "none" if words.negatives is None else f"{words.negatives}-others"
        window = f"1-to-{words.window}" if words.shrink else words.window  # drawn for each word
        return f"unit:{unit}|count:{count:.0f}|end:none|window:{window}|noise-words:{noise}"
    context = "line" if config.block is None else f"windows-of-{config.block}"
    return f"unit:{unit}|count:{count:.0f}|end:counted|context:{context}"


def _beside(config: ModelConfig, split: Split, num_long: int, name: str, reporter: Reporter) -> str:
    """For a signature: the pieces that are unknown, and the texts that are longer than the model reads."""
    abilities = ABILITIES[config.task]
    ids, _ = (split.source if abilities.reads == "source" else split.target).take(np.arange(len(split)))
    unknown, how = int((ids == UNK_ID).sum()), abilities.by_probability
    if not abilities.within_window:  # else what is unknown is left out
        warn_of_unknown(name, unknown, len(ids), reporter)
    return (f"|{how.unknown}:{unknown}" if unknown else "") + (f"|{how.long_texts}:{num_long}" if num_long else "")


def _evaluation(name: str, split: Split, scores: dict[str, Score]) -> Evaluation:
    sources, targets = split.texts()
    texts = fingerprint(targets if any(targets) else sources)
    return Evaluation(name, len(split), scores, (), "source", (), (), (), texts=texts)
