"""The control tokens: their spelling, and their ids, which are the same in every vocabulary.

Also the mark of the pieces of WordPiece that continue a word.
"""

PAD, UNK, BOS, EOS = "<pad>", "<unk>", "<s>", "</s>"
SPECIAL_TOKENS = (PAD, UNK, BOS, EOS)
PAD_ID, UNK_ID, BOS_ID, EOS_ID = range(4)
CONTINUATION_PREFIX = "##"

LANGUAGE_CODE_PATTERN = r"[a-z]{3}(?:_[A-Z][a-z]{3})?"  # of ISO 639-3, maybe with a script of ISO 15924: deu, zho_Hans

TAG_PATTERN = r"<[A-Z][A-Z0-9]{0,15}>"  # of a kind of training text: <BT>, as Caswell et al. 2019 spell it
SENTINEL_PATTERN = r"<extra_id_(\d+)>"  # as T5 spells them


def sentinel(span_index: int) -> str:
    """The control token that stands for the hidden span of this number, from 0; see `tokenizer.sentinels`."""
    return f"<extra_id_{span_index}>"


def language_token(language: str) -> str:
    """The control token of a language, by its code; see `tokenizer.languages`."""
    return f">>{language}<<"
