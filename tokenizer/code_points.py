"""The kind `codepoint`: the number of a character is its code point in Unicode, and nothing is learned.

    id(c) = 4 + code point of c        0 to 3 the control tokens, 1,114,116 and more the languages

Therefore no text is unknown, no text spells a control token, and there is no table of the world's characters.
"""

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import models
from tokenizers.normalizers import Normalizer

from tfm.tokenizer.config import LabelKind
from tfm.tokenizer.foreign.original_ids import ORIGINAL_IDS_FILE, load_original_ids
from tfm.tokenizer.labels import SPACE_WITHIN_WORD, split_words
from tfm.tokenizer.languages import is_language_list
from tfm.tokenizer.normalization import replace_surrogates
from tfm.tokenizer.sampled import SegmentationSampler
from tfm.tokenizer.special import SPECIAL_TOKENS, UNK_ID, language_token
from tfm.tokenizer.tokenizer import SHARED, SOURCE, TARGET, Tokenizer
from tfm.tokenizer.words import FlatIds, TokenIdsByWord, make_backend_keeping_leading_space

NUM_CODE_POINTS = 0x110000
MODEL_TYPE = "CodePoint"
"""The type of the model in tokenizer.json, which Hugging Face's `tokenizers` does not have, and refuses."""
MAX_CODE_POINTS_FILE_BYTES = 2**20
"""The most bytes of a file: more than any that tfm writes."""


class CodePoints(Tokenizer):
    """Text to the numbers of its characters and back. languages: codes of ISO 639-3, as `with_languages` has them."""

    def __init__(self, normalizer: Normalizer, languages: Sequence[str] = ()) -> None:
        self._backend = tokenizers.Tokenizer(
            models.WordLevel({each: i for i, each in enumerate(SPECIAL_TOKENS)}, SPECIAL_TOKENS[1])
        )
        self._backend.normalizer = normalizer
        self._languages = tuple(languages)
        self._prefix_ids: tuple[int, ...] = ()
        self.vocab_size = len(SPECIAL_TOKENS) + NUM_CODE_POINTS + len(self._languages)

    @classmethod
    def load(cls, file: Path) -> "CodePoints":
        """Read the file that `save` wrote. Raises ValueError, one line that names the file, for other files."""
        try:
            document = json.loads(file.read_text("utf-8"))
            if document["model"]["type"] != MODEL_TYPE:
                raise ValueError(f"its model is not {MODEL_TYPE}")
            languages = document["model"]["languages"]
            if not is_language_list(languages):
                raise ValueError("its languages are not codes of ISO 639-3, each once")
            return cls(_parse_normalizer(document["normalizer"]), languages)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(
                f"{file}: is not a tokenizer of code points ({' '.join(str(error).split()):.200})"
            ) from error

    def save(self, file: Path) -> None:
        """Write the tokenizer; the same tokenizer always gives the same bytes."""
        backend_document = json.loads(self._backend.to_str())
        model = {"type": MODEL_TYPE, "languages": list(self._languages)}
        document = {
            "version": backend_document["version"],
            "normalizer": backend_document["normalizer"],
            "model": model,
        }
        file.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts."""
        ids, lengths = self.encode_flat(texts)
        return [each.tolist() for each in np.split(ids, np.cumsum(lengths)[:-1])] if len(lengths) else []

    def encode_spans(self, text: str) -> list[tuple[int, int, int]]:
        """The ids of a normalized text, each with the place of its character and the place after it."""
        return [(number, position, position + 1) for position, number in enumerate(_code_points(text).tolist())]

    def encode_flat(self, texts: Sequence[str]) -> FlatIds:
        """The same ids end to end and (texts,) the number of each text's."""
        normalized = [self.normalize(text) for text in texts]
        lengths = np.fromiter(map(len, normalized), np.int64, len(normalized))
        ids = _code_points("".join(normalized))
        if self._prefix_ids:
            is_nonempty = lengths > 0
            ids = np.insert(ids, (np.cumsum(lengths) - lengths)[is_nonempty], self._prefix_ids[0])
            lengths = lengths + is_nonempty
        return ids, lengths

    def encode_words(self, texts: Sequence[str]) -> list[TokenIdsByWord]:
        """The ids of each word of many texts, those after the first with the space before them. No word has none."""
        return [
            [
                _code_points(normalized).tolist() or [UNK_ID]
                for index, word in enumerate(word.replace(SPACE_WITHIN_WORD, " ") for word in split_words(text))
                for normalized in [
                    self._normalizer_of_continued_text(f" {replace_surrogates(word)}")
                    if index
                    else self.normalize(word)
                ]
            ]
            for text in texts
        ]

    @cached_property
    def _normalizer_of_continued_text(self) -> Callable[[str], str]:
        """The normal form of a word that is not the first of its text, given with the space before it."""
        normalizer = make_backend_keeping_leading_space(self._backend).normalizer
        return lambda text: text if normalizer is None else str(normalizer.normalize_str(text))

    @cached_property
    def languages(self) -> dict[str, int]:
        """The ids of the languages that its texts may be translated into, by code; none if it knows of none."""
        return {each: len(SPECIAL_TOKENS) + NUM_CODE_POINTS + number for number, each in enumerate(self._languages)}

    @cached_property
    def has_source_language(self) -> bool:
        """False: its languages are asked for."""
        return False

    def with_languages(self, *languages: str) -> "CodePoints":
        """The same tokenizer with tokens of these languages, behind all characters."""
        assert self._backend.normalizer is not None
        return CodePoints(self._backend.normalizer, [*self._languages, *sorted(set(languages) - {*self._languages})])

    def with_tags(self, *tags: str) -> NoReturn:
        """Raise ValueError, since only languages come after the characters."""
        raise ValueError(f"has characters by their numbers, and no tags beside them ({', '.join(tags)})")

    @cached_property
    def label_kind(self) -> LabelKind | None:
        """None: its pieces are characters."""
        return None

    def sampler(
        self, *, bpe_dropout: float | None = None, unigram_alpha: float | None = None
    ) -> SegmentationSampler | None:
        """None: a text has no other characters than its own."""
        return None

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; control tokens are omitted."""
        first, end = len(SPECIAL_TOKENS), len(SPECIAL_TOKENS) + NUM_CODE_POINTS
        return replace_surrogates("".join(chr(number - first) for number in ids if first <= number < end))

    def decode_batch(self, batch: Sequence[Sequence[int]]) -> list[str]:
        """The texts of many lists of ids."""
        return [self.decode(ids) for ids in batch]

    def piece(self, token_id: int) -> str:
        """The character or control token that has an id. Raises ValueError if none has it."""
        if not 0 <= token_id < self.vocab_size:
            raise ValueError(f"no piece has id {token_id}; the vocabulary has {self.vocab_size}")
        if token_id < len(SPECIAL_TOKENS):
            return SPECIAL_TOKENS[token_id]
        language = token_id - len(SPECIAL_TOKENS) - NUM_CODE_POINTS
        return (
            language_token(self._languages[language])
            if language >= 0
            else replace_surrogates(chr(token_id - len(SPECIAL_TOKENS)))
        )

    def surface(self, token_id: int) -> str:
        """The same: a character brings nothing with it."""
        return self.piece(token_id)

    def word_start_mask(self) -> list[bool]:
        """Whether each id begins a word inside of a text: the space does."""
        space = len(SPECIAL_TOKENS) + ord(" ")
        return [number == space for number in range(self.vocab_size)]

    def longest_pieces(self, count: int) -> list[str]:
        """None: no character is longer than another."""
        return []


def _code_points(normalized: str) -> NDArray[np.int32]:
    """The ids of characters."""
    return np.frombuffer(normalized.encode("utf-32-le"), np.uint32).astype(np.int32) + len(SPECIAL_TOKENS)


def _parse_normalizer(normalizer_json: object) -> Normalizer:
    """A normalizer as tokenizer.json has it. Raises ValueError if it is none."""
    backend_document = json.loads(tokenizers.Tokenizer(models.BPE()).to_str())
    try:
        normalizer: Normalizer | None = tokenizers.Tokenizer.from_str(
            json.dumps({**backend_document, "normalizer": normalizer_json})
        ).normalizer
    except Exception as error:  # `tokenizers` raises a bare one
        raise ValueError(str(error)) from error
    if normalizer is None:
        raise ValueError("it has no normalizer")
    return normalizer


def load_tokenizer(file: Path) -> Tokenizer:
    """Read a tokenizer of either sort: of code points, or with a vocabulary.

    Raises ValueError, in one line that names the file, if tfm cannot use it.
    """
    return CodePoints.load(file) if _is_code_point_file(file) else Tokenizer.load(file)


def _is_code_point_file(file: Path) -> bool:
    """Whether a file names the model type of this module, whatever else is wrong with it."""
    if file.stat().st_size > MAX_CODE_POINTS_FILE_BYTES:
        return False
    try:
        document = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        return False
    model = document.get("model") if isinstance(document, dict) else None
    return isinstance(model, dict) and model.get("type") == MODEL_TYPE


def load_pair(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of source and target in a folder; the same object twice where they share a vocabulary."""
    if (folder / SHARED).exists():
        shared = _attach_original_ids(load_tokenizer(folder / SHARED), folder, SHARED)
        return shared, shared
    source, target = (_attach_original_ids(load_tokenizer(folder / name), folder, name) for name in (SOURCE, TARGET))
    return source, target


def save_pair(source: Tokenizer, target: Tokenizer, folder: Path) -> None:
    """Write the tokenizers of source and target so that `load_pair` reads them.

    Args:
        source: the tokenizer of the source.
        target: the tokenizer of the target, which may be the same.
        folder: to write into.
    """
    files = {SHARED: source} if source is target else {SOURCE: source, TARGET: target}
    for name, tokenizer in files.items():
        tokenizer.save(folder / name)
    original_ids = {name: list(each.original_ids) for name, each in files.items() if each.original_ids}
    if original_ids:
        (folder / ORIGINAL_IDS_FILE).write_text(json.dumps(original_ids) + "\n", encoding="utf-8")


def _attach_original_ids(tokenizer: Tokenizer, folder: Path, name: str) -> Tokenizer:
    ids = load_original_ids(folder, name, tokenizer.vocab_size)
    return tokenizer.with_original_ids(ids) if ids else tokenizer
