"""Minimum Bayes risk decoding, beside a plain double loop over sacrebleu's segment scores."""

import random
from collections.abc import Callable

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from torch import float64

from tests.recording_reporter import Listening
from tests.tiny_model import TEXTS, tiny_model
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.inference.minimum_bayes_risk.selection import choose_by_utility, surviving_expected_utilities
from tfm.pipeline.inference.minimum_bayes_risk.utilities import UTILITIES
from tfm.pipeline.inference.translation import translate_lines
from tfm.pipeline.inference.translation_records import Translation
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.metrics.bleu_tokenizer import choose_tokenizer

SEGMENT_SCORES: dict[str, Callable[[str, str], float]] = {
    "chrf": lambda hypothesis, reference: sacrebleu.sentence_chrf(hypothesis, [reference]).score,
    "bleu": lambda hypothesis, reference: sacrebleu.sentence_bleu(hypothesis, [reference]).score,
    "exact_match": lambda hypothesis, reference: 100.0 * (hypothesis == reference),
}
WORDS = ["a", "dog", "dogs", "runs.", "through", "the", "snow", ",", "zwölf", "ran", "!"]
sentences = st.lists(st.sampled_from(WORDS), min_size=0, max_size=9).map(" ".join)


def as_candidates(texts: list[str]) -> list[Translation]:
    return [Translation(text, -1.0, -float(number), 1) for number, text in enumerate(texts)]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", UTILITIES)
@given(texts=st.lists(sentences | st.text(max_size=6), min_size=1, max_size=6, unique=True))
def test_utilities_are_sacrebleus_segment_scores(name: str, texts: list[str]) -> None:
    compare_with_sacrebleu(name, texts)


@pytest.mark.parametrize(
    ("characters", "tokenizer"),
    [
        ("我们喜欢狗猫。 a1", "zh"),
        ("これはとても文で。 a1", "char"),
        ("\u0e09\u0e31\u0e19\u0e23\u0e41 a", "char"),
        ("나는개가 .", "char"),
    ],
)
def test_bleu_of_scripts_that_13a_cannot_read_is_by_their_characters(characters: str, tokenizer: str) -> None:
    """By 13a a sentence is one token, and the likeness of all that differ is 0."""
    draw = random.Random(tokenizer)
    for _ in range(20):
        texts = list(dict.fromkeys("".join(draw.choices(characters, k=draw.randint(5, 12))) for _ in range(5)))
        compare_with_sacrebleu("bleu", [characters, *texts])
    longer, shorter, other = characters[:-2], characters[:6], characters[3:5]
    near, far = (UTILITIES["bleu"]([longer, shorter, other])(hypothesis, [0])[0] for hypothesis in (1, 2))
    assert near > far


def compare_with_sacrebleu(name: str, texts: list[str]) -> None:
    """Raise AssertionError where a utility is not sacrebleu's score of a segment."""
    utility, plain = UTILITIES[name](texts), SEGMENT_SCORES[name]
    if name == "bleu" and (tokenizer := choose_tokenizer([texts]).name) != "13a":
        tokenizer = "zh" if tokenizer == "zh" else "char"

        def plain(hypothesis: str, reference: str) -> float:
            return sacrebleu.sentence_bleu(hypothesis, [reference], tokenize=tokenizer).score

    for number, hypothesis in enumerate(texts):
        expected = [plain(hypothesis, reference) for reference in texts]
        assert np.allclose(utility(number, range(len(texts))), expected, atol=1e-9)


@pytest.mark.parametrize("name", UTILITIES)
def test_the_choice_is_that_of_a_double_loop(name: str) -> None:
    draw = random.Random(name)
    config = DecodingConfig(strategy="mbr", mbr_utility=name, n_best=3)  # type: ignore[arg-type]
    for _ in range(15):
        texts = [" ".join(draw.choices(WORDS, k=draw.randint(1, 5))) for _ in range(8)] * 2 + ["a dog runs."]
        draw.shuffle(texts)
        means = {h: sum(SEGMENT_SCORES[name](h, r) for r in texts) / len(texts) for h in dict.fromkeys(texts)}
        found = choose_by_utility(as_candidates(texts), config)
        assert [each.score for each in found] == pytest.approx(sorted(means.values(), reverse=True)[:3])
        assert all(means[each.text] == pytest.approx(each.score) for each in found)
        assert all(each.log_prob == -texts.index(each.text) for each in found)


@pytest.mark.parametrize("name", UTILITIES)
@pytest.mark.parametrize("texts", [["a dog"] * 3, [""] * 3, ["", "a dog", ""], ["a dog"]])
def test_equal_and_empty_candidates_have_the_utility_of_a_double_loop(name: str, texts: list[str]) -> None:
    config = DecodingConfig(strategy="mbr", mbr_utility=name)  # type: ignore[arg-type]
    means = {h: sum(SEGMENT_SCORES[name](h, r) for r in texts) / len(texts) for h in dict.fromkeys(texts)}
    (found,) = choose_by_utility(as_candidates(texts), config)
    assert found.score == pytest.approx(max(means.values())) == pytest.approx(means[found.text])


def test_pruning_keeps_the_best_and_compares_less() -> None:
    """With a confidence near 1 the choice is that of all pairs; the utilities that are computed are fewer."""
    draw, asked = random.Random(4), 0
    for _ in range(5):
        texts = ["a dog runs through the snow"] * 30 + [" ".join(draw.choices(WORDS, k=6)) for _ in range(34)]
        draw.shuffle(texts)
        unique = list(dict.fromkeys(texts))
        utility = UTILITIES["chrf"](unique)

        def counting(hypothesis: int, references: list[int]) -> np.ndarray:
            nonlocal asked
            asked += len(references)
            return utility(hypothesis, references)  # noqa: B023

        places = [unique.index(text) for text in texts]
        means = surviving_expected_utilities(counting, len(unique), places, 0.99, 1)  # type: ignore[arg-type]
        full = {number: float(utility(number, places).mean()) for number in range(len(unique))}
        best = max(full, key=lambda number: full[number])
        assert max(means, key=lambda number: means[number]) == best
        assert means[best] == pytest.approx(full[best])
    assert asked < 0.5 * 5 * 35 * 64


@pytest.mark.parametrize("utility", UTILITIES)
def test_pruning_is_not_misled_by_the_most_probable_candidates(utility: str) -> None:
    """Candidates come best first: eight probable ones, all alike, and many others that are like each other."""
    probable, others = ["the snow ran , !"] * 8, ["a dog runs."] * 40 + ["a dog runs. !"] * 16
    for seed in range(1, 6):
        given_values = {"strategy": "mbr", "mbr_size": 64, "mbr_utility": utility, "seed": seed}
        plain, pruned = (
            choose_by_utility(
                as_candidates([*probable, *others]), DecodingConfig.model_validate({**given_values, **more})
            )
            for more in ({}, {"mbr_pruning": 0.99})
        )
        assert plain[0].text == pruned[0].text in others
        assert pruned[0].score == pytest.approx(plain[0].score)


def test_a_model_decodes_with_the_least_risk() -> None:
    """Translations are the choice among its own samples, and do not depend on the batch."""
    loaded, reporter = tiny_model(dtype=float64), Listening()
    config = DecodingConfig(strategy="mbr", mbr_size=6, max_length=7)
    lines = [*TEXTS, "", "snow"]
    found = list(translate_lines(loaded, lines, config, reporter=reporter))
    drawn = DecodingConfig(strategy="sample", n_best=6, max_length=7)
    samples = list(translate_lines(loaded, lines, drawn, reporter=NullReporter()))
    assert [each[0].text for each in found[:3]] == [choose_by_utility(each, config)[0].text for each in samples[:3]]
    assert found[3][0].text == ""
    assert any("6 hypotheses of each line, and up to 36 utilities (chrf)" in line for line in reporter.lines)
    single = config.model_copy(update={"batch_sentences": 1})
    alone = list(translate_lines(loaded, lines, single, reporter=NullReporter(), chunk_lines=1))
    assert [each[0].text for each in alone] == [each[0].text for each in found]
    by_beam = DecodingConfig(strategy="mbr", mbr_candidates="search", beam=4, mbr_size=4, n_best=2, max_length=7)
    assert all(len(each) <= 2 for each in translate_lines(loaded, lines, by_beam, reporter=NullReporter()))


def test_settings_that_do_not_go_together() -> None:
    for given_values, reason in (
        ({"n_best": 9, "mbr_size": 8}, "cannot exceed mbr_size"),
        ({"mbr_candidates": "search"}, "cannot exceed beam"),
        ({"mbr_pruning": 0.9, "n_best": 2}, "must be 1"),
    ):
        config = DecodingConfig.model_validate({"strategy": "mbr", **given_values})
        with pytest.raises(RecipeError, match=reason):
            list(translate_lines(tiny_model(), ["a dog"], config, reporter=NullReporter()))
    with pytest.raises(ValueError, match="needs strategy"):
        DecodingConfig(mbr_size=8)


def test_settings_without_effect_are_not_kept() -> None:
    """Translations that were made before there were such settings are up to date."""
    assert not [key for key in DecodingConfig().as_json() if key.startswith("mbr")]
    assert DecodingConfig(strategy="mbr", mbr_size=8).as_json()["mbr_size"] == 8
