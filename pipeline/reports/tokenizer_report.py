"""Statistics of tokenizers on text that they did not learn from, of each side and each language: figures and tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, TypeAlias

from tfm.data.errors import format_count
from tfm.data.lines import chunk_rows, normalize_whitespace
from tfm.pipeline.runtime.progress import Reporter
from tfm.tokenizer.growth.trainer import GrowthTrainer
from tfm.tokenizer.special import UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import LabelTrainer, LanguageClustersTrainer, TokenizerTrainer

NUM_LONGEST_PIECES = 20


@dataclass
class TokenizerTextStatistics:
    """Statistics of a tokenizer on text.

    Args:
        num_words: runs between spaces.
        num_tokens: pieces.
        num_unknown: unknown pieces.
        num_texts: texts.
        num_changed: texts that encoding and decoding change.
    """

    num_words: int = 0
    num_tokens: int = 0
    num_unknown: int = 0
    num_texts: int = 0
    num_changed: int = 0

    def add(self, texts: Sequence[str], tokenizer: Tokenizer) -> None:
        """Count some more texts."""
        encoded = tokenizer.encode_batch(texts)
        decoded = tokenizer.decode_batch(encoded)
        self.num_words += sum(len(text.split()) for text in texts)
        self.num_tokens += sum(map(len, encoded))
        self.num_unknown += sum(ids.count(UNK_ID) for ids in encoded)
        self.num_texts += len(texts)
        self.num_changed += sum(
            normalize_whitespace(a) != normalize_whitespace(b) for a, b in zip(texts, decoded, strict=True)
        )

    @property
    def tokens_a_word(self) -> float:
        return self.num_tokens / max(self.num_words, 1)

    @property
    def unknown_rate(self) -> float:
        return self.num_unknown / max(self.num_tokens, 1)

    @property
    def changed_rate(self) -> float:
        """Share of texts that decoding does not give back, but for white space."""
        return self.num_changed / max(self.num_texts, 1)

    def as_json(self) -> dict[str, float]:
        """The rates, as a manifest has them."""
        rates = ("tokens_a_word", "unknown_rate", "changed_rate")
        return {name: getattr(self, name) for name in rates}


@dataclass
class SideStatistics:
    """Statistics of the tokenizer of a side on all its texts, and on those of each language that is named."""

    all: TokenizerTextStatistics = field(default_factory=TokenizerTextStatistics)
    languages: dict[str, TokenizerTextStatistics] = field(default_factory=dict)

    def add(self, texts: Sequence[str], tokenizer: Tokenizer, language: str | None) -> None:
        """Count some more texts.

        Args:
            texts: the texts.
            tokenizer: of the side.
            language: of the texts; None: not named.
        """
        self.all.add(texts, tokenizer)
        if language is not None:
            self.languages.setdefault(language, TokenizerTextStatistics()).add(texts, tokenizer)


def tokenizer_statistics(tokenizer: Tokenizer, side_statistics: SideStatistics) -> dict[str, Any]:
    """Return the figures of a side's tokenizer for the manifest."""
    languages = {name: each.as_json() for name, each in sorted(side_statistics.languages.items())}
    return {
        "vocabulary_size": tokenizer.vocab_size,
        **side_statistics.all.as_json(),
        "longest_pieces": tokenizer.longest_pieces(NUM_LONGEST_PIECES),
        **({"languages": languages} if languages else {}),
    }


def show_statistics(
    tokenizers: Mapping[str, Tokenizer],
    measures: Mapping[str, SideStatistics],
    text_description: str,
    reporter: Reporter,
) -> None:
    """Show tables of the tokenizers of all sides.

    Args:
        tokenizers: by side.
        measures: by side.
        text_description: the texts on which they were measured, in words.
        reporter: shows the tables.
    """
    overall_statistics = [measures[side].all for side in tokenizers]
    rows = (
        ("vocabulary size", *(f"{each.vocab_size:,}" for each in tokenizers.values())),
        ("tokens a word", *(f"{each.tokens_a_word:.3f}" for each in overall_statistics)),
        ("unknown tokens", *(f"{each.unknown_rate:.3%}" for each in overall_statistics)),
        ("texts changed by encoding and decoding", *(f"{each.changed_rate:.3%}" for each in overall_statistics)),
    )
    reporter.table(f"tokenizer, measured on {text_description}", ["", *tokenizers], rows)
    language_rows = [
        (
            language,
            side,
            f"{statistics.num_words:,}",
            f"{statistics.tokens_a_word:.3f}",
            f"{statistics.unknown_rate:.3%}",
        )
        for side, measured in measures.items()
        for language, statistics in sorted(measured.languages.items())
    ]
    if language_rows:
        heads = ["language", "tokenizer", "words", "tokens a word", "unknown tokens"]
        reporter.table("the same by language", heads, language_rows)
    pieces = [
        [piece.replace(" ", "␣") for piece in tokenizer.longest_pieces(NUM_LONGEST_PIECES)]
        for tokenizer in tokenizers.values()
    ]
    title = f"the {NUM_LONGEST_PIECES} longest pieces, ␣ for a space"
    reporter.table(title, [*tokenizers], list(zip_longest(*pieces, fillvalue="")))


def show_language_clusters(clusters: Mapping[tuple[str, ...], int], reporter: Reporter) -> dict[str, Any]:
    """Show the languages that learned pieces together, with the number of pieces, and return them for a manifest."""
    rows = [(", ".join(languages), f"{pieces:,}") for languages, pieces in clusters.items()]
    reporter.table("clusters of languages", ["languages", "pieces"], rows)
    return {"clusters": [{"languages": [*each], "pieces": pieces} for each, pieces in clusters.items()]}


TEXTS_PER_BATCH = 1000
TextRow: TypeAlias = tuple[str, ...]  # the texts of a line: its source and target, or itself alone
CorpusTexts: TypeAlias = tuple[
    Iterator[TextRow], Sequence[str | None]
]  # rows, and the language of each column, if it is said
AnyTokenizerTrainer: TypeAlias = TokenizerTrainer | LabelTrainer | LanguageClustersTrainer | GrowthTrainer


def show_trainer_figures(trainers: Mapping[str, AnyTokenizerTrainer], reporter: Reporter) -> dict[str, Any]:
    """Show the further figures of trainers, and return them as the manifest has them: languages that learned together,
    new pieces.
    """
    figures: dict[str, Any] = {}
    for trainer in trainers.values():
        if isinstance(trainer, LanguageClustersTrainer):
            figures |= show_language_clusters(trainer.clusters, reporter)
        if isinstance(trainer, GrowthTrainer):
            figures["new_pieces"] = trainer.num_new
            request = f"of {trainer.count:,} asked for " if trainer.num_new < trainer.count else ""
            reporter.line(
                f"tokenizer: {format_count(trainer.num_new, 'piece')} {request}beside its {trainer.old.vocab_size:,}"
            )
    return figures


def measure_tokenizers(
    tokenizers: Mapping[str, Tokenizer], corpora: Iterable[CorpusTexts], reporter: Reporter
) -> dict[str, SideStatistics]:
    """Measure each side's tokenizer on its texts."""
    measures = {side: SideStatistics() for side in tokenizers}
    with reporter.bar("measuring on held-out text", None, "lines") as bar:
        for rows, languages in corpora:
            for batch in chunk_rows(rows, TEXTS_PER_BATCH):
                for column, texts in enumerate(zip(*batch, strict=True)):
                    side = list(tokenizers)[column % len(tokenizers)]
                    measures[side].add(texts, tokenizers[side], languages[column])
                bar.advance(len(batch))
    return measures
