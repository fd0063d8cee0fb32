"""BLEU as in papers equals what multi-bleu.perl defines, counted a second time by loops over lists of words."""

import math
import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.user import tfm, write_lines
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.metrics.registry import score_texts
from tfm.pipeline.scoring.metrics.tokenization import CompoundSplitter

CONFIG = EvaluationConfig(metrics=("bleu_paper",), bleu_tokenize="none")


def split_compounds(line: str) -> str:
    """The line as `perl -ple 's{(\\S)-(\\S)}{$1 ##AT##-##AT## $2}g'` prints it."""
    return re.sub(rb"(\S)-(\S)", rb"\1 ##AT##-##AT## \2", line.encode()).decode()


def multi_bleu(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """The first number that multi-bleu.perl prints, by its own steps."""
    correct, total = [0] * 5, [0] * 5
    length_translation = length_reference = 0
    for number, hypothesis in enumerate(hypotheses):
        words = hypothesis.split()
        length_this, closest_diff, closest_length = len(words), 9999, 9999
        most: dict[tuple[str, ...], int] = {}
        for reference in references:
            tokens = reference[number].split()
            diff = abs(length_this - len(tokens))
            if diff < closest_diff:
                closest_diff, closest_length = diff, len(tokens)
            elif diff == closest_diff and len(tokens) < closest_length:
                closest_length = len(tokens)
            for n in range(1, 5):
                found = Counter(tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1))
                for gram, count in found.items():
                    most[gram] = max(most.get(gram, 0), count)
        length_translation += length_this
        length_reference += closest_length
        for n in range(1, 5):
            grams = Counter(tuple(words[start : start + n]) for start in range(len(words) - n + 1))
            for gram, count in grams.items():
                total[n] += count
                correct[n] += min(count, most.get(gram, 0))
    precisions = [correct[n] / total[n] if total[n] else 0.0 for n in range(1, 5)]
    if length_translation == 0 or not all(precisions):
        return 0.0
    brevity = 1.0 if length_translation >= length_reference else math.exp(1 - length_reference / length_translation)
    return 100 * brevity * math.exp(sum(math.log(each) for each in precisions) / 4)


def given_files(seed: int, num_references: int) -> tuple[list[str], list[list[str]]]:
    """Hypotheses that share much with their references, with hyphens in every place."""
    draw = random.Random(seed)
    words = [
        "a",
        "dog-house",
        "-",
        "x-y-z",
        "a-",
        "-b",
        "runs",
        "over",
        "the",
        "über-groß",
        "##AT##-##AT##",
        ".",
        "a--b",
    ]
    first = [draw.choices(words, k=draw.randint(1, 15)) for _ in range(60)]

    def altered(line: list[str]) -> str:
        return " ".join(draw.choice(words) if draw.random() < 0.2 else word for word in line if draw.random() > 0.1)

    references = [[altered(line) or "a" for line in first] for _ in range(num_references)]
    return [altered(line) for line in first], references


@pytest.mark.parametrize("num_references", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_multi_bleu_of_the_files_with_compounds_split(seed: int, num_references: int) -> None:
    hypotheses, references = given_files(seed, num_references)
    score = score_texts(hypotheses, references, CONFIG)["bleu_paper"]
    hypotheses, *references = ([split_compounds(line) for line in each] for each in (hypotheses, *references))
    expected = multi_bleu(hypotheses, references)
    assert score.score == pytest.approx(expected, abs=1e-9)
    assert "|tok:none+compounds|smooth:none|" in score.signature


SPACES_OF_WORDS = [space for space in map(chr, range(0x110000)) if space.isspace() and space not in " \t\n\r\f\v"]


@pytest.mark.parametrize("space", SPACES_OF_WORDS, ids=ascii)
def test_a_space_that_perl_does_not_know_is_a_part_of_a_word(space: str) -> None:
    hypothesis, reference = f"a{space}b c d e f", "a b c d e f"
    assert score_texts([hypothesis], [[hypothesis]], CONFIG)["bleu_paper"].score == pytest.approx(100)
    found = score_texts([f"{reference} {space}"], [[reference]], CONFIG)["bleu_paper"].score
    assert found == pytest.approx(multi_bleu([f"{reference} W"], [[reference]])), "it is no space at the end either"
    expected = multi_bleu(["W c d e f"], [[reference]])
    assert score_texts([hypothesis], [[reference]], CONFIG)["bleu_paper"].score == pytest.approx(expected)
    first, *others = CompoundSplitter(str, "none")(f"x{space}-y").split()
    assert (first[0], others) == ("x", ["##AT##-##AT##", "y"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a-e-b", "a ##AT##-##AT## e-b"),
        ("a-é-b", "a ##AT##-##AT## é ##AT##-##AT## b"),
        ("Ä-Ö-Ü-x", "Ä ##AT##-##AT## Ö ##AT##-##AT## Ü ##AT##-##AT## x"),
    ],
)
def test_a_part_of_one_letter_ends_a_compound_or_not_by_its_bytes(text: str, expected: str) -> None:
    """As `perl -ple 's{(\\S)-(\\S)}{$1 ##AT##-##AT## $2}g'` prints."""
    assert CompoundSplitter(str, "none")(text) == expected


def test_it_is_zero_where_no_four_words_are_right() -> None:
    assert score_texts(["a b c x d"], [["a b c d e"]], CONFIG)["bleu_paper"].score == 0.0


def test_it_splits_words_before_compounds() -> None:
    config = EvaluationConfig(metrics=("bleu_paper", "bleu"), bleu_tokenize="13a")
    found = score_texts(["The well-known dog-house, he said."], [["The well-known dog-kennel, he said."]], config)
    tokens = ["The well ##AT##-##AT## known dog ##AT##-##AT## house , he said ."]
    assert found["bleu_paper"].score == pytest.approx(multi_bleu(tokens, [[tokens[0].replace("house", "kennel")]]))
    assert found["bleu_paper"].score > found["bleu"].score


def test_a_user_gets_it_by_its_name(tmp_path: Path) -> None:
    hypotheses, references = given_files(1, 1)
    files = write_lines(tmp_path / "hyp", hypotheses), write_lines(tmp_path / "ref", references[0])
    done = tfm("evaluate", "--hypotheses", files[0], "--reference", files[1], "--metric", "bleu_paper")
    assert done.code == 0, done.err
    assert "BLEU as in papers" in done.out
