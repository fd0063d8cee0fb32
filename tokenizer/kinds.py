"""The kinds of tokenizer: for each, how text is split into words, how pieces are learned and joined again.

A word includes the space before it (" cat"), so joined pieces are the text, and no character has to be reserved to mark
spaces. docs/tokenizers/kinds.md describes the algorithm of each kind.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tokenizers import Regex, decoders, pre_tokenizers
from tokenizers.decoders import Decoder
from tokenizers.models import Model
from tokenizers.pre_tokenizers import PreTokenizer

from tfm.tokenizer.config import Kind, TokenizerConfig
from tfm.tokenizer.learn import learn_bpe, learn_byte_level_bpe, learn_char, learn_unigram, learn_word, learn_wordpiece
from tfm.tokenizer.special import CONTINUATION_PREFIX


@dataclass(frozen=True)
class TokenizerMethod:
    """One kind of tokenizer.

    Args:
        pre_tokenizer: cuts normalized text into words; None: the text is one word.
        learn: makes a model from the number of times that each word was seen; None: nothing is learned, a piece is a
            code point.
        decoder: joins pieces to text.
    """

    pre_tokenizer: PreTokenizer | None
    learn: Callable[[Mapping[str, int], TokenizerConfig], Model] | None
    decoder: Decoder


# Letters with their marks, digits, and anything else one by one: punctuation never sticks to a word, and a
# word never spells a control token or begins with "##".
_word_splitter = pre_tokenizers.Split(Regex(r" ?[\p{L}\p{M}]+| ?\p{N}+| ?[^\p{L}\p{M}\p{N}]"), "isolated")
# The first word gets its space too, so that it is the same word at the beginning and inside of a text.
_space_prepender = pre_tokenizers.Metaspace(replacement=" ", prepend_scheme="always", split=False)
_default_pre_tokenizer = pre_tokenizers.Sequence([_space_prepender, _word_splitter])
_default_decoder = decoders.Metaspace(replacement=" ", prepend_scheme="always")

TOKENIZER_METHODS: dict[Kind, TokenizerMethod] = {
    "bpe": TokenizerMethod(_default_pre_tokenizer, learn_bpe, _default_decoder),
    "wordpiece": TokenizerMethod(
        _default_pre_tokenizer,
        learn_wordpiece,
        decoders.Sequence([decoders.Replace(Regex(rf"\A{CONTINUATION_PREFIX}"), ""), _default_decoder]),
    ),
    "unigram": TokenizerMethod(_default_pre_tokenizer, learn_unigram, _default_decoder),
    "char": TokenizerMethod(None, learn_char, decoders.Fuse()),
    "byte": TokenizerMethod(
        pre_tokenizers.Sequence([_word_splitter, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
        learn_byte_level_bpe,
        decoders.ByteLevel(),
    ),
    "word": TokenizerMethod(
        pre_tokenizers.Metaspace(replacement=" ", prepend_scheme="always"), learn_word, _default_decoder
    ),
    "codepoint": TokenizerMethod(None, None, decoders.Fuse()),
}
