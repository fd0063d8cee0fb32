"""The closest of some translations: the first of the highest segment score, as sacrebleu computes it."""

import random

import sacrebleu

from tfm.pipeline.synthesis.closest import closest_index

WORDS = ("a", "dog", "runs", "in", "the", "snow", ".")


def test_it_is_that_of_a_loop_over_scores_of_sacrebleu() -> None:
    rng = random.Random(1)

    def draw_text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(1, 7)))

    for _ in range(50):
        translations, references = ([draw_text() for _ in range(count)] for count in (5, rng.randint(1, 3)))
        scores = [max(sacrebleu.sentence_chrf(text, [each]).score for each in references) for text in translations]
        found = closest_index(translations, references, "chrf")
        assert abs(scores[found] - max(scores)) < 1e-9
        assert all(score < scores[found] + 1e-9 for score in scores[:found])


def test_of_equals_it_is_the_most_probable() -> None:
    assert closest_index(["a dog", "a cat", "a dog"], ["snow"], "exact_match") == 0
    assert closest_index(["a dog", "snow", "snow"], ["snow"], "exact_match") == 1
