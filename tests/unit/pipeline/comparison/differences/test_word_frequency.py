"""F1 of words by how often training has them: counted by hand, and by a plain way far from the code."""

import random
import re
from pathlib import Path

import pytest

from tests.tiny_dataset import make_dataset
from tfm.pipeline.artifacts.artifact import Input
from tfm.pipeline.comparison.differences import word_frequency
from tfm.pipeline.comparison.differences.word_frequency import (
    breakdown_by_training_frequency,
    choose_word_splitter,
    collect_words,
    count_training_words,
)
from tfm.pipeline.errors import DataError
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics import bleu_tokenizer

NAMES = ["0", "1", "2", "3", "4", "5–9", "10–99", "100–999", "1,000 or more"]


def test_training_words_are_counted_as_the_model_saw_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_frequency, "ROWS_PER_CHUNK", 2)
    targets = ["Ein Hund, ein Hund!", "", "Äpfel", "ein\u0301e A\u0308pfel", "HUND."]
    known = make_dataset(tmp_path / "dataset", targets, learned_from=targets * 9)
    words = {"ein", "hund", "äpfel", "katze"}
    split = choose_word_splitter([["Ein Hund"]])
    counts, unknown = count_training_words(tmp_path / "dataset", known, words, split, NullReporter())
    assert counts == {"hund": 3, "ein": 2, "äpfel": 2}
    assert unknown == 0
    other = Input.from_value("another")
    with pytest.raises(DataError):
        count_training_words(tmp_path / "dataset", other, words, split, NullReporter())


def test_unknown_pieces_are_counted(tmp_path: Path) -> None:
    known = make_dataset(tmp_path / "dataset", ["ein Hund", "eine Maus"], learned_from=["ein Hund"] * 2, kind="word")
    split = choose_word_splitter([["Ein Hund"]])
    counts, unknown = count_training_words(tmp_path / "dataset", known, {"ein", "hund", "maus"}, split, NullReporter())
    assert (counts, unknown) == ({"ein": 1, "hund": 1}, 2)


def test_words_counted_by_hand() -> None:
    """`the` (1,000 times in training): 2 right of 3 given and 2 wanted. `cat` (5): 1 of 1 and 2. `mat` (once): none of
    0 and 1. `dog` (once): none of 1 and 0. `sat` (never): 1 of 1 and 1."""
    counts = {"the": 1000, "cat": 5, "mat": 1, "dog": 1}
    one = Segments("t", None, ["The the dog, the", "cat sat."], [["the cat the mat", "sat Cat"]])
    f1, precision, recall = breakdown_by_training_frequency([one], counts, choose_word_splitter(one.references))
    assert [table.title.split()[0] for table in (f1, precision, recall)] == ["F1", "precision", "recall"]
    assert [row.name for row in f1.rows] == NAMES
    wanted = {"1,000 or more": 2, "5–9": 2, "1": 1, "0": 1}
    assert {row.name: row.count for row in f1.rows if row.count} == wanted
    values = {
        table.title.split()[0]: {row.name: row.values[0] for row in table.rows} for table in (f1, precision, recall)
    }
    assert values["F1"]["1,000 or more"] == pytest.approx(100 * 2 * (2 / 3) * 1 / (2 / 3 + 1))
    assert values["F1"]["5–9"] == pytest.approx(100 * 2 * 1 * 0.5 / 1.5)
    assert [values[each]["1,000 or more"] for each in ("precision", "recall")] == pytest.approx([200 / 3, 100])
    assert [values[each]["5–9"] for each in ("precision", "recall")] == pytest.approx([100, 50])
    assert [each["0"] for each in values.values()] == [100, 100, 100]
    assert [each["1"] for each in values.values()] == [0, 0, 0]
    assert [each["2"] for each in values.values()] == [None, None, None]


def test_words_of_random_texts_are_crossed_off_one_by_one() -> None:
    draw = random.Random(1)
    words = [f"w{i}" for i in range(40)]
    counts = {word: draw.choice([0, 1, 2, 3, 4, 5, 9, 10, 99, 100, 999, 1000, 5000]) for word in words[:35]}
    hypotheses, references = ([" ".join(draw.choices(words, k=draw.randint(0, 12))) for _ in range(60)] for _ in "ab")
    tables = breakdown_by_training_frequency(
        [Segments("t", None, hypotheses, [references])], counts, choose_word_splitter([references])
    )
    for name, *rows in zip(NAMES, *(table.rows for table in tables), strict=True):
        least, most = (name.replace(",", "").replace(" or more", "–999999") + f"–{name}").split("–")[:2]
        inside = {word for word in words if int(least) <= counts.get(word, 0) <= int(most)}
        right = given = wanted = 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            left = [word for word in re.findall(r"\w+", reference) if word in inside]
            wanted += len(left)
            for word in re.findall(r"\w+", hypothesis):
                given += word in inside
                if word in left:
                    left.remove(word)
                    right += 1
        precision, recall = 100 * right / given, 100 * right / wanted
        f1 = 2 * precision * recall / (precision + recall) if right else 0
        assert [row.values[0] for row in rows] == pytest.approx([f1, precision, recall])
        assert {row.count for row in rows} == {wanted}


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("Ein Hund läuft.", ["ein", "hund", "läuft"]),
        ("今天狗跑了。", ["今", "天", "狗", "跑", "了"]),
        ("มา ที่", ["ม", "า", "ที่"]),
        ("الكلب يجري، اليوم", ["الكلب", "يجري", "اليوم"]),
        ("می‌روم", ["می‌روم"]),
    ],
)
def test_words_suit_the_script(reference: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bleu_tokenizer, "is_installed", lambda tokenizer: False)
    split = choose_word_splitter([[reference]])
    assert list(split(reference)) == words
    one = Segments("t", None, [reference, ""], [["", reference]])
    assert collect_words([one], split) == set(words)


def test_mecab_s_words_are_taken_where_bleu_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bleu_tokenizer, "is_installed", lambda tokenizer: True)
    monkeypatch.setattr(word_frequency, "make_bleu", lambda config: Mecab(config.bleu_tokenize))
    assert choose_word_splitter([["きょうはいぬがはしる"]])("いぬがはしる。A") == ["ja-mecab", "a"]


class Mecab:
    """In the place of sacrebleu's BLEU: words of which one is a sign."""

    def __init__(self, name: str) -> None:
        self.tokenizer = lambda text: f"{name} 。 {text[-1]}"
