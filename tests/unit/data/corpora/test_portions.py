"""The laws of folds: the seed and the texts alone decide, each example is held out once, and no source is parted."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.tiny_images import SHAPE, write_folder, write_idx
from tfm.data.config import DataConfig, FoldConfig
from tfm.data.corpora.portions import Fold, HashRange, Portion, PositionRange, fold_number_of, hash_to_unit_interval
from tfm.data.corpora.preflight import check_and_count_splits
from tfm.data.corpora.sources import describe_corpus, read_pairs, resolve_splits
from tfm.data.corpora.splits import Splits
from tfm.data.corpus_config import CorpusConfig, Format
from tfm.data.errors import DataError
from tfm.tokenizer.config import Normalization, TokenizerConfig
from tfm.tokenizer.normalization import make_normalizer

PAIRED, ALONE = CorpusConfig(), CorpusConfig(source=None)
STRANGE = ("", " ", "a", "A", "ﬁ", "fi", "é", "e\u0301", "É", "שלום", "नमस्ते", "İ", "ẞ", "Σς", "a\u00a0b", " a  b", "😀")
TEXT = st.sampled_from(STRANGE) | st.text(max_size=4)
SEEDS = st.integers(0, 2**63 - 1)


def folds(corpora: tuple[CorpusConfig | Portion, ...], of: int, seed: int, *, held_out: bool) -> list[Portion]:
    return [Portion(corpora, Fold(number, of, seed, held_out)) for number in range(1, of + 1)]


@settings(max_examples=50)
@given(st.lists(st.tuples(TEXT, TEXT), max_size=40), st.integers(2, 7), SEEDS, st.sampled_from([PAIRED, ALONE]))
def test_folds_are_disjoint_cover_all_and_each_is_what_training_on_the_others_leaves_out(
    texts: list[tuple[str, str]], of: int, seed: int, corpus: CorpusConfig
) -> None:
    held = [list(fold.select_pairs(corpus, texts)) for fold in folds((corpus,), of, seed, held_out=True)]
    kept = [list(fold.select_pairs(corpus, texts)) for fold in folds((corpus,), of, seed, held_out=False)]
    assert sum(map(Counter, held), Counter()) == Counter(texts)
    for each, others in zip(held, kept, strict=True):
        assert Counter(each) + Counter(others) == Counter(texts)
        if corpus is PAIRED:
            assert not {source for source, _ in each} & {source for source, _ in others}
        else:
            assert not {text for _, text in each if text.strip()} & {text for _, text in others if text.strip()}
    assert held == [list(fold.select_pairs(corpus, iter(texts))) for fold in folds((corpus,), of, seed, held_out=True)]


@settings(max_examples=60)
@given(TEXT, TEXT, SEEDS)
@example("ΑΣ", "ας", 1)
@example("İ", "i\u0307", 3)
@example("ﬁ", "FI", 5)
@example(" a\u2003b ", "A B", 7)
def test_texts_that_a_tokenizer_makes_one_are_never_parted(one: str, other: str, seed: int) -> None:
    for form in get_args(Normalization):
        for lowercase in (False, True):
            coarse = make_normalizer(TokenizerConfig(normalization=form, lowercase=lowercase)).normalize_str
            if coarse(one) == coarse(other):
                assert fold_number_of(one, 1000, seed) == fold_number_of(other, 1000, seed)
            assert fold_number_of(one, 1000, seed) == fold_number_of(coarse(one), 1000, seed)


def test_every_letter_is_in_the_fold_of_its_other_cases_and_forms() -> None:
    coarse = make_normalizer(TokenizerConfig(normalization="nfkc", lowercase=True)).normalize_str
    letters = [chr(code) for code in range(0x20, 0x30000) if chr(code).lower() != chr(code)]
    assert len(letters) > 1000
    parted = [each for each in letters if fold_number_of(each, 10**6, 1) != fold_number_of(coarse(each), 10**6, 1)]
    assert parted == []


def test_folds_are_about_equal_seeded_and_independent_of_the_draws_of_splits() -> None:
    texts = [f"sentence {number}" for number in range(4000)]
    found = np.array([fold_number_of(text, 5, 1) for text in texts])
    assert (np.abs(np.bincount(found)[1:] - 800) < 100).all()
    other = np.array([fold_number_of(text, 5, 2) for text in texts])
    assert 0.15 < (found == other).mean() < 0.25
    inside = np.array([hash_to_unit_interval(text, 1) < 0.5 for text in texts])
    assert (np.abs(np.bincount(found[inside])[1:] - 400) < 80).all()
    assert fold_number_of("sentence 0", 5, 1) == found[0]


def test_a_line_break_goes_with_the_line_before_it_and_an_empty_source_is_a_source() -> None:
    lines = ["eins", "", "zwei", " ", "", "drei", ""]
    for fold in folds((ALONE,), 3, 4, held_out=True):
        inside = {text for text in lines if text.strip() and fold_number_of(text, 3, 4) == fold.part.number}  # type: ignore[union-attr]
        expected, last = [], ""
        for line in lines:
            last = line if line.strip() else last
            expected += [line] if last in inside else []
        assert [text for _, text in fold.select_pairs(ALONE, [("", line) for line in lines])] == expected
    pairs = [("", "a"), ("eins", "b"), ("", "c")]
    held = [list(fold.select_pairs(PAIRED, pairs)) for fold in folds((PAIRED,), 3, 4, held_out=True)]
    assert sum((("", "a") in each) == (("", "c") in each) for each in held) == 3


RUNNING = DataConfig(train=(ALONE,), limits={"empty": "keep"})  # type: ignore[arg-type]


def numbers_of(portions: Any, count: int) -> list[int]:
    """Which of `count` lines, every third of them blank, are in some portions; each is told by its length."""
    lines = [("", (" " if number % 3 == 2 else "x") * (number + 1)) for number in range(count)]
    return [len(text) - 1 for portion in portions for _, text in portion.select_pairs(ALONE, lines)]


def stretches(found: list[int]) -> int:
    return 1 + sum(after != before + 1 for before, after in pairwise(found))


@pytest.mark.parametrize("count", [40, 41, 1000])
@pytest.mark.parametrize("more", [{}, {"valid": (PAIRED,)}, {"tests": {"main": PAIRED}}])
def test_running_text_is_split_in_consecutive_lines(count: int, more: dict[str, Any]) -> None:
    """Without the blank lines gathered in one split, and lines of a split follow each other as they do in the text."""
    places = set()
    for seed in range(12):
        splits = resolve_splits(RUNNING.model_copy(update={"split_seed": seed, **more}))
        held = [
            numbers_of([corpus], count)
            for corpus in (*splits.valid, *splits.tests.values())
            if isinstance(corpus, Portion)
        ]
        train = numbers_of(splits.train, count)
        assert sorted([*train, *(number for each in held for number in each)]) == list(range(count))
        assert all(stretches(each) == 1 for each in held)
        assert stretches(train) <= 2
        assert all(abs(len(each) - count / 10) <= 1 for each in held)
        places.add(held[0][0])
    assert len(places) > 6
    assert "(consecutive lines)" in describe_corpus(splits.train[0])


def test_folds_of_running_text_are_of_consecutive_lines_disjoint_and_cover_it() -> None:
    given = RUNNING.model_copy(update={"valid": (PAIRED,), "tests": {"main": PAIRED}})
    held, kept = [], []
    for number in range(1, 6):
        splits = resolve_splits(given.model_copy(update={"fold": FoldConfig(number=number, of=5)}))
        held.append(numbers_of(splits.valid, 43))
        kept.append(numbers_of(splits.train, 43))
    assert [number for each in held for number in each] == list(range(43))
    assert all(sorted([*one, *other]) == list(range(43)) for one, other in zip(held, kept, strict=True))


def test_sources_beside_running_text_and_texts_that_are_none_are_split_by_each_text() -> None:
    texts = [("", f"text {number}") for number in range(200)]
    by_line = resolve_splits(DataConfig(train=(ALONE,)))
    assert isinstance(by_line.valid[0].part, HashRange)  # type: ignore[union-attr]
    held = list(by_line.valid[0].select_pairs(ALONE, texts))  # type: ignore[union-attr]
    assert held == [pair for pair in texts if 0.8 <= hash_to_unit_interval(pair[1], 1) < 0.9]
    mixed = resolve_splits(RUNNING.model_copy(update={"train": (PAIRED, ALONE)}))
    pairs_ = [(f"text {number}", "") for number in range(200)]
    found = list(mixed.valid[0].select_pairs(PAIRED, pairs_))  # type: ignore[union-attr]
    assert [(source, target) for target, source in found] == held
    assert isinstance(resolve_splits(RUNNING.model_copy(update={"train": (PAIRED,)})).valid[0].part, HashRange)  # type: ignore[union-attr]
    with_blocks = DataConfig(train=(ALONE,), running_text=True)
    assert isinstance(resolve_splits(with_blocks).valid[0].part, PositionRange)  # type: ignore[union-attr]


def test_blank_lines_of_other_texts_are_not_all_in_one_split() -> None:
    lines = [("", text) for number in range(300) for text in (f"line {number}", "")]
    splits = resolve_splits(DataConfig(train=(ALONE,)))
    for corpus in (*splits.train, *splits.valid, *splits.tests.values()):
        found = [text for _, text in corpus.select_pairs(ALONE, lines)]  # type: ignore[union-attr]
        assert found.count("") == len(found) // 2 > 10


LINES = [(f"Satz {number % 50} Ä", f"sentence-{number}") for number in range(80)]


def write_all(format_: Format, folder: Path) -> dict[str, Any]:
    """LINES as a corpus of a format."""
    path = folder / f"all.{format_}"
    sources, targets = ([pair[side] for pair in LINES] for side in (0, 1))

    def write(name: Path, lines: list[str]) -> str:
        name.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return str(name)

    match format_:
        case "text":
            return {side: write(folder / side, list(texts)) for side, texts in zip(("source", "target"), zip(*LINES))}  # noqa: B905
        case "tsv":
            return {"path": write(path, ["source\ttarget", *map("\t".join, LINES)])}
        case "csv":
            return {"path": write(path, ["source,target", *map(",".join, LINES)])}
        case "jsonl":
            return {"path": write(path, [json.dumps({"source": one, "target": two}) for one, two in LINES])}
        case "parquet":
            pq.write_table(pa.table({"source": sources, "target": targets}), path)
            return {"path": str(path)}
        case "labelled":
            return {
                "path": write(path, [f"{label} {text}" for text, label in LINES]),
                "source": "text",
                "target": "label",
            }
        case "conllu":
            blocks = [
                [f"{place}\t{word}\t_\tX{number}\t_\t_\t0\tdep\t_\t_" for place, word in enumerate(text.split(), 1)]
                for number, (text, _) in enumerate(LINES)
            ]
            return {
                "path": write(path, [line for block in blocks for line in (*block, "")]),
                "source": "form",
                "target": "upos",
            }
        case "conll":
            columns = [
                [f"{word} {'B' if number % 2 else 'I'}-X{number}" for word in text.split()]
                for number, (text, _) in enumerate(LINES)
            ]
            return {"path": write(path, [line for block in columns for line in (*block, "")])}
        case "tmx":
            units = [
                f'<tu><tuv xml:lang="en"><seg>{one}</seg></tuv><tuv xml:lang="de"><seg>{two}</seg></tuv></tu>'
                for one, two in LINES
            ]
            lines = ["<tmx><body>", *units, "</body></tmx>"]
            return {"path": write(path, lines), "source": "en", "target": "de"}
        case "xliff":
            units = [f"<trans-unit><source>{one}</source><target>{two}</target></trans-unit>" for one, two in LINES]
            return {"path": write(path, ["<xliff><file><body>", *units, "</body></file></xliff>"])}
        case "po":
            return {"path": write(path, [line for one, two in LINES for line in (f'msgid "{one}"', f'msgstr "{two}"')])}
        case "huggingface":
            table = datasets.Dataset.from_dict({"source": sources, "target": targets})
            datasets.DatasetDict(train=table).save_to_disk(str(path))
            return {"path": str(path), "split": "train"}
        case "generated":
            return {"path": "copy", "split": "train", "size": 80}
        case "imagefolder":
            return {"path": str(write_folder(path, 80)), "target": "text"}
        case "idx":
            return {**write_idx(path, 80)}


def texts_of(splits: Splits) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """What is trained on, and what is validated on."""
    return Counter(pair for corpus in splits.train for pair in read_pairs(corpus)), Counter(read_pairs(splits.valid[0]))


@pytest.mark.parametrize("format_", get_args(Format))
@pytest.mark.few(6)
def test_a_recipes_folds_are_of_what_it_trains_on_whatever_the_format(format_: Format, tmp_path: Path) -> None:
    corpus = CorpusConfig.model_validate({"format": format_, **write_all(format_, tmp_path)})
    images = {"images": SHAPE} if corpus.has_images else {}
    again = corpus.model_copy(update={"weight": 3.0, "skip": 10, "epochs": (1, 2)})
    for more in ({}, {"valid": corpus, "tests": {"test": corpus}}):
        data = DataConfig.model_validate({"train": (corpus, again), "split_seed": 5, **images, **more})
        whole = resolve_splits(data)
        trained = Counter(pair for each in whole.train for pair in read_pairs(each))
        held: Counter[tuple[str, str]] = Counter()
        for number in range(1, 4):
            one = resolve_splits(data.model_copy(update={"fold": FoldConfig(number=number, of=3)}))
            train, valid = texts_of(one)
            assert train + valid == trained
            assert not {source for source, _ in train} & {source for source, _ in valid}
            assert [(each.weight, each.epochs) for each in one.train] == [(1.0, None), (3.0, (1, 2))]
            assert one.tests == whole.tests
            assert check_and_count_splits(one)["valid"] is None
            held += valid
        assert held == trained


def test_folds_are_described_and_an_empty_one_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("same\tone\nsame\ttwo\n", encoding="utf-8")
    corpus = CorpusConfig(format="tsv", path=str(path), source="0", target="1")
    data = DataConfig(train=(corpus,), valid=corpus, tests={"test": corpus}, fold=FoldConfig(number=1, of=2))
    splits = resolve_splits(data)
    assert describe_corpus(splits.train[0]) == f"all but fold 1 of 2 of {path}"
    with pytest.raises(DataError, match=r"the (train|valid) split is empty: (all but )?fold 1 of 2 of .*a\.tsv has no"):
        check_and_count_splits(splits)
    cut = resolve_splits(DataConfig(train=(corpus,), fold=FoldConfig(number=2, of=2)))
    assert describe_corpus(cut.valid[0]) == f"fold 2 of 2 of random 80% of {path}"
    assert cut.tests == {"test": Portion((corpus,), HashRange(0.9, 1.0, 1))}
    with pytest.raises(ValidationError, match="there is no fold 4 of 3"):
        FoldConfig(number=4, of=3)
