"""How the tokenizers of a recipe are learned: a trainer for each side that has a vocabulary of its own."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tfm.data.config import DataConfig
from tfm.data.errors import DataError, format_count, format_names, format_share
from tfm.data.foreign_tokenizers.loading import load_foreign_tokenizer
from tfm.data.lines import chunk_rows
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.reports.tokenizer_report import (
    TEXTS_PER_BATCH,
    AnyTokenizerTrainer,
    CorpusTexts,
)
from tfm.pipeline.runtime.progress import Reporter, run_with_elapsed_time
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.growth.trainer import GrowthTrainer
from tfm.tokenizer.special import SPECIAL_TOKENS
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import LabelTrainer, LanguageClustersTrainer, TokenizerTrainer


def trained_sides(config: TokenizerConfig, data: DataConfig | None = None) -> tuple[str, ...]:
    """The sides that have a vocabulary of their own: an image has none."""
    if data is not None and data.images is not None:
        return ("target",)
    return ("shared",) if config.shared else ("source", "target")


def train_tokenizers(
    trainers: Mapping[str, AnyTokenizerTrainer],
    ready_tokenizers: Mapping[str, Tokenizer],
    corpora: Iterable[CorpusTexts],
    min_frequency: int,
    reporter: Reporter,
) -> dict[str, Tokenizer]:
    """Learn one tokenizer a side; the only one learns from every text of a row. A given one learns nothing."""
    column_trainers = list(trainers.values())
    with reporter.bar("reading text", None, "lines") as bar:
        for rows, languages in corpora:
            for batch in chunk_rows(rows, TEXTS_PER_BATCH):
                for row in batch:
                    for number, text in enumerate(row):
                        column_trainers[number % len(column_trainers)].add(text, languages[number])
                bar.advance(len(batch))
    tokenizers = {}
    for side, trainer in trainers.items():
        if side in ready_tokenizers:
            tokenizers[side] = ready_tokenizers[side]
            continue
        with reporter.bar("learning pieces", None, "different words", done=trainer.num_words) as bar:
            tokenizers[side] = run_with_elapsed_time(trainer.learn, bar)
        if isinstance(trainer, LabelTrainer) and (joined := trainer.joined_labels):
            has, have = (f"{verb} several others in one" for verb in ("is", "are"))
            labels = f"{format_share(len(joined), trainer.num_words, 'label', has, have)} ({format_names(joined[:3])})"
            reporter.warn(f"{labels}, each learned as a class of its own: keep one label a row")
        new, initial_size = (
            ("new ", trainer.old.vocab_size) if isinstance(trainer, GrowthTrainer) else ("", len(SPECIAL_TOKENS))
        )
        if tokenizers[side].vocab_size == initial_size:
            raise DataError(
                f"there is nothing to learn a tokenizer from: no text, or no {new}piece of it occurs "
                f"tokenizer.min_frequency = {format_count(min_frequency, 'time')} ({side} side)"
            )
    return tokenizers


def reserve_control_tokens(config: TokenizerConfig, count: int) -> TokenizerConfig:
    """The config for the pieces alone, where the tokens of languages, and tags, count among them."""
    minimum = len(SPECIAL_TOKENS) + 4 + config.sentinels
    return config.model_copy(update={"vocab_size": max(config.vocab_size - count, minimum)})


def make_trainers(
    config: TokenizerConfig, sides: Sequence[str], languages: Sequence[str] = ()
) -> dict[str, AnyTokenizerTrainer]:
    """Return the trainer of each side's tokenizer. Raises RecipeError if the languages cannot be clustered as
    said.
    """
    if (problem := config.languages_problem(languages)) is not None:
        raise RecipeError(problem)
    if config.clusters is not None:
        return {side: LanguageClustersTrainer(config, languages) for side in sides}
    return {side: _make_trainer(config, side, is_first=side == sides[0]) for side in sides}


def _make_trainer(
    config: TokenizerConfig, side: str, *, is_first: bool
) -> TokenizerTrainer | LabelTrainer | GrowthTrainer:
    """Return the trainer of a side's tokenizer; the first one has more pieces than that of a file where it is to
    grow.
    """
    if is_first and config.file is not None and config.grow is not None:
        path = Path(config.file)
        try:
            return GrowthTrainer(load_foreign_tokenizer(config).tokenizer, config.grow, config.min_frequency)
        except ValueError as error:
            raise DataError(str(error), file=path) from error
    if side == "target" and config.label_kind is not None:
        return LabelTrainer(config.label_kind)
    return TokenizerTrainer({"source": config.source_config, "target": config.target_config}.get(side, config))
