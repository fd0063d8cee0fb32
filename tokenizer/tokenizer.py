"""Text to ids and back, by a `tokenizer.json` in Hugging Face's own format."""

import copy
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers.models import WordLevel, WordPiece

from tfm.tokenizer.config import LabelKind
from tfm.tokenizer.foreign.renumbered import cut_spelled_control_tokens, finds_control_tokens
from tfm.tokenizer.foreign.step_checks import check_steps_bounded
from tfm.tokenizer.foreign.unnumbered import num_ids, replace_unnumbered_ids_by_unk
from tfm.tokenizer.labels import find_label_kind
from tfm.tokenizer.languages import add_languages, has_source_language, language_ids
from tfm.tokenizer.normalization import replace_surrogates
from tfm.tokenizer.sampled import BpeDropout, SegmentationSampler, UnigramSampling
from tfm.tokenizer.sentinels import sentinel_ids
from tfm.tokenizer.special import SPECIAL_TOKENS, UNK_ID
from tfm.tokenizer.tags import PrefixKeepingSampler, add_tags, tag_ids
from tfm.tokenizer.words import (
    FlatIds,
    TokenIdsByWord,
    WordEncodingCache,
    WordSegmentations,
    encode_batch_ids,
    encodes_words_independently,
    flatten,
    single_word_model_json,
)

SHARED, SOURCE, TARGET = "tokenizer.json", "source.json", "target.json"
MAX_TOKENIZER_FILE_BYTES = 64 * 2**20


class Tokenizer:
    """A vocabulary and its way of splitting text. Text that spells a control token is treated as text.

    The invariant: `decode(encode(text)) == normalize(text)`, unless a piece of the text is unknown.
    original_ids: of a tokenizer from elsewhere, by our id the id there, for as many as have one; else empty.
    Raises ValueError if the control tokens do not have the ids 0 to 3, or the ids are not contiguous from 0.
    """

    original_ids: tuple[int | None, ...] = ()

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        for number, special in enumerate(SPECIAL_TOKENS):
            if backend.token_to_id(special) != number:
                raise ValueError(f"control token {special} has id {backend.token_to_id(special)}; expected {number}")
        vocabulary = backend.get_vocab()
        if sorted(vocabulary.values()) != list(range(len(vocabulary))):
            raise ValueError(f"its {len(vocabulary)} pieces do not have the ids 0 to {len(vocabulary) - 1}")
        check_steps_bounded(backend)
        backend.encode_special_tokens = True
        backend.no_padding()
        backend.no_truncation()  # a text is encoded unchanged and in full
        if getattr(backend.model, "dropout", None) is not None:
            backend.model.dropout = None  # and always alike; training draws by `training.bpe_dropout`
        self._backend = backend
        self._prefix_ids: tuple[int, ...] = ()  # of languages and tags, before each text that has pieces
        self.vocab_size = num_ids(backend)
        self._all_numbered = self.vocab_size == len(vocabulary)

    @classmethod
    def load(cls, file: Path) -> "Tokenizer":
        """Read a tokenizer. Raises ValueError, in one line that names the file, if tfm cannot use it."""
        if file.stat().st_size > MAX_TOKENIZER_FILE_BYTES:
            raise ValueError(f"{file}: is larger than any tokenizer that tfm writes ({file.stat().st_size:,} bytes)")
        try:
            return _check_encodes_and_decodes(cls(tokenizers.Tokenizer.from_str(file.read_text("utf-8"))))
        except OSError:
            raise
        except BaseException as error:
            raise ValueError(
                f"{file}: is not a tokenizer that tfm can use ({tokenizers_error_message(error):.200})"
            ) from error

    @classmethod
    def from_json(cls, text: str) -> "Tokenizer":
        """The tokenizer that a tokenizer.json holds. Raises ValueError if it is none, or tfm cannot use it."""
        try:
            return _check_encodes_and_decodes(cls(tokenizers.Tokenizer.from_str(text)))
        except ValueError:
            raise
        except BaseException as error:
            raise ValueError(tokenizers_error_message(error)) from error

    def with_original_ids(self, original_ids: Sequence[int | None]) -> "Tokenizer":
        """Return the same tokenizer, with the ids of its pieces in the original vocabulary."""
        tokenizer = copy.copy(self)
        tokenizer.original_ids = tuple(original_ids)
        return tokenizer

    def without_spelled_control_tokens(self) -> "Tokenizer":
        """Return the same tokenizer, or one that cuts a text that spells a control token, where it found the token."""
        if not finds_control_tokens(self._backend):
            return self
        return Tokenizer.from_json(json.dumps(cut_spelled_control_tokens(self.document)))

    def save(self, file: Path) -> None:
        """Write the tokenizer; the same tokenizer always gives the same bytes."""
        file.write_bytes((self._backend.to_str(pretty=True) + "\n").encode())

    @property
    def document(self) -> dict[str, Any]:
        """The content of tokenizer.json, again each time."""
        document: dict[str, Any] = json.loads(self._backend.to_str())
        return document

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without beginning and end of sentence."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts, in parallel."""
        ids_by_text = encode_batch_ids(self._backend, texts)
        if not self._all_numbered:
            ids_by_text = [replace_unnumbered_ids_by_unk(ids, self.vocab_size) for ids in ids_by_text]
        return [[*self._prefix_ids, *ids] if ids else ids for ids in ids_by_text] if self._prefix_ids else ids_by_text

    def encode_spans(self, text: str) -> list[tuple[int, int, int]]:
        """The ids of a normalized text, each with the first character that it stands for and the one after the last."""
        encoding = self._backend.encode(text, add_special_tokens=False)
        ids = encoding.ids if self._all_numbered else replace_unnumbered_ids_by_unk(encoding.ids, self.vocab_size)
        return [(number, *span) for number, span in zip(ids, encoding.offsets, strict=True)]

    def encode_flat(self, texts: Sequence[str]) -> FlatIds:
        """The same ids end to end and (texts,) the number of each text's: the fast way for much text."""
        if self._word_encoder is not None and not self._prefix_ids and self._all_numbered:
            return self._word_encoder.encode(texts)
        return flatten(self.encode_batch(texts))

    def encode_words(self, texts: Sequence[str]) -> list[TokenIdsByWord]:
        """Encode each word of many texts; the text decides what a word is, not the tokenizer. Every word has an id."""
        word_ids = self._word_segmentations.encode(texts)
        return (
            word_ids
            if self._all_numbered
            else [[replace_unnumbered_ids_by_unk(ids, self.vocab_size) for ids in text] for text in word_ids]
        )

    @cached_property
    def languages(self) -> dict[str, int]:
        """The ids of the languages that its texts may be translated into, by code; none if it knows of none."""
        return language_ids(self._backend)

    @cached_property
    def has_source_language(self) -> bool:
        """Whether the languages of both texts are told: a source begins with the target's and its own."""
        return has_source_language(self._backend)

    @cached_property
    def sentinels(self) -> tuple[int, ...]:
        """The ids of the tokens that stand for hidden spans, the first for the first of a text; may be empty."""
        return sentinel_ids(self._backend)

    @cached_property
    def tags(self) -> dict[str, int]:
        """The ids of the tags that say what kind of training text a source is of, by their spelling; may be empty."""
        return tag_ids(self._backend)

    @property
    def control_ids(self) -> set[int]:
        """The ids of languages, tags and sentinels, which no text spells."""
        return {*self.languages.values(), *self.tags.values(), *self.sentinels}

    def select_tag(self, tag: str) -> "Tokenizer":
        """The same tokenizer for sources of a kind: its tag is before each text with pieces, behind its languages.

        Raises KeyError if it does not have the tag.
        """
        tokenizer = copy.copy(self)
        tokenizer._prefix_ids = (*self._prefix_ids, self.tags[tag])
        return tokenizer

    def with_tags(self, *tags: str) -> "Tokenizer":
        """The same tokenizer with tags behind its pieces.

        Raises ValueError if pieces that have no number are behind them already.
        """
        if not self._all_numbered and {*tags} - self.tags.keys():
            raise ValueError(f"cannot have tags behind its pieces ({', '.join(tags)})")
        backend = tokenizers.Tokenizer.from_str(self._backend.to_str())
        add_tags(backend, tags)
        return Tokenizer(backend).with_original_ids(self.original_ids)

    def select_target_language(self, language: str, source: str = "") -> "Tokenizer":
        """The same tokenizer for sources to be translated into a language: its token is before each text with pieces.

        source: their own language, where it `has_source_language`. Raises KeyError if it does not have a language.
        """
        tokenizer = copy.copy(self)
        tokenizer._prefix_ids = tuple(
            self.languages[name] for name in ((language, source) if self.has_source_language else (language,))
        )
        return tokenizer

    @property
    def has_language_prefix(self) -> bool:
        """Whether tokens of languages precede the texts."""
        return bool(self._prefix_ids)

    def with_languages(self, *languages: str) -> "Tokenizer":
        """The same tokenizer with tokens of these languages, behind its pieces.

        Raises ValueError if pieces that have no number are behind them already.
        """
        if not self._all_numbered and {*languages} - self.languages.keys():
            raise ValueError(f"cannot have more languages than its own: {', '.join(self.languages) or 'none'}")
        backend = tokenizers.Tokenizer.from_str(self._backend.to_str())
        add_languages(backend, languages)
        return Tokenizer(backend).with_original_ids(self.original_ids)

    @cached_property
    def _word_segmentations(self) -> WordSegmentations:
        return WordSegmentations(self._backend)

    @cached_property
    def _word_encoder(self) -> WordEncodingCache | None:
        return WordEncodingCache(self._backend) if encodes_words_independently(self._backend) else None

    @cached_property
    def is_word_level(self) -> bool:
        """Whether the pieces are whole words between spaces (kind `word`), such as phones."""
        return isinstance(self._backend.model, WordLevel) and encodes_words_independently(self._backend)

    @cached_property
    def label_kind(self) -> LabelKind | None:
        """The kind of names that the pieces are (`tokenizer.labels`), labels of texts or tags of words, or None."""
        return find_label_kind(self._backend)

    def sampler(
        self, *, bpe_dropout: float | None = None, unigram_alpha: float | None = None
    ) -> SegmentationSampler | None:
        """The sampler that draws other pieces of the same text; None if no value is given for its kind."""
        model = single_word_model_json(self._backend)
        control = self.control_ids
        pieces = ["" if number in control else self.piece(number) for number in range(self.vocab_size)]
        sampler: SegmentationSampler | None = None
        if bpe_dropout is not None and model is not None and model["type"] == "BPE":
            sampler = BpeDropout(pieces, [(left, right) for left, right in model["merges"]], bpe_dropout)
        if unigram_alpha is not None and model is not None and model["type"] == "Unigram":
            sampler = UnigramSampling(pieces, [score for _, score in model["vocab"]], unigram_alpha)
        prefix_tokens = [*self.languages.values(), *self.tags.values()]
        return PrefixKeepingSampler(sampler, prefix_tokens) if sampler is not None and prefix_tokens else sampler

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; control tokens, including the unknown token, are omitted."""
        return self._backend.decode(ids, skip_special_tokens=True)

    def decode_batch(self, batch: Sequence[Sequence[int]]) -> list[str]:
        """The texts of many lists of ids, in parallel."""
        return self._backend.decode_batch(batch, skip_special_tokens=True)

    def normalize(self, text: str) -> str:
        """The text as decoding returns it."""
        text = replace_surrogates(text)
        return text if self._backend.normalizer is None else self._backend.normalizer.normalize_str(text)

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text as the vocabulary spells them; an unknown one is `<unk>`."""
        return [self.piece(number) for number in self.encode(text)]

    def piece(self, token_id: int) -> str:
        """The piece that has an id, as the vocabulary spells it. Raises ValueError if no piece has it."""
        piece = self._backend.id_to_token(token_id)
        if piece is None:
            raise ValueError(f"no piece has id {token_id}; the vocabulary has {self.vocab_size}")
        return piece

    def surface(self, token_id: int) -> str:
        """The text that a piece stands for inside of a text, with the space before it if it brings one."""
        piece = self.piece(token_id)
        # The decoder drops the space of the first piece: an empty one goes before.
        return piece if self._backend.decoder is None else self._backend.decoder.decode(["", piece])

    def longest_pieces(self, count: int) -> list[str]:
        """The `count` longest pieces as they stand inside of a text, without control tokens; of equals by spelling."""
        control = self.control_ids
        numbers = (number for number in range(len(SPECIAL_TOKENS), self.vocab_size) if number not in control)
        return sorted({self.surface(number) for number in numbers}, key=lambda piece: (-len(piece), piece))[:count]

    def word_start_mask(self) -> list[bool]:
        """Whether the piece of each id begins a word inside of a text, with the space before it.

        The unknown piece does where whole words are unknown (kinds `word` and `wordpiece`).
        """
        is_start = [self.surface(number).startswith(" ") for number in range(self.vocab_size)]
        is_start[UNK_ID] = isinstance(self._backend.model, (WordLevel, WordPiece))
        return is_start


def _check_encodes_and_decodes(tokenizer: Tokenizer) -> Tokenizer:
    """The same tokenizer, after it has encoded and decoded: one that cannot fails only then."""
    tokenizer.encode("a \U0010fffd")
    tokenizer.decode([*range(min(tokenizer.vocab_size, 300))])
    return tokenizer


def tokenizers_error_message(error: BaseException) -> str:
    """The message of an error of `tokenizers`, a bare Exception or one of Rust's panics; raises any other."""
    if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
        raise error
    return " ".join(str(error).split()) or type(error).__name__
