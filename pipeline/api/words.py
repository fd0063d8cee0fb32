"""Words of a text in Python: their contexts, their count vectors and one-hot vectors."""

from collections.abc import Iterable

from tfm.pipeline.api import arguments
from tfm.pipeline.inference.neighbours import WordVectors
from tfm.pipeline.words import concordance as words
from tfm.pipeline.words.concordance import DEFAULT_WINDOW, Occurrence

__all__ = ["WordVectors", "concordance", "count_vectors"]


def concordance(texts: str | Iterable[str], word: str, window: int = DEFAULT_WINDOW) -> list[Occurrence]:
    """Find a word in texts, with the words around it.

    Examples:
        >>> found, = concordance("a dog runs in the snow", "runs", window=2)
        >>> found.left, found.right
        (('a', 'dog'), ('in', 'the'))

    Args:
        texts: the texts, or one; their words are what spaces separate.
        word: the word.
        window: the most words to each side.

    Returns:
        Each place where the word stands, in the order of the texts.
    """
    lines, checked_word = arguments.to_text_list(texts, "texts"), arguments.check_single_text(word, "word")
    return list(words.find_occurrences(lines, checked_word, arguments.check_whole_number(window, "window", 1)))


def count_vectors(
    texts: str | Iterable[str], window: int = DEFAULT_WINDOW, *, one_hot: bool | None = None
) -> WordVectors:
    """Return vectors of the words of texts: the counts of the words near them.

    Examples:
        >>> known = count_vectors(["the dog runs", "the car runs"], window=2)
        >>> [(each.word, round(each.cosine, 2)) for each in known.nearest(known["dog"], 1, exclude=("dog",))]
        [('car', 1.0)]

    Args:
        texts: the texts, or one.
        window: how far words are near; unused by one-hot vectors.
        one_hot: whether to return one-hot vectors instead, of which any two are orthogonal.

    Returns:
        The vectors of the 5,000 most frequent words.

    Raises:
        DataError: there are no words.
    """
    lines, reach = arguments.to_text_list(texts, "texts"), arguments.check_whole_number(window, "window", 1)
    return (
        words.one_hot_vectors(lines)
        if arguments.check_optional_bool(one_hot, "one_hot")
        else words.count_vectors(lines, reach)
    )
