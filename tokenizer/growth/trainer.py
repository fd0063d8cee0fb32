"""Growing a tokenizer by pieces that it learns from streamed text: only the count of each word is kept."""

import json
import re
from collections import Counter

import tokenizers

from tfm.tokenizer.code_points import CodePoints
from tfm.tokenizer.foreign.sentencepiece_files import has_whole_words
from tfm.tokenizer.foreign.unnumbered import has_unnumbered_pieces
from tfm.tokenizer.growth.extension import TokenizerJson, control_token_spellable_in_text
from tfm.tokenizer.growth.new_pieces import GROWERS
from tfm.tokenizer.normalization import replace_surrogates
from tfm.tokenizer.special import CONTINUATION_PREFIX
from tfm.tokenizer.tokenizer import Tokenizer

SPACED_WORD_PATTERN = r"[▁ ]*[^▁ ]+|[▁ ]+"
"""A word with the spaces before it, of a tokenizer that does not split texts: no new piece goes beyond one."""


class GrowthTrainer:
    """Counts the words of texts, as a tokenizer cuts them, then gives it new pieces: `add` each text, `learn` once.

    count: how many new pieces, at most; none that occurs less than `min_frequency` times. Raises ValueError for a
    tokenizer that cannot grow.
    """

    def __init__(self, old: Tokenizer, count: int, min_frequency: int) -> None:
        if (reason := growth_problem(old)) is not None:
            raise ValueError(f"cannot grow: {reason}")
        self.old, self.count, self.num_new = old, count, 0
        self._min_frequency = min_frequency
        self._document = old.document
        self._backend = tokenizers.Tokenizer.from_str(json.dumps(self._document))
        self._words: Counter[str] = Counter()

    def add(self, text: str, language: str | None = None) -> None:
        """Count the words of one text, whatever its language."""
        text = replace_surrogates(text)
        if self._backend.normalizer is not None:
            text = self._backend.normalizer.normalize_str(text)
        if self._backend.pre_tokenizer is not None:
            self._words.update(word for word, _ in self._backend.pre_tokenizer.pre_tokenize_str(text))
        else:
            self._words.update(re.findall(SPACED_WORD_PATTERN, text))

    @property
    def num_words(self) -> int:
        """How many different words were seen."""
        return len(self._words)

    def learn(self) -> Tokenizer:
        """Return the tokenizer with `num_new` new pieces, which may be 0."""
        words = {word: times for word, times in self._words.items() if not {*word} & {"\t", "\n"}}  # see `learn`
        grow = GROWERS[self._document["model"]["type"]]
        tokenizer = Tokenizer.from_json(json.dumps(grow(self._document, words, self.count, self._min_frequency)))
        self.num_new = tokenizer.vocab_size - self.old.vocab_size
        return tokenizer.with_original_ids(self.old.original_ids)


def growth_problem(old: Tokenizer) -> str | None:
    """Why a tokenizer cannot be given more pieces; None if it can."""
    if isinstance(old, CodePoints):
        return "it has every character of Unicode, and no pieces"
    if old.label_kind is not None:
        return "its pieces are names of labels"
    document: TokenizerJson = old.document
    model = document["model"]
    if has_unnumbered_pieces(document):
        return "it splits texts at pieces without an id, and new pieces would come after these"
    if has_whole_words(document):
        return "its pieces are the words of a SentencePiece model"
    if model["type"] not in GROWERS:
        return f"its model is of another type ({model['type']})"
    if model["type"] == "WordPiece" and model["continuing_subword_prefix"] != CONTINUATION_PREFIX:
        return f"its pieces continue a word with {model['continuing_subword_prefix']!r}, not {CONTINUATION_PREFIX!r}"
    for key in ("continuing_subword_prefix", "end_of_word_suffix", "dropout"):
        if model["type"] == "BPE" and model.get(key):
            return f"its merges have {key} = {model[key]!r}"
    if (name := control_token_spellable_in_text(document)) is not None:
        return f"a text that spells {name} would become that control token, which is behind the pieces of the model"
    return None
