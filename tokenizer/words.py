"""The ids of much text at once, each distinct word encoded once: repeated words are looked up.

The result is exact because no kind of tokenizer looks across a space, neither in normalizing nor in splitting; see
`encodes_words_independently`.
"""

import json
import unicodedata
from collections.abc import Sequence
from itertools import chain, islice, pairwise
from typing import Any, TypeAlias

import numpy as np
import tokenizers
from numpy.typing import NDArray

from tfm.tokenizer.kinds import TOKENIZER_METHODS
from tfm.tokenizer.labels import SPACE_WITHIN_WORD, split_words
from tfm.tokenizer.normalization import (
    FINAL_SIGMA_NORMALIZER,
    SPACE_NORMALIZERS,
    UNICODE_NORMALIZERS,
    WHITE_SPACE,
    replace_surrogates,
)
from tfm.tokenizer.special import UNK_ID

FlatIds: TypeAlias = tuple[NDArray[np.int32], NDArray[np.int64]]
TokenIdsByWord: TypeAlias = list[list[int]]
"""The ids of each word of a sentence."""
# Beyond either, what was remembered is forgotten. In a script without spaces a "word" is a whole line.
MAX_CACHED_WORDS = 1 << 18
MAX_CACHED_IDS = 1 << 21
# New words share a text where their ids can be told apart again: a text of its own costs more than its pieces.
WORDS_PER_TEXT = 32


class _WordIndex(dict[str, int]):
    """Words to numbers; a word that has none gets the next one."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


class WordEncodingCache:
    """Encodes texts word by word, with a cache. Only for tokenizers with `encodes_words_independently`."""

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        self._backend, self._later = backend, LaterWords(backend)
        self._clear_cache()

    def _clear_cache(self) -> None:
        self._numbers = _WordIndex()  # a first word is known by a "\n" before it
        self._ids = np.empty(0, np.int32)
        self._lengths = np.empty(0, np.int64)
        self._is_first = np.empty(0, np.bool_)

    def encode(self, texts: Sequence[str]) -> FlatIds:
        """The ids of all texts end to end, and (texts,) the number of each one's ids."""
        if not texts:
            return flatten([])
        if len(self._numbers) > MAX_CACHED_WORDS or len(self._ids) > MAX_CACHED_IDS:
            self._clear_cache()
        joined = "\n" + " \n".join([text.strip(WHITE_SPACE) for text in texts])
        if joined.count("\n") != len(texts):
            return self.encode([text.replace("\n", " ") for text in texts])
        words = joined.split(" ")
        numbers = np.fromiter(map(self._numbers.__getitem__, words), np.int64, len(words))
        new = list(islice(reversed(self._numbers), len(self._numbers) - len(self._lengths)))[::-1]
        if 2 * len(new) > len(words):  # words that do not come again are faster encoded in their lines
            for word in new:
                del self._numbers[word]
            return flatten(encode_batch_ids(self._backend, texts))
        if new:
            self._encode_new_words(new)
        return self._gather_cached_ids(numbers)

    def _encode_new_words(self, words: Sequence[str]) -> None:
        """Remember the ids of the words that got their numbers last."""
        is_first = np.array([word.startswith("\n") for word in words])
        first = iter(encode_batch_ids(self._backend, [word[1:] for word in words if word.startswith("\n")]))
        later_ids = iter(self._later.encode([word for word in words if not word.startswith("\n")]))
        ids, lengths = flatten([next(first) if each else next(later_ids) for each in is_first])
        self._ids = np.concatenate([self._ids, ids])
        self._lengths = np.concatenate([self._lengths, lengths])
        self._is_first = np.concatenate([self._is_first, is_first])

    def _gather_cached_ids(self, word_numbers: NDArray[np.int64]) -> FlatIds:
        lengths = self._lengths[word_numbers]
        ends = np.cumsum(lengths)
        starts = (np.cumsum(self._lengths) - self._lengths)[word_numbers]
        ids = self._ids[np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths)]
        return ids, np.add.reduceat(lengths, np.flatnonzero(self._is_first[word_numbers]))


class LaterWords:
    """Encodes words that are not the first of their texts, many in one text where its ids can be told apart again.

    A word begins with the space before it. If a text is printable, no kind of tokenizer finds other spaces in it than
    those of its widest normal form; if these are as many as words, no word has a space within; and if as many pieces
    begin with a space, no word is empty or unknown from its beginning, so that each of these pieces begins a word.
    """

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        self._backend, steps = make_backend_keeping_leading_space(backend), backend.pre_tokenizer
        space = " " if steps is None or "ByteLevel" not in json.dumps(_component_json(steps)) else "Ġ"
        pieces = backend.get_vocab(with_added_tokens=False)
        self._starts = {number for piece, number in pieces.items() if piece.startswith(space)}
        self._words_per_text = WORDS_PER_TEXT if space in pieces else 1

    def encode(self, words: Sequence[str]) -> list[list[int]]:
        """The ids of each word."""
        groups = [words[first : first + self._words_per_text] for first in range(0, len(words), self._words_per_text)]
        texts, segmentations = [" " + " ".join(group) for group in groups], []
        for group, text, ids in zip(groups, texts, encode_batch_ids(self._backend, texts), strict=True):
            starts = [place for place, number in enumerate(ids) if number in self._starts]
            if len(group) == 1:
                segmentations.append(ids)
            elif text.isprintable() and unicodedata.normalize("NFKD", text).count(" ") == len(starts) == len(group):
                segmentations += [ids[start:end] for start, end in pairwise([*starts, len(ids)])]
            else:
                segmentations += encode_batch_ids(self._backend, [" " + word for word in group])
        return segmentations


def make_backend_keeping_leading_space(backend: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """The same tokenizer for a word that is not the first of its text, given with the space before it, which is
    kept."""
    document = json.loads(backend.to_str())
    steps = (document["normalizer"] or {}).get("normalizers", [])
    if steps and steps[-1]["type"] == "Strip":
        steps[-1]["strip_left"] = False
    later_backend = tokenizers.Tokenizer.from_str(json.dumps(document))
    later_backend.encode_special_tokens = backend.encode_special_tokens
    return later_backend


def flatten(lists: Sequence[Sequence[int]]) -> FlatIds:
    """Lists of ids end to end, and the length of each."""
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    return np.fromiter(chain.from_iterable(lists), np.int32, int(lengths.sum())), lengths


def encode_batch_ids(backend: tokenizers.Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """The ids of each text, whole, in parallel."""
    try:
        encodings = backend.encode_batch_fast(texts, add_special_tokens=False)
    except (TypeError, UnicodeError):
        encodings = backend.encode_batch_fast([replace_surrogates(text) for text in texts], add_special_tokens=False)
    return [encoding.ids for encoding in encodings]


def encodes_words_independently(backend: tokenizers.Tokenizer) -> bool:
    """Whether a tokenizer, possibly from another program, normalizes and splits text as the kinds here do."""
    document: dict[str, Any] = json.loads(backend.to_str())
    known_pre_tokenizers = [
        _component_json(kind.pre_tokenizer) for kind in TOKENIZER_METHODS.values() if kind.pre_tokenizer is not None
    ]
    by_character = document["pre_tokenizer"] is None and document["model"].get("merges") == []
    steps = (document["normalizer"] or {}).get("normalizers", [])
    forms = {"Lowercase", *(form.__name__ for form in UNICODE_NORMALIZERS.values() if form is not None)}
    return (
        (by_character or document["pre_tokenizer"] in known_pre_tokenizers)
        and steps[-2:] == [_component_json(step) for step in SPACE_NORMALIZERS]
        and all(step["type"] in forms or step == _component_json(FINAL_SIGMA_NORMALIZER) for step in steps[:-2])
        and all(token["special"] for token in document["added_tokens"])
        and not (document["truncation"] or document["padding"] or document["model"].get("dropout"))
    )


def single_word_model_json(backend: tokenizers.Tokenizer) -> dict[str, Any] | None:
    """The model of a tokenizer as tokenizer.json has it, if it splits texts into words as the kinds `bpe` and
    `unigram` do and its pieces are the letters of words, each as it is; else None."""
    document: dict[str, Any] = json.loads(backend.to_str())
    model: dict[str, Any] = document["model"]
    variant_keys = ("continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges", "dropout")
    is_basic_search = not any(model.get(each) for each in variant_keys) and model.get("merges") != []
    has_bpe_pre_tokenizer = document["pre_tokenizer"] == _component_json(TOKENIZER_METHODS["bpe"].pre_tokenizer)
    return model if is_basic_search and has_bpe_pre_tokenizer and encodes_words_independently(backend) else None


def _component_json(part: Any) -> Any:
    """A part of a tokenizer as tokenizer.json has it."""
    return json.loads(part.__getstate__())


class WordSegmentations:
    """Sentences to the ids of their words, by one tokenizer, for tasks that predict something for each word.

    Words are separated by the spaces of the text, and WITHIN is a space in one of them. The pieces of a word are all
    that the tokenizer makes of it, including spaces and unknown pieces; a word that normalization leaves empty is one
    unknown piece. Otherwise the ids are those of the whole text, if the tokenizer does not look across spaces, as none
    of ours does.
    """

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        self._first, self._later = backend, make_backend_keeping_leading_space(backend)
        self._cache: dict[str, list[int]] = {}  # a word that is not the first of its sentence has a space before it

    def encode(self, texts: Sequence[str]) -> list[TokenIdsByWord]:
        """The ids of each word of each text; every word has some."""
        if len(self._cache) > MAX_CACHED_WORDS:
            self._cache.clear()
        sentences = [[f" {word}" if index else word for index, word in enumerate(split_words(text))] for text in texts]
        sentences = [[word.replace(SPACE_WITHIN_WORD, " ") for word in sentence] for sentence in sentences]
        new = {word: None for sentence in sentences for word in sentence if word not in self._cache}
        for backend, words in (
            (self._first, [word for word in new if word[0] != " "]),
            (self._later, [word for word in new if word[0] == " "]),
        ):
            segmentations = encode_batch_ids(backend, words)
            self._cache |= {word: ids or [UNK_ID] for word, ids in zip(words, segmentations, strict=True)}
        return [[self._cache[word] for word in sentence] for sentence in sentences]
