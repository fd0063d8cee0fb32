"""Inflected nouns are those of Turkish grammars; splits share no stem, and bundles are held out."""

from itertools import islice

import pytest

from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.data.synthetic.inflection import (
    CASE_SUFFIXES,
    HELD_OUT_FEATURES,
    NUMBER_SUFFIXES,
    POSSESSIVE_SUFFIXES,
    SPLITS,
    VOWELS,
    generate,
    inflect,
)
from tfm.data.synthetic.registry import generate as built_in

# Forms as grammars of Turkish have them (Göksel and Kerslake 2005; Lewis 2000).
KNOWN = {
    ("kitap", "PL", "PSS1P", "ABL"): "kitaplarımızdan",
    ("kitap", "SG", "", "ACC"): "kitabı",
    ("ev", "PL", "PSS1S", "LOC"): "evlerimde",
    ("ev", "SG", "PSS3S", "DAT"): "evine",
    ("araba", "SG", "", "ACC"): "arabayı",
    ("araba", "SG", "PSS3S", "NOM"): "arabası",
    ("araba", "SG", "PSS1S", "NOM"): "arabam",
    ("ağaç", "SG", "", "DAT"): "ağaca",
    ("köpek", "SG", "PSS3S", "LOC"): "köpeğinde",
    ("çocuk", "SG", "", "GEN"): "çocuğun",
    ("süt", "SG", "", "LOC"): "sütte",
    ("süt", "SG", "", "ACC"): "sütü",
    ("okul", "SG", "", "ABL"): "okuldan",
    ("göz", "PL", "PSS2S", "NOM"): "gözlerin",
    ("kız", "SG", "", "GEN"): "kızın",
    ("anne", "SG", "PSS1P", "DAT"): "annemize",
    ("oda", "PL", "", "DAT"): "odalara",
    ("üzüm", "SG", "PSS2S", "ABL"): "üzümünden",
}


@pytest.mark.parametrize(("asked", "form"), KNOWN.items(), ids=KNOWN.values())
def test_forms_are_those_of_turkish(asked: tuple[str, str, str, str], form: str) -> None:
    stem, number, possessor, case = asked
    assert inflect(stem, (number, possessor, case)) == form


@pytest.mark.parametrize("split", SPLITS)
def test_pairs_are_different_the_same_each_time_and_of_the_bundles_of_their_split(split: str) -> None:
    pairs = list(generate(split, 400, 1))
    assert len({source for source, _ in pairs}) == 400
    assert pairs == list(generate(split, 400, 1))
    assert pairs[:100] == list(islice(generate(split, 400, 1), 100))
    for source, form in pairs:
        stem, features = source.split()
        known = features.split(";")
        number, case = known[0], known[-1]
        possessor = known[1] if len(known) == 3 else ""
        assert number in NUMBER_SUFFIXES
        assert case in CASE_SUFFIXES
        assert possessor in POSSESSIVE_SUFFIXES
        assert ((number, possessor, case) in HELD_OUT_FEATURES) == (split == "combinations")
        assert form == inflect(stem, (number, possessor, case))
        assert form[: len(stem) - 1] == stem[:-1], "only the last letter of a stem changes"
        assert not any(one in VOWELS and other in VOWELS for one, other in zip(form, form[1:], strict=False))


def test_no_stem_is_in_two_splits() -> None:
    stems = {split: {source.split()[0] for source, _ in generate(split, 1000, 1)} for split in SPLITS[:3]}
    assert not stems["train"] & stems["valid"]
    assert not stems["train"] & stems["test"]
    assert not stems["valid"] & stems["test"]
    assert not {source.split()[0] for source, _ in generate("combinations", 500, 1)} & stems["train"]


def test_it_is_a_built_in_corpus() -> None:
    corpus = CorpusConfig(format="generated", path="inflection", split="train", size=3, skip=2)
    assert list(built_in(corpus))[2:] == list(generate("train", 5, 1))[2:]
    with pytest.raises(DataError, match="no split 'dev'"):
        next(generate("dev", 1, 1))
