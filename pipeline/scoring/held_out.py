"""What a model that translates nothing is scored by: how probable it finds the texts of a test set.

The figures are those of validation, on the test set, with their signatures.
"""

import math

import torch

from data.errors import DataError
from data.store import Split
from model.config import ModelConfig
from pipeline.config import TrainingConfig
from pipeline.models import LoadedModel
from pipeline.scoring.evaluation import Evaluation
from pipeline.scoring.metrics import Score
from pipeline.scoring.perplexity import exp_or_inf
from pipeline.tasks.task import About
from pipeline.tasks.tasks import TASKS
from pipeline.training.distributed import World
from pipeline.training.validation import Validator


def held_out(loaded: LoadedModel, name: str, split: Split, batch_tokens: int) -> Evaluation:
    """Perplexity and accuracy by token of a test set and, of a language model, bits a character.

    Of word vectors that learned by negative sampling, which has no probabilities, the loss a prediction. Raises
    DataError where there is nothing to predict.
    """
    config, tokenizers = loaded.config, (loaded.source_tokenizer, loaded.target_tokenizer)
    task = TASKS[config.task](About(TrainingConfig(), config, *tokenizers, batch_tokens))
    device = next(loaded.model.parameters()).device
    validator = Validator(task, split, task.ordered(split, batch_tokens), None)
    with torch.inference_mode():
        nll, correct, count, _ = validator.sums(loaded.model.eval(), World(device=device), lambda: None)
    if not count:
        raise DataError(f"{name} has nothing that this model ({config.task}) predicts")
    signature = _signature(config, count)
    accuracy = Score(100 * correct / count, f"{signature}|stat:share*100")
    if not task.has_perplexity:
        return _evaluation(name, split, {"loss": Score(nll / count, signature), "token_accuracy": accuracy})
    scores = {
        "perplexity": Score(exp_or_inf(nll / count), f"{signature}|vocab:{loaded.target_tokenizer.vocab_size}"),
        "token_accuracy": accuracy,
    }
    if config.task == "language_model":
        # a line break is a character, as the end token that stands for it is a token
        characters = sum(len(text) + 1 for text in split.texts()[1])
        bits = nll / math.log(2) / characters
        scores["bits_per_character"] = Score(bits, f"unit:code-point|count:{characters}|breaks:counted|{signature}")
    return _evaluation(name, split, scores)


def _signature(config: ModelConfig, count: float) -> str:
    """What is predicted, how many of it, and from what."""
    if config.task == "word_vectors":
        words, unit = config.word_vectors, "neighbour" if config.architecture == "skip_gram" else "word"
        noise = "none" if words.negatives is None else f"{words.negatives}-others"
        return f"unit:{unit}|count:{count:.0f}|end:none|window:{words.window}|noise-words:{noise}"
    unit = "chosen-token" if config.task == "masked_language_model" else "token"
    context = "line" if config.block is None else f"windows-of-{config.block}"
    return f"unit:{unit}|count:{count:.0f}|end:counted|context:{context}"


def _evaluation(name: str, split: Split, scores: dict[str, Score]) -> Evaluation:
    return Evaluation(name, len(split), scores, (), "source", (), (), ())
