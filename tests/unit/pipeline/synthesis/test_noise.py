"""Noise in what a model wrote: its shares, how far a word moves, and that it is a function of seed and text alone."""

import pytest
from pydantic import ValidationError

from tfm.data.scripts import split_words
from tfm.pipeline.synthesis.config import DEFAULT_HIDDEN_WORD, NoiseConfig
from tfm.pipeline.synthesis.noise import add_noise

WORDS = [f"w{number}" for number in range(20)]
TEXT = " ".join(WORDS)


def noisy(**settings: object) -> list[str]:
    """The words of 400 texts, that of each with draws of its own."""
    config = NoiseConfig.model_validate({"delete": 0, "fill": 0, "window": 0, **settings})
    return [add_noise(TEXT, config, sample) for sample in range(400)]


def test_words_are_left_out_with_their_probability_and_stay_in_order() -> None:
    texts = [text.split() for text in noisy(delete=0.1)]
    assert sum(map(len, texts)) / (400 * 20) == pytest.approx(0.9, abs=0.015)
    assert all(words == sorted(words, key=WORDS.index) for words in texts)


def test_words_are_hidden_with_their_probability() -> None:
    texts = [text.split() for text in noisy(fill=0.1)]
    assert sum(words.count(DEFAULT_HIDDEN_WORD) for words in texts) / (400 * 20) == pytest.approx(0.1, abs=0.015)
    assert all(
        given in (word, DEFAULT_HIDDEN_WORD) for words in texts for given, word in zip(words, WORDS, strict=True)
    )
    assert "_" in noisy(fill=0.5, filler="_")[0].split()


@pytest.mark.parametrize("text", ["これはとても良い文です", "我们喜欢狗和猫咪的照片", "ฉันรักแมวสีดำ"])
def test_a_sentence_without_spaces_is_not_one_word(text: str) -> None:
    """A tenth of its characters is hidden or left out, never all, and no space comes in."""
    count = len(split_words(text))
    texts = [add_noise(text, NoiseConfig(delete=0.1, fill=0, window=0), sample) for sample in range(400)]
    assert sum(len(split_words(each)) for each in texts) / (400 * count) == pytest.approx(0.9, abs=0.03)
    hidden = [add_noise(text, NoiseConfig(delete=0, fill=0.1, window=0), sample) for sample in range(400)]
    assert sum(each.count(DEFAULT_HIDDEN_WORD) for each in hidden) / (400 * count) == pytest.approx(0.1, abs=0.03)
    moved = [add_noise(text, NoiseConfig(delete=0, fill=0, window=3), sample) for sample in range(40)]
    assert all(sorted(each) == sorted(text) for each in moved)
    assert len({*moved}) > 30
    assert not any(" " in each for each in (*texts, *hidden, *moved))


def test_spaces_between_phrases_go_with_the_word_before_them() -> None:
    config = NoiseConfig(delete=0, fill=0, window=1)
    texts = {add_noise("東京 タワー", config, sample) for sample in range(50)}
    assert len(texts) > 3
    assert all("京 " in text and text.count(" ") == 1 for text in texts)


@pytest.mark.parametrize("window", [0, 1, 3])
def test_no_word_moves_further_than_the_window(window: int) -> None:
    config = {"window": window, "fill": 1e-9}
    moves = [abs(place - WORDS.index(word)) for text in noisy(**config) for place, word in enumerate(text.split())]
    assert max(moves) == window
    assert len({*noisy(**config)}) > 200 or not window


def test_the_same_text_seed_and_sample_give_the_same_noise() -> None:
    config = NoiseConfig()
    assert add_noise(TEXT, config, 2) == add_noise(TEXT, config, 2)
    others = [(TEXT, config, 3), (TEXT + " x", config, 2), (TEXT, NoiseConfig(seed=2), 2)]
    assert len({add_noise(TEXT, config, 2), *(add_noise(*each).removesuffix(" x") for each in others)}) == 4


def test_some_word_always_stays() -> None:
    config = NoiseConfig(delete=0.99, fill=0, window=0)
    assert all(add_noise("one two", config, sample) in ("one", "two", "one two") for sample in range(50))
    assert add_noise("  ", config) == "  "


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"filler": "two words"}, "must be one word"),
        ({"filler": ""}, "must be one word"),
        ({"fill": 0, "filler": "_"}, "no effect with fill = 0"),
        ({"fill": 0, "delete": 0, "window": 0}, "remove it"),
        ({"delete": 1}, "less than 1"),
    ],
)
def test_noise_that_is_none(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        NoiseConfig.model_validate(settings)
