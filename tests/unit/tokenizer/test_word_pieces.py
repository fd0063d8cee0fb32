"""Words of a text to their pieces, also by tokenizers from elsewhere."""

import tokenizers
from tokenizers import models, normalizers, pre_tokenizers

from tfm.tokenizer.special import SPECIAL_TOKENS, UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer


def test_a_word_of_which_a_normaliser_leaves_nothing_is_unknown() -> None:
    pieces = [*SPECIAL_TOKENS, "a", "b"]
    whole = tokenizers.Tokenizer(models.WordLevel({piece: i for i, piece in enumerate(pieces)}, unk_token="<unk>"))
    whole.normalizer = normalizers.Replace("\u00ad", "")
    whole.pre_tokenizer = pre_tokenizers.Whitespace()
    made = Tokenizer(whole)
    assert made.encode("a \u00ad b") == [4, 5]
    assert made.encode_words(["a \u00ad b", "\u00ad", "", " b  a\u00ad a-b"]) == [
        [[4], [UNK_ID], [5]],
        [[UNK_ID]],
        [],
        [[5], [4], [4, UNK_ID, 5]],
    ]
