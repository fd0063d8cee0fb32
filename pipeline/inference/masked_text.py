"""Texts with masks to ids: each `[MASK]` hides one piece, as the training of a masked language model hides them."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from tfm.data.errors import DataError, escape_unprintable
from tfm.pipeline.tasks.masked_language_model import MASKED_TOKEN_ID
from tfm.tokenizer.special import SPECIAL_TOKENS
from tfm.tokenizer.tokenizer import Tokenizer

MASK_TOKEN = "[MASK]"
MASK_STAND_IN_LETTERS = "ꙮꔀ𒐫𐎀"  # replaces a mask while the text is cut into pieces; the text does not have it
MAX_CHARACTERS_SHOWN = 40


@dataclass(frozen=True)
class MaskedText:
    """A text as the model reads it, without its end token.

    Args:
        ids: of its pieces; a mask has the id of a hidden one.
        runs: the places of the masks among the ids, those with nothing between them together.
        begins: of each run, whether its first piece is one with a space before it.
    """

    ids: list[int]
    runs: list[list[int]]
    begins: list[bool]


def encode_masked(tokenizer: Tokenizer, text: str) -> MaskedText:
    """Cut a text with masks into pieces. A space before a mask is part of it where pieces bring their space with them.

    Raises DataError for a text without a mask, and for a mask within a word that the tokenizer does not cut.
    """
    letter = next((each for each in MASK_STAND_IN_LETTERS if each not in text), None)
    if MASK_TOKEN not in text or letter is None:
        raise DataError(
            f'the text "{escape_unprintable(text[:MAX_CHARACTERS_SHOWN])}" has no {MASK_TOKEN}: write {MASK_TOKEN} in '
            "place of each piece to predict"
        )
    normalized = tokenizer.normalize(text.replace(MASK_TOKEN, letter))
    joins_space, at_start = _detect_mask_spacing(tokenizer)
    ids: list[int] = []
    masks: list[tuple[int, int]] = []  # (place in the text, place among the ids)
    for number, first, end in tokenizer.encode_spans(normalized):
        neighbour = normalized[first:end].replace(letter, "").strip()
        if letter not in normalized[first:end]:
            ids.append(number)
            continue
        if neighbour:
            raise DataError(
                f'{MASK_TOKEN} is part of "{escape_unprintable(neighbour[:MAX_CHARACTERS_SHOWN])}", which the model '
                "reads as one piece: put a space between them"
            )
        if joins_space and _ends_with_space(tokenizer, ids, masks):
            ids.pop()
        new = [
            position
            for position in range(first, end)
            if normalized[position] == letter and (not masks or position > masks[-1][0])
        ]
        for position in new:
            masks.append((position, len(ids)))
            ids.append(MASKED_TOKEN_ID)
    # masks with nothing between them in the text, together
    groups = groupby(enumerate(masks), key=lambda each: each[1][0] - each[0])
    runs = [[mask for _, mask in run] for _, run in groups]
    begins = [joins_space and (normalized[run[0][0] - 1].isspace() if run[0][0] else at_start) for run in runs]
    return MaskedText(ids, [[position for _, position in run] for run in runs], begins)


@lru_cache(maxsize=4)
def _detect_mask_spacing(tokenizer: Tokenizer) -> tuple[bool, bool]:
    """Whether pieces of words bring the space before them, which is then no piece of its own; and also at the beginning
    of a text."""
    pieces = tokenizer.longest_pieces(tokenizer.vocab_size)
    word = next((each.strip() for each in pieces if each.startswith(" ") and each.strip()), None)
    return word is not None, word is not None and tokenizer.surface(tokenizer.encode(word)[0]).startswith(" ")


def _ends_with_space(tokenizer: Tokenizer, ids: list[int], masks: list[tuple[int, int]]) -> bool:
    """Whether the last id is a space alone, and no mask."""
    if not ids or (masks and masks[-1][1] == len(ids) - 1) or ids[-1] < len(SPECIAL_TOKENS):
        return False
    return tokenizer.surface(ids[-1]) == " "
