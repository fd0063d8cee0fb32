"""Scores of models that do not translate: the probability of the texts of a test set.

For a language model, from one sum over the tokens of the text (its line breaks are tokens, words and characters too):

    perplexity by piece = exp(-log p / pieces)      by word = exp(-log p / words)
    bits a character    = -log2 p / characters

For the others the figures are those of validation, on the test set, with their signatures.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from tfm.data.arrays import Ints
from tfm.data.dataset.split import Split, TokenIdColumn
from tfm.data.errors import DataError, format_count, format_share
from tfm.model.config import ModelConfig
from tfm.pipeline.config import stride_problem
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.evaluation.evaluation import Evaluation
from tfm.pipeline.scoring.ledger import split_fingerprint
from tfm.pipeline.scoring.metrics.score import Score, exp_or_inf
from tfm.pipeline.scoring.segment_scores import Likelihoods
from tfm.pipeline.scoring.text_counts import CharacterCounts, num_words, warn_of_unknown_pieces
from tfm.pipeline.scoring.token_scores import make_windows, token_scores
from tfm.pipeline.scoring.validation import Validator
from tfm.pipeline.tasks import word_vectors
from tfm.pipeline.tasks.abilities import TASK_SPECS, TaskSpec
from tfm.pipeline.tasks.language_model import concatenate_targets
from tfm.pipeline.tasks.masked_language_model import MASK_TOKEN_SHARE, RANDOM_TOKEN_SHARE
from tfm.pipeline.tasks.registry import make_task
from tfm.pipeline.tasks.task import TaskContext
from tfm.pipeline.training_config import TrainingConfig
from tfm.tokenizer.normalization import replace_surrogates
from tfm.tokenizer.special import UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer

ENCODED_LINES = 8192
"""Lines that a tokenizer encodes at once."""


def score_likelihood(
    loaded: LoadedModel, name: str, split: Split, batch_tokens: int, reporter: Reporter, *, stride: int | None = None
) -> Evaluation:
    """Score a test set with a model that does not translate.

    The scores are perplexity and accuracy by token and, of a language model, perplexity by word and bits a character.
    Word vectors that learned by negative sampling, which has no probabilities, have the loss a prediction. A language
    model scores texts that are longer than it reads in windows, and a masked one cuts them off; both are reported.

    Args:
        loaded: the model, with its tokenizers.
        name: of the test set.
        split: its texts.
        batch_tokens: the most tokens of a batch.
        reporter: shows progress, and warnings.
        stride: tokens between the beginnings of windows; None: side by side.

    Raises:
        DataError: there is nothing to predict.
        RecipeError: `stride` is longer than a window.
    """
    if TASK_SPECS[loaded.config.task].continues_text:
        return _score_language_model(loaded, name, split, batch_tokens, reporter, stride)
    config, tokenizers = loaded.config, (loaded.source_tokenizer, loaded.target_tokenizer)
    task = make_task(TaskContext(TrainingConfig(), config, *tokenizers, batch_tokens))
    split, num_long = _drop_long_texts(split, loaded, name, reporter)
    batches, device = task.ordered_batches(split, batch_tokens), next(loaded.model.parameters()).device
    with torch.inference_mode(), reporter.bar(f"scoring {name}", len(batches), "batches") as bar:
        validator = Validator(task, split, batches, None)
        nll, correct, count, _ = validator.sum_predictions_over_processes(
            loaded.model.eval(), World(device=device), bar.advance
        )
    if not count:
        raise DataError(f"{name} has nothing that this model ({config.task}) predicts: it has {task.empty_message}")
    signature = _likelihood_signature(config, count, task.num_draws) + _signature_addition(
        config, split, num_long, name, reporter
    )
    accuracy = Score(100 * correct / count, f"{signature}|stat:share*100")
    shares = {"token_accuracy": accuracy}
    if TASK_SPECS[config.task].within_window:
        words = int(word_vectors.num_words(split).sum())
        shares["objective"] = Score(nll / task.num_draws / words, f"words:{words}|{signature}")
    if not task.has_perplexity:
        return _make_evaluation(name, split, {"loss": Score(nll / count, signature), **shares})
    perplexity = _perplexity_score(nll, count, signature, loaded)
    return _make_evaluation(name, split, {"perplexity": perplexity, **shares})


def split_from_lines(lines: Sequence[str], source: Tokenizer, target: Tokenizer) -> Split:
    """Return lines as the split of a dataset, on both sides, since tasks differ in the side that they read.

    Half a character is U+FFFD, as tokenizers read it.

    Args:
        lines: the texts.
        source: the tokenizer of the source.
        target: the tokenizer of the target.
    """
    lines = [replace_surrogates(line) for line in lines]
    of_source = _encode_lines(lines, source)
    of_target = of_source if source is target else _encode_lines(lines, target)
    return Split.from_texts(of_source, of_target, lines, lines)


def _encode_lines(lines: Sequence[str], tokenizer: Tokenizer) -> TokenIdColumn:
    """Encode lines part by part: meanwhile a tokenizer takes far more memory than the ids that it gives."""
    firsts = range(0, max(len(lines), 1), ENCODED_LINES)
    parts = [tokenizer.encode_flat(lines[first : first + ENCODED_LINES]) for first in firsts]
    return TokenIdColumn.from_flat(
        np.concatenate([ids for ids, _ in parts]), np.concatenate([each for _, each in parts])
    )


def _score_language_model(
    loaded: LoadedModel, name: str, split: Split, batch_tokens: int, reporter: Reporter, stride: int | None
) -> Evaluation:
    config = loaded.config
    lines: Ints = split.target_lengths + 1
    longest = loaded.model.max_length if config.block is None else config.block
    if (reason := stride_problem(stride, config.block, loaded.model.max_length)) is not None:
        raise RecipeError(reason)
    if not len(split):
        raise DataError(f"{name} has nothing that this model ({config.task}) predicts")
    windows = make_windows(lines if config.block is None else lines.sum(keepdims=True), longest, stride or longest)
    overlap, num_long = windows.contexts.any(), int((lines > longest).sum()) if config.block is None else 0
    if num_long:
        spacing = f"each {stride} after the one before" if overlap else "each by itself (--stride gives them context)"
        _warn_of_long_texts(
            num_long,
            split,
            longest,
            f"scored in windows of {format_count(longest, 'token')}, {spacing}",
            name,
            reporter,
        )
    tokens = token_scores(
        loaded.model.eval(),
        concatenate_targets(split),
        windows,
        name=name,
        batch_tokens=batch_tokens,
        reporter=reporter,
    )
    texts = split.texts()[1]
    # a line break is a word (<eos> of Penn Treebank) and a character, as the end token in its place is a token
    by_line = Likelihoods(tokens.log_probs_of_texts(lines), lines, np.array([num_words(text) + 1 for text in texts]))
    characters = CharacterCounts.count_texts(texts, loaded.target_tokenizer, newlines=True)
    nll, count, words = -math.fsum(by_line.log_probs), len(tokens.log_probs), int(by_line.words.sum())
    signature = _likelihood_signature(config, count) + (f"|stride:{stride}" if overlap else "")
    signature += _signature_addition(config, split, num_long, name, reporter)
    scores = {
        "perplexity": _perplexity_score(nll, count, signature, loaded),
        "word_perplexity": Score(exp_or_inf(nll / words), f"unit:word|count:{words}|newline:counted|{signature}"),
        "token_accuracy": Score(100 * float(tokens.right.mean()), f"{signature}|stat:share*100"),
        "bits_per_character": Score(
            nll / math.log(2) / characters.num_characters, f"{characters.signature}|newline:counted|{signature}"
        ),
    }
    return replace(_make_evaluation(name, split, scores), likelihoods=by_line)


def _drop_long_texts(split: Split, loaded: LoadedModel, name: str, reporter: Reporter) -> tuple[Split, int]:
    """A split without texts longer than the model reads, if it reads texts whole; and the number of cut texts."""
    reads, abilities = loaded.model.max_length, TASK_SPECS[loaded.config.task]
    if abilities.by_probability.long_texts != "cut":
        return split, 0
    column = _input_column(split, abilities)
    num_long = int((column.lengths >= reads).sum())
    if not num_long:
        return split, 0
    _warn_of_long_texts(num_long, split, reads, "cut", name, reporter)
    short = replace(column, lengths=np.minimum(column.lengths, reads - 1))
    return replace(split, source=short) if abilities.reads == "source" else replace(split, target=short), num_long


def _input_column(split: Split, abilities: TaskSpec) -> TokenIdColumn:
    """The side of a split that a task reads."""
    return split.source if abilities.reads == "source" else split.target


def _warn_of_long_texts(
    num_long: int, split: Split, max_pieces: int, consequence: str, name: str, reporter: Reporter
) -> None:
    was = "was" if num_long == 1 else "were"
    reporter.warn(
        f"{name}: {format_share(num_long, len(split), 'text', 'is', 'are')} longer than the "
        f"{format_count(max_pieces - 1, 'piece')} that the model reads, and {was} {consequence}"
    )


def _perplexity_score(nll: float, count: float, signature: str, loaded: LoadedModel) -> Score:
    reads = TASK_SPECS[loaded.config.task].reads  # a text is predicted in the pieces in which it is read
    tokenizer = loaded.source_tokenizer if reads == "source" else loaded.target_tokenizer
    return Score(exp_or_inf(nll / count), f"{signature}|vocab:{tokenizer.vocab_size}")


def _likelihood_signature(config: ModelConfig, count: float, num_draws: int = 1) -> str:
    """The signature: the predictions, their number in all draws, their context, and the draws."""
    abilities = TASK_SPECS[config.task]
    unit, draws = abilities.by_probability.unit, f"|draws:{num_draws}" if num_draws > 1 else ""
    if abilities.within_window:
        words, unit = config.word_vectors, "neighbour" if config.architecture == "skip_gram" else unit
        noise = "none" if words.negatives is None else f"{words.negatives}-others"
        window = f"each-of-1-to-{words.window}" if words.shrink else words.window
        return f"unit:{unit}|count:{count:.0f}|end:none|window:{window}|noise-words:{noise}{draws}"
    if abilities.hides_spans:
        spans = f"{config.span_corruption.share:g}-in-spans-of-{config.span_corruption.mean_length:g}"
        return f"unit:{unit}|count:{count:.0f}|end:counted|sentinels:counted|hidden:{spans}{draws}"
    if abilities.hides_pieces:
        noise_shares = f"hidden:{MASK_TOKEN_SHARE:g}|random:{RANDOM_TOKEN_SHARE:g}"
        return f"unit:{unit}|count:{count:.0f}|end:none|context:line|chosen:each-once{draws}|{noise_shares}"
    context = "line" if config.block is None else f"windows-of-{config.block}"
    return f"unit:{unit}|count:{count:.0f}|end:counted|context:{context}"


def _signature_addition(config: ModelConfig, split: Split, num_long: int, name: str, reporter: Reporter) -> str:
    """The part of a signature on unknown pieces, and on texts that are longer than the model reads."""
    abilities = TASK_SPECS[config.task]
    ids, _ = _input_column(split, abilities).take(np.arange(len(split)))
    unknown, likelihood = int((ids == UNK_ID).sum()), abilities.by_probability
    if not abilities.within_window:  # else what is unknown is left out
        warn_of_unknown_pieces(name, unknown, len(ids), reporter)
    return (f"|{likelihood.unknown}:{unknown}" if unknown else "") + (
        f"|{likelihood.long_texts}:{num_long}" if num_long else ""
    )


def _make_evaluation(name: str, split: Split, scores: dict[str, Score]) -> Evaluation:
    texts = split_fingerprint(split)
    return Evaluation(name, len(split), scores, (), "source", (), (), (), texts=texts)
