"""Noise in texts that a model wrote (Edunov et al. 2018, section 3): a pure function of the seed and the text.

A word is left out with probability `delete`; else a filler replaces it with probability `fill`; then the words are put
in the order of i + u, with u uniform in [0, window + 1), so that none moves more than `window` places (Lample et al.
2018). In scripts without spaces a character with its marks is a word, as a sentence would be a single one.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from tfm.data.arrays import hashes_to_uniform, splitmix64
from tfm.data.scripts import split_words
from tfm.pipeline.synthesis.config import NoiseConfig


def add_noise(text: str, config: NoiseConfig, sample: int = 0) -> str:
    """Return the text with noise; a text of which no word would stay keeps one.

    Args:
        text: what a model wrote.
        config: settings of the noise.
        sample: number of the text among those of one line, so that each has draws of its own.
    """
    words = split_words(text)
    if not words:
        return text
    deletes, fills, moves = _uniform_numbers(text, config.seed, sample, len(words))
    is_kept = deletes >= config.delete
    if not is_kept.any():
        is_kept[np.argmax(deletes)] = True
    noisy_words = [
        (config.filler if fills[index] < config.fill else words[index][0], " " * words[index][1])
        for index in np.flatnonzero(is_kept)
    ]
    order = np.argsort(np.arange(len(noisy_words)) + moves[is_kept] * (config.window + 1), kind="stable")
    return "".join(part for index in order for part in noisy_words[index]).rstrip(" ")


def _uniform_numbers(text: str, seed: int, sample: int, count: int) -> NDArray[np.float64]:
    """(3, count) numbers in [0, 1): hashes of the text, the seed, the sample, and their places."""
    content = f"{seed} {sample} {text}".encode("utf-8", "surrogatepass")
    key = np.frombuffer(hashlib.blake2b(content, digest_size=8).digest(), "<u8")
    return hashes_to_uniform(splitmix64(key + np.arange(3 * count, dtype=np.uint64))).reshape(3, count)
