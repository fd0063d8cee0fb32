"""Misspelled sentences are those of the grammar, about as many characters wrong as is said."""

from rapidfuzz.distance import Levenshtein

from tfm.data.corpus_config import CorpusConfig
from tfm.data.synthetic import grammar
from tfm.data.synthetic.registry import corpus_version
from tfm.data.synthetic.registry import generate as built_in
from tfm.data.synthetic.spelling import TYPO_RATE, generate


def test_targets_are_sentences_of_the_grammar_and_sources_have_errors() -> None:
    pairs = list(generate("train", 300, 1))
    assert [target for _, target in pairs] == [english for english, _ in grammar.generate("train", 300, 1)]
    assert pairs == list(generate("train", 300, 1))
    wrong = sum(Levenshtein.distance(*pair) for pair in pairs)
    characters = sum(len(target.replace(" ", "")) for _, target in pairs)
    assert 0.7 * TYPO_RATE < wrong / characters < 1.6 * TYPO_RATE, "an exchange of neighbours is two edits"
    assert all(len(source.split()) == len(target.split()) for source, target in pairs), "no word disappears"
    assert sum(source == target for source, target in pairs) > 10


def test_it_is_a_built_in_corpus_with_a_version_of_its_own() -> None:
    corpus = CorpusConfig(format="generated", path="spelling", split="test", size=3)
    assert list(built_in(corpus)) == list(generate("test", 3, 1))
    assert corpus_version("spelling") not in (corpus_version("grammar"), corpus_version("inflection"))
