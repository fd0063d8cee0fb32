"""METEOR of ten scripts a second time: nltk's function on tokens of plain code, with nltk's own reader of WordNet."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from nltk.translate.meteor_score import meteor_score

from tests.cli.user import tfm, write_lines
from tests.meaning.plain_tokens import tokens_of_words
from tests.meaning.scripts import SCRIPTS, Script
from tests.meaning.test_plain_scores import noisy
from tests.tiny_wordnet import SYNSETS, nltk_reader, write_wordnet

pytestmark = [pytest.mark.slow, pytest.mark.meaning("scores")]
DEBIANS = Path("/usr/share/wordnet")  # of the package wordnet-base
WORDS = [word.partition("(")[0] for synsets in SYNSETS.values() for synset in synsets for word in synset.split()]
FORMS: tuple[Callable[[str], str], ...] = (str, str.title, str.upper, "{}s".format, "{}ed".format, "{}ing".format)


class NoSynonyms:
    """What nltk's METEOR asks for synonyms, and gets none."""

    def synsets(self, word: str) -> list[Any]:
        return []


def scored(folder: Path, hypotheses: Sequence[str], columns: Sequence[Sequence[str]], *words: object) -> dict[str, Any]:
    """METEOR as a user gets it."""
    given = write_lines(folder / "hypotheses", hypotheses)
    references = [write_lines(folder / f"reference-{number}", each) for number, each in enumerate(columns)]
    named = [word for file in references for word in ("--reference", file)]
    said = tfm("evaluate", "--hypotheses", given, *named, "--metric", "meteor", *words, "--json")
    assert said.code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)["metrics"]["meteor"]
    return found


def recomputed(hypotheses: Sequence[str], columns: Sequence[Sequence[str]], wordnet: Any) -> float:
    """The mean over the segments of the best of their references, in 0..100; no word is right where none is wanted."""
    values = []
    for hypothesis, *segment in zip(hypotheses, *columns, strict=True):
        tokens, wanted = tokens_of_words(hypothesis), [tokens_of_words(each) for each in segment]
        values.append(meteor_score(wanted, tokens, wordnet=wordnet) if tokens or any(wanted) else 1.0)
    return 100 * sum(values) / len(values)


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_meteor_without_synonyms(script: Script, tmp_path: Path, record_property: Any) -> None:
    hypotheses, references = noisy(script, 11)
    for columns in ([references], [references, references[::-1]]):
        found = scored(tmp_path, hypotheses, columns)
        assert found["score"] == pytest.approx(recomputed(hypotheses, columns, NoSynonyms()), abs=1e-9)
        assert 0 < found["score"] < 100
        record_property("figures", 1)


def sentences(seed: int) -> list[str]:
    """Texts of words that a small WordNet has, in forms that it has to find the base of; one is empty."""
    draw = random.Random(seed)
    return [" ".join(draw.choice(FORMS)(draw.choice(WORDS)) for _ in range(draw.randint(2, 9))) for _ in "x" * 60] + [
        ""
    ]


def test_meteor_with_synonyms(tmp_path: Path, record_property: Any) -> None:
    """Of a small WordNet, and of Debian's where that is installed."""
    hypotheses, references = sentences(1), sentences(2)
    for folder in filter(Path.is_dir, (write_wordnet(tmp_path / "small"), DEBIANS)):
        found = scored(tmp_path, hypotheses, [references], "--wordnet", folder)["score"]
        with nltk_reader(tmp_path / f"nltk {folder.name}", folder) as reader:
            assert found == pytest.approx(recomputed(hypotheses, [references], reader), abs=1e-9)
        assert found > recomputed(hypotheses, [references], NoSynonyms()), "synonyms match"
        record_property("figures", 1)
