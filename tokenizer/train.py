"""Training a tokenizer on streamed text: only the count of each word is kept, never the text."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice

import tokenizers
from tokenizers import decoders, models, pre_tokenizers
from tokenizers.models import Model

from tfm.tokenizer.allocation.capacity import (
    LanguageVocabulary,
    allocate_vocabularies,
    average_log_probability,
    weighted_alp,
)
from tfm.tokenizer.allocation.fingerprints import cluster_languages
from tfm.tokenizer.code_points import CodePoints
from tfm.tokenizer.config import LabelKind, TokenizerConfig
from tfm.tokenizer.kinds import TOKENIZER_METHODS
from tfm.tokenizer.labels import NORMALIZERS, joined_labels, split_label_names
from tfm.tokenizer.learn import frequent_characters, learn_unigram_pieces, make_unigram
from tfm.tokenizer.normalization import make_normalizer, replace_surrogates
from tfm.tokenizer.sentinels import add_sentinels
from tfm.tokenizer.special import SPECIAL_TOKENS, UNK
from tfm.tokenizer.tokenizer import Tokenizer

# How many different unnormalised words may wait; in a script without spaces a "word" is a whole line.
MAX_PENDING_WORDS = 200_000
# In how many steps the pieces of a common vocabulary are given to languages.
ALLOCATION_STEPS = 32


class TokenizerTrainer:
    """Counts the words of texts, then learns a tokenizer from them: `add` each text, `learn` once."""

    def __init__(self, config: TokenizerConfig) -> None:
        self._config = config
        self._kind = TOKENIZER_METHODS[config.kind]
        self._normalizer = make_normalizer(config)
        self._first: Counter[str] = Counter()
        self._later: Counter[str] = Counter()
        self._words: Counter[str] = Counter()
        self.num_texts = 0

    def add(self, text: str, language: str | None = None) -> None:
        """Count the words of one text, whatever its language."""
        if self._kind.learn is None:
            return
        # Cut at spaces first: normalizing and cutting a word once, not each time it comes, is several times
        # faster, and neither ever looks across a space.
        self.num_texts += 1
        first, *later = text.strip(" ").split(" ")
        self._first[first] += 1
        self._later.update(later)
        if len(self._first) + len(self._later) > MAX_PENDING_WORDS:
            self._count_pending_words()

    @property
    def words(self) -> Counter[str]:
        """The number of times that each word was seen."""
        self._count_pending_words()
        return self._words

    @property
    def num_words(self) -> int:
        """The number of different words that were seen."""
        return len(self.words)

    def learn(self) -> Tokenizer:
        """The tokenizer; ids 0 to 3 are the control tokens, then the order that `tokenizer.learn` states, then
        sentinels."""
        if self._kind.learn is None:
            return CodePoints(self._normalizer)
        room = self._config.vocab_size - self._config.sentinels
        return self.with_pieces(self._kind.learn(self.words, self._config.model_copy(update={"vocab_size": room})))

    def with_pieces(self, pieces: Model) -> Tokenizer:
        """The tokenizer that normalizes and cuts text as this one does, and has these pieces."""
        backend = tokenizers.Tokenizer(pieces)
        backend.normalizer = self._normalizer
        if self._kind.pre_tokenizer is not None:
            backend.pre_tokenizer = self._kind.pre_tokenizer
        backend.decoder = self._kind.decoder
        return _add_special_tokens(backend, self._config.sentinels)

    def _count_pending_words(self) -> None:
        for prefix, pending in (("", self._first), (" ", self._later)):
            for word, count in pending.items():
                normalized = self._normalizer.normalize_str(replace_surrogates(word))
                if normalized:
                    for piece in self._split_text(prefix + normalized):
                        self._words[piece] += count
            pending.clear()

    def _split_text(self, text: str) -> list[str]:
        if self._kind.pre_tokenizer is None:
            return [text]
        return [word for word, _ in self._kind.pre_tokenizer.pre_tokenize_str(text)]


class LanguageClustersTrainer:
    """Counts the words of each language by itself; one vocabulary is learned for all (XLM-V, Liang et al. 2023):

    1. each language learns a unigram model of its own, and VoCap says how many of its pieces, the most probable ones,
       it needs (`tokenizer.allocation.capacity`);
    2. k-means finds languages with much the same pieces (`tokenizer.allocation.fingerprints`);
    3. each of these clusters learns a unigram model, as large as what its languages need is together;
    4. the pieces of all clusters are joined.
    """

    def __init__(self, config: TokenizerConfig, languages: Iterable[str]) -> None:
        self._config = config
        self._trainers = {language: TokenizerTrainer(config) for language in sorted(set(languages))}
        self.clusters: dict[tuple[str, ...], int] = {}

    def add(self, text: str, language: str | None) -> None:
        """Count the words of one text of a language."""
        self._trainers[str(language)].add(text)

    @property
    def num_words(self) -> int:
        """The number of different words that were seen."""
        return sum(each.num_words for each in self._trainers.values())

    def learn(self) -> Tokenizer:
        """Learn the tokenizer; `clusters` then has the languages of each cluster, and its number of pieces."""
        size = self._config.vocab_size - self._config.sentinels - len(SPECIAL_TOKENS)
        min_frequency = self._config.min_frequency
        texts, step = sum(trainer.num_texts for trainer in self._trainers.values()), max(1, size // ALLOCATION_STEPS)
        ranked_pieces = {
            name: RankedPieces.from_trainer(trainer, size, min_frequency)
            for name, trainer in self._trainers.items()
            if trainer.words
        }
        allocations = allocate_vocabularies(
            {name: partial(pieces.make_vocabulary, step, texts) for name, pieces in ranked_pieces.items()}, size
        )
        fingerprints = {
            name: pieces.letters_and_best_pieces(size // len(ranked_pieces)) for name, pieces in ranked_pieces.items()
        }
        vocabularies: list[dict[str, float]] = []
        for cluster in cluster_languages(fingerprints, self._config.clusters or 1) if ranked_pieces else ():
            room = len({piece for name in cluster for piece in allocations[name].pieces})
            words = sum((self._trainers[name].words for name in cluster), Counter[str]())
            vocabularies.append(learn_unigram_pieces(words, room, min_frequency))
            self.clusters[tuple(cluster)] = len(vocabularies[-1])
        return next(iter(self._trainers.values())).with_pieces(make_unigram(merge_vocabularies(vocabularies, size)))


@dataclass(frozen=True)
class RankedPieces:
    """The pieces of a language's own unigram model, the most probable first, and the text that it was learned from."""

    text: TokenizerTrainer
    pieces: Mapping[str, float]

    @classmethod
    def from_trainer(cls, trainer: TokenizerTrainer, size: int, min_frequency: int) -> "RankedPieces":
        """Learn pieces with a unigram model, and rank them.

        Args:
            trainer: the counted words.
            size: the number of pieces beside the letters, as far as the text has so many.
            min_frequency: the least number of occurrences of a letter or piece.
        """
        letters = frequent_characters(trainer.words, size, min_frequency)
        return cls(trainer, learn_unigram_pieces(trainer.words, size + len(letters), min_frequency))

    def letters_and_best_pieces(self, count: int) -> dict[str, float]:
        """Return the letters and a number of the other pieces."""
        best_pieces = {*islice((piece for piece in self.pieces if len(piece) > 1), count)}
        return {piece: score for piece, score in self.pieces.items() if len(piece) == 1 or piece in best_pieces}

    def make_vocabulary(self, pieces_per_step: int, num_texts: int, num_steps: int) -> LanguageVocabulary:
        """Return the vocabulary after some steps, and its term of the sum that VoCap maximizes.

        Args:
            pieces_per_step: the number of pieces of a step.
            num_texts: the number of texts of all languages.
            num_steps: the number of steps.
        """
        pieces = self.letters_and_best_pieces(pieces_per_step * num_steps)
        alp = average_log_probability(self.text.words, self.text.num_texts, pieces)
        return LanguageVocabulary(pieces, weighted_alp(self.text.num_texts / num_texts, alp))


def merge_vocabularies(vocabularies: Iterable[Mapping[str, float]], size: int) -> dict[str, float]:
    """The pieces of all, each with the largest of its log probabilities, the most probable first.

    If they are more than `size`, the least probable ones are left out, letters last.
    """
    scores: dict[str, float] = {}
    for vocabulary in vocabularies:
        for piece, score in vocabulary.items():
            scores[piece] = max(score, scores.get(piece, score))
    ranked = sorted(scores, key=lambda piece: (-scores[piece], piece))
    pieces = {*sorted(ranked, key=lambda piece: len(piece) > 1)[:size]}
    return {piece: scores[piece] for piece in ranked if piece in pieces}


class LabelTrainer:
    """Counts the names in texts, then makes their vocabulary: all of them, the most frequent numbered first."""

    def __init__(self, kind: LabelKind) -> None:
        self._kind = kind
        self._seen: Counter[str] = Counter()

    def add(self, text: str, language: str | None = None) -> None:
        """Count the names of one text, whatever its language."""
        self._seen.update(split_label_names(replace_surrogates(text), self._kind))

    @property
    def num_words(self) -> int:
        """The number of different names that were seen."""
        return len(self._seen)

    @property
    def joined_labels(self) -> list[str]:
        """The labels that are several others in one; none where a text has tags."""
        return joined_labels(self._seen) if self._kind == "label" else []

    def learn(self) -> Tokenizer:
        """The tokenizer of the names."""
        return make_label_tokenizer(sorted(self._seen, key=lambda name: (-self._seen[name], name)), self._kind)


def make_label_tokenizer(names: Iterable[str], kind: LabelKind) -> Tokenizer:
    """The tokenizer of these names, in this order behind the control tokens."""
    pieces = [*SPECIAL_TOKENS, *(" " + name for name in names)]
    backend = tokenizers.Tokenizer(models.WordLevel({name: i for i, name in enumerate(pieces)}, unk_token=UNK))
    backend.normalizer = NORMALIZERS[kind]
    backend.pre_tokenizer = pre_tokenizers.Metaspace(replacement=" ", prepend_scheme="always", split=kind == "tags")
    # the first piece's space alone goes: a label may hold some
    backend.decoder = decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return _add_special_tokens(backend)


def _add_special_tokens(backend: tokenizers.Tokenizer, sentinels: int = 0) -> Tokenizer:
    backend.add_special_tokens([tokenizers.AddedToken(each, special=True, normalized=False) for each in SPECIAL_TOKENS])
    add_sentinels(backend, sentinels)
    return Tokenizer(backend)


def train(texts: Iterable[str], config: TokenizerConfig) -> Tokenizer:
    """A tokenizer learned from texts, each read once and not kept."""
    trainer = TokenizerTrainer(config)
    for text in texts:
        trainer.add(text)
    return trainer.learn()
