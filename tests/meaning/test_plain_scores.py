"""The plain metrics against the libraries whose scores are published: a reference must itself be right."""

import random

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from tests.meaning import plain_scores as plain
from tests.meaning.plain_tokens import BLEU_TOKENS, clusters, tokens_of_ascii, tokens_of_words
from tests.meaning.scripts import SCRIPTS, Script

pytestmark = pytest.mark.meaning("references")


def noisy(script: Script, seed: int) -> tuple[list[str], list[str]]:
    """Hypotheses and references: words left out, doubled or exchanged here and there, some lines right, one empty."""
    draw = random.Random(seed)
    references = [target for _, target in script.pairs(30, seed)]
    hypotheses = []
    for line in references:
        words = clusters(line) if script.space == "" else line.split()
        for _ in range(draw.randint(0, 3)):
            place = draw.randrange(len(words))
            words[place : place + 1] = draw.choice(([], [words[place]] * 2, [draw.choice(words)]))
            words = words or ["x"]
        hypotheses.append(script.space.join(words))
    return ["", *hypotheses[1:]], references


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.few(10)
def test_plain_metrics_are_those_of_the_libraries(script: Script, seed: int) -> None:
    hypotheses, references = noisy(script, seed)
    others = noisy(script, seed)[1][::-1]
    for name, tokens in BLEU_TOKENS.items():
        for columns in ([references], [references, others]):
            theirs = BLEU(tokenize=name, force=True).corpus_score(hypotheses, columns).score
            mine = plain.bleu([*map(tokens, hypotheses)], [[*map(tokens, each)] for each in columns])
            assert mine == pytest.approx(theirs, abs=1e-9), name
    for begin in range(0, 30, 3):
        some, wanted = hypotheses[begin : begin + 3], references[begin : begin + 3]
        theirs = BLEU(force=True, effective_order=True).corpus_score(some, [wanted]).score
        tokens = BLEU_TOKENS["13a"]
        mine = plain.bleu([*map(tokens, some)], [[*map(tokens, wanted)]], effective_order=True)
        assert mine == pytest.approx(theirs, abs=1e-9)
    for order in (0, 2):
        for columns in ([references], [references, others]):
            theirs = CHRF(word_order=order).corpus_score(hypotheses, columns).score
            assert plain.chrf(hypotheses, columns, word_order=order) == pytest.approx(theirs, abs=1e-9)


def test_plain_rouge_is_rouge_scores_where_that_one_reads_the_text() -> None:
    from rouge_score.rouge_scorer import RougeScorer

    draw = random.Random(3)
    lines = [
        " ".join(draw.choices("a cat, sat on the Mat. 2 3-4 dogs!".split(), k=draw.randint(1, 9))) for _ in "x" * 40
    ]
    hypotheses, references = lines[:20], lines[20:]
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False)
    for name, order in (("rouge1", 1), ("rouge2", 2), ("rougeL", None)):
        found = [scorer.score(*pair)[name] for pair in zip(references, hypotheses, strict=True)]
        columns = zip(*((each.fmeasure, each.recall, each.precision) for each in found), strict=True)
        theirs = [100 * sum(column) / len(column) for column in columns]
        for tokens in (tokens_of_ascii, tokens_of_words):
            mine = plain.rouge_parts(order, [*map(tokens, hypotheses)], [*map(tokens, references)])
            assert mine == pytest.approx(tuple(theirs), abs=1e-9)


def test_plain_edits_are_ter_where_nothing_can_be_moved() -> None:
    draw = random.Random(4)
    references = [draw.sample([f"w{number}" for number in range(30)], 8) for _ in range(20)]
    hypotheses = [
        [word if draw.random() < 0.7 else "x" for word in words if draw.random() < 0.8] for words in references
    ]
    theirs = TER().corpus_score([*map(" ".join, hypotheses)], [[*map(" ".join, references)]]).score
    mine = sum(plain.edits(*pair) for pair in zip(hypotheses, references, strict=True))
    assert 100 * mine / sum(map(len, references)) == pytest.approx(theirs)


def test_by_class_and_macro_f1_of_a_known_case() -> None:
    # scikit-learn's f1_score(average="macro") of these is (0.8 + 0.4 + 0) / 3: "c" is given and never wanted.
    given, wanted = "a a a c b b".split(), "a a b b b b".split()
    assert plain.macro_f1(given, wanted) == pytest.approx(100 * (0.8 + 2 * 2 / 6 + 0) / 3)
    assert plain.by_class(given, wanted)["a"] == pytest.approx((2 / 3, 1.0, 0.8))
    assert plain.accuracy(given, wanted) == pytest.approx(100 * 4 / 6)
