"""The ids of sentences word by word, for tasks that predict something for each word.

Words are separated by the spaces of the text. The pieces of a word are all that the tokenizer makes of it, including
spaces and unknown pieces; a word that normalisation leaves empty is one unknown piece. Otherwise the ids are those of
the whole text, if the tokenizer does not look across spaces, as none of ours does.
"""

from collections.abc import Sequence

import tokenizers

from tfm.tokenizer.labels import words_of
from tfm.tokenizer.special import UNK_ID
from tfm.tokenizer.words import MAX_WORDS, encode_lists, for_later_words

Words = list[list[int]]  # the ids of each word of a sentence


class WordPieces:
    """Sentences to the ids of their words, by one tokenizer."""

    def __init__(self, whole: tokenizers.Tokenizer) -> None:
        self._first, self._later = whole, for_later_words(whole)
        self._known: dict[str, list[int]] = {}  # a word that is not the first of its sentence has a space before it

    def encode(self, texts: Sequence[str]) -> list[Words]:
        """The ids of each word of each text; every word has some."""
        if len(self._known) > MAX_WORDS:
            self._known.clear()
        sentences = [[f" {word}" if place else word for place, word in enumerate(words_of(text))] for text in texts]
        new = {word: None for sentence in sentences for word in sentence if word not in self._known}
        for whole, words in (
            (self._first, [word for word in new if word[0] != " "]),
            (self._later, [word for word in new if word[0] == " "]),
        ):
            found = encode_lists(whole, words)
            self._known |= {word: ids or [UNK_ID] for word, ids in zip(words, found, strict=True)}
        return [[self._known[word] for word in sentence] for sentence in sentences]
