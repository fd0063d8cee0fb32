"""METEOR is nltk's on the same tokens, with the synonyms of a WordNet folder or without; nothing is downloaded."""

import json
import random
import socket
from pathlib import Path
from typing import Any

import nltk
import pytest
from nltk.translate.meteor_score import meteor_score

from tests.cli.user import tfm
from tests.tiny_wordnet import SYNSETS, nltk_reader, write_wordnet
from tfm.data.errors import DataError
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.recipes import chain
from tfm.pipeline.recipes.recipe import Recipe
from tfm.pipeline.reports.evaluation_report import metric_label, render_report, score_rows
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.evaluation.assess import evaluate_segments
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics.inapplicable_metrics import inapplicable_metrics
from tfm.pipeline.scoring.metrics.meteor import meteor
from tfm.pipeline.scoring.metrics.tokenization import UnicodeWordTokenizer
from tfm.pipeline.scoring.metrics.wordnet import WordNet

PLAIN = EvaluationConfig(metrics=("meteor",))
WORDS = "The car auto railcar men man walked strolling boxes packages big bigger LARGE fast quickly Paris für 3".split()


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    return write_wordnet(tmp_path / "wordnet")


def with_wordnet(folder: Path) -> EvaluationConfig:
    return EvaluationConfig(metrics=("meteor",), wordnet=str(folder))


def corpus(num_references: int, size: int = 80) -> tuple[list[str], list[list[str]]]:
    """Hypotheses and references that share words, stems and synonyms, in another order; the first has no words."""
    draw = random.Random(5)
    columns = [
        [" ".join(draw.choices(WORDS, k=draw.randint(1, 12))) for _ in range(size)] for _ in range(1 + num_references)
    ]
    return ["", *columns[0][1:]], columns[1:]


def of_exact_words(hypothesis: list[str], reference: list[str]) -> float:
    """METEOR of Banerjee and Lavie (2005) in 0..100, of words of which no two are equal, nor have one stem."""
    places = [reference.index(word) if word in reference else None for word in hypothesis]
    matches = [place for place in places if place is not None]
    if not matches:
        return 0.0
    continued = sum(
        place is not None and before is not None and place == before + 1
        for before, place in zip(places, places[1:], strict=False)
    )
    precision, recall = len(matches) / len(hypothesis), len(matches) / len(reference)
    f_mean = 10 * precision * recall / (recall + 9 * precision)
    return 100 * f_mean * (1 - 0.5 * ((len(matches) - continued) / len(matches)) ** 3)


@pytest.mark.parametrize("num_references", [1, 3])
@pytest.mark.parametrize("synonyms", [True, False])
def test_it_is_nltk_s_on_the_same_tokens(tmp_path: Path, num_references: int, synonyms: bool) -> None:
    hypotheses, references = corpus(num_references)
    synsets: Any = SYNSETS if synonyms else {part: [] for part in SYNSETS}
    words = UnicodeWordTokenizer().tokenize
    with nltk_reader(tmp_path / "nltk_data", write_wordnet(tmp_path / "theirs", synsets)) as reader:
        values = [
            meteor_score([words(text) for text in segment], words(hypothesis), wordnet=reader)
            for hypothesis, *segment in zip(hypotheses, *references, strict=True)
        ]
    score = meteor(hypotheses, references, with_wordnet(write_wordnet(tmp_path / "wordnet")) if synonyms else PLAIN)
    assert score.score == pytest.approx(100 * sum(values) / len(values), abs=1e-12)
    assert 5 < score.score < 60


def test_hypernyms_are_followed_to_the_most_general(tmp_path: Path) -> None:
    """entity <- animal <- dog, and Paris, an instance of animal."""
    folder, data, places = write_wordnet(tmp_path / "wordnet"), "", dict[str, int]()
    for word, above, symbol in (
        ("entity", "", ""),
        ("animal", "entity", "@"),
        ("dog", "animal", "@"),
        ("Paris", "animal", "@i"),
    ):
        places[word] = len(data)
        pointer = f"002 + 00000000 v 0101 {symbol} {places[above]:08d} n 0000" if above else "000"
        data += f'{places[word]:08d} 00 n 01 {word} 0 {pointer} | what {word} means; "an example"  \n'
    (folder / "data.noun").write_text(data, newline="\n")
    index = "".join(f"{word.lower()} n 1 1 @ 1 0 {place:08d}  \n" for word, place in sorted(places.items()))
    (folder / "index.noun").write_text(index, newline="\n")
    wordnet = WordNet(folder)
    for word, above in (("dog", ["animal", "entity"]), ("paris", ["animal", "entity"]), ("entity", [])):
        (synset,) = wordnet.synsets(word)
        assert [each.words[0].name() for each in wordnet.hypernym_path(synset)] == above
        assert [each.words[0].name() for each in wordnet.hypernyms(synset)] == above[:1]
        assert synset.gloss == f'what {synset.words[0].name()} means; "an example"'


def test_synonyms_are_those_that_nltk_reads(tmp_path: Path) -> None:
    mine = WordNet(write_wordnet(tmp_path / "mine"))
    words = [word for texts in SYNSETS.values() for text in texts for word in text.lower().split()]
    num_found = 0
    forms = {*words, "galore", "ran", "men", "", "zz", *(word + end for word in words for end in ("s", "ed", "er"))}
    with nltk_reader(tmp_path / "nltk_data", write_wordnet(tmp_path / "theirs")) as theirs:
        for word in forms:
            names = [[lemma.name() for lemma in synset.lemmas()] for synset in mine.synsets(word)]
            assert names == [[lemma.name() for lemma in synset.lemmas()] for synset in theirs.synsets(word)], word
            num_found += len(names)
    assert num_found > 40
    assert [lemma.name() for synset in mine.synsets("cars") for lemma in synset.lemmas()][-2:] == ["car", "railcar"]


@pytest.mark.parametrize(
    ("hypothesis", "reference", "wanted"),
    [
        ("one two three four", "one two three four", 100 * (1 - 0.5 / 4**3)),  # equal: one chunk of four
        ("one", "one", 50),
        ("two one", "one two", 50),  # each match a chunk of its own
        # the paper's example: two chunks, "the president" and "spoke to the audience"
        (
            "the president then spoke to the audience",
            "the president spoke to the audience",
            100 * (10 * 6 / 7 / (1 + 9 * 6 / 7)) * (1 - 0.5 * (2 / 6) ** 3),
        ),
        ("one two", "three four", 0),
        ("", "one", 0),
    ],
)
def test_cases_known_from_the_paper(hypothesis: str, reference: str, wanted: float) -> None:
    assert meteor([hypothesis], [[reference]], PLAIN).score == pytest.approx(wanted, abs=1e-12)


def test_exact_matches_a_second_time_by_the_paper_s_equations() -> None:
    draw, words = random.Random(2), "one two three four five six seven eight nine ten".split()
    texts = [[draw.sample(words, draw.randint(1, 10)) for _ in range(60)] for _ in range(2)]
    wanted = [of_exact_words(given, asked) for given, asked in zip(*texts, strict=True)]
    lines = [[" ".join(each) for each in column] for column in texts]
    assert 0 == min(wanted) < 30 < max(wanted)
    assert meteor(lines[0], [lines[1]], PLAIN).score == pytest.approx(sum(wanted) / len(wanted), abs=1e-12)
    for given, asked, value in zip(*lines, wanted, strict=True):
        assert meteor([given], [[asked]], PLAIN).score == pytest.approx(value, abs=1e-12)


def test_synonyms_and_stems_match_and_the_best_reference_counts(wordnet: Path) -> None:
    def of(hypothesis: str, *references: str, config: EvaluationConfig = PLAIN) -> float:
        return meteor([hypothesis], [[text] for text in references], config).score

    assert of("walking dogs", "walked dog") == of("a b", "a b")
    assert of("an auto", "an railcar") == of("an auto", "an box") > 0
    assert of("an auto", "an car") < of("an auto", "an car", config=with_wordnet(wordnet)) == of("a b", "a b")
    assert of("one two", "x y", "one two", "one") == of("one two", "one two")


def test_with_and_without_synonyms_it_has_two_names_and_signatures(wordnet: Path) -> None:
    segments = Segments("test", None, ["an auto"], [["an car"], ["an dog"]])
    without, found = (
        evaluate_segments(segments, config, seed=1, reporter=NullReporter())
        for config in (PLAIN, with_wordnet(wordnet))
    )
    assert [row[0] for row in (*score_rows(without), *score_rows(found))] == ["METEOR exact+stem", "METEOR"]
    assert metric_label("meteor") == "METEOR"
    assert "METEOR exact+stem" in render_report("t", [without], curves=None, inputs={})
    name = WordNet(wordnet).name
    assert name.startswith("3.0-")
    version = f"|alpha:0.9|beta:3|gamma:0.5|stat:mean*100|version:nltk-{nltk.__version__}"
    start = "nrefs:2|refs:best|case:lc|tok:unicode-words|norm:nfc|modules:exact+stem"
    assert without.scores["meteor"].signature == f"{start}|stem:porter{version}"
    assert found.scores["meteor"].signature == f"{start}+synonyms|wordnet:{name}|stem:porter{version}"


def test_another_wordnet_has_another_name(tmp_path: Path, wordnet: Path) -> None:
    assert WordNet(write_wordnet(tmp_path / "same")).name == WordNet(wordnet).name
    other = WordNet(write_wordnet(tmp_path / "other", {**SYNSETS, "adv": ["fast"]})).name
    assert other.startswith("3.0-")
    assert other != WordNet(wordnet).name


def test_nothing_is_downloaded(wordnet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(nltk.data, "path", [])
    for config in (PLAIN, with_wordnet(wordnet)):
        assert meteor(["an auto runs"], [["an auto ran"]], config).score > 0


@pytest.mark.parametrize("name", ["data.noun", "adv.exc"])
def test_a_folder_without_a_file_is_refused_in_two_lines(wordnet: Path, name: str) -> None:
    (wordnet / name).unlink()
    with pytest.raises(DataError) as caught:
        meteor(["a"], [["a"]], with_wordnet(wordnet))
    first, second = str(caught.value).split("\n")
    assert first == f"{wordnet}: has no {name}: it is no folder of WordNet's database files"
    assert second == "name one that is (Debian's package wordnet-base: /usr/share/wordnet), or leave wordnet out"


def test_a_folder_that_is_not_there_is_refused_as_none(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    with pytest.raises(DataError, match="nowhere: is no folder, and none of WordNet's database files"):
        meteor(["a"], [["a"]], with_wordnet(nowhere))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("index.noun", b"auto n one 0 1 0 00000091\n", "index.noun: the entry of 'auto' is not as WordNet has it"),
        ("index.noun", b"auto n 2 0 2 0 00000091\n", "index.noun: the entry of 'auto' is not as WordNet has it"),
        ("index.noun", b"auto n 1 0 1 0 00000003\n", "data.noun: the synset at byte 3 is not as WordNet has it"),
        ("index.noun", b"auto n 1 0 1 0 99999999\n", "data.noun: the synset at byte 99999999 is not as WordNet has it"),
        ("index.noun", b"auto\xff", "index.noun: byte 4 is not as WordNet has it"),
    ],
)
def test_files_that_are_not_wordnet_s_are_named(wordnet: Path, name: str, content: bytes, said: str) -> None:
    (wordnet / name).write_bytes(content)
    with pytest.raises(DataError, match="install WordNet's files again") as caught:
        meteor(["auto"], [["box"]], with_wordnet(wordnet))
    assert str(caught.value).startswith(f"{wordnet}/{said}")


def test_it_is_left_out_where_it_can_say_nothing() -> None:
    for text, why in (
        ("!!!", "no reference has 1 token (tok:unicode-words): it could only be 0"),
        ("ab " * 5001, "line 1 has 5,001 words; compared are at most 5,000"),
    ):
        assert inapplicable_metrics(["ab"], [[text]], PLAIN) == {"meteor": why}
        found = evaluate_segments(Segments("test", None, ["ab"], [[text]]), PLAIN, seed=1, reporter=NullReporter())
        assert score_rows(found) == [("METEOR", "–", why)]
    assert inapplicable_metrics(["ab"], [["ein Hund", "一只狗", "собака"]], PLAIN) == {}


def test_a_run_without_its_wordnet_ends_before_any_work(tmp_path: Path) -> None:
    evaluation = {"metrics": ["meteor"], "wordnet": str(tmp_path / "none")}
    recipe = Recipe.model_validate({"name": "small", "data": {"path": "corpus"}, "evaluation": evaluation})
    with pytest.raises(DataError, match=f"{tmp_path}/none: is no folder, and none of WordNet's database files"):
        chain.run_recipe_stages(
            recipe,
            root=tmp_path / "runs",
            command=[],
            reporter=NullReporter(),
            on_stage=lambda stage: pytest.fail(stage),
        )


def test_the_command_takes_a_folder_and_scores_again_where_it_changed(tmp_path: Path, wordnet: Path) -> None:
    for name, text in (("given", "an auto\n"), ("asked", "an car\n")):
        (tmp_path / name).write_text(text)
    words = ("evaluate", "--hypotheses", tmp_path / "given", "--reference", tmp_path / "asked")
    words = (*words, "--metric", "meteor", "--out", tmp_path / "scores")
    assert "METEOR exact+stem" in tfm(*words).out
    first = tfm(*words, "--wordnet", wordnet, "--json")
    assert json.loads(first.out)["metrics"]["meteor"]["score"] == 100 * (1 - 0.5 / 2**3)
    assert "nothing to do" in tfm(*words, "--wordnet", wordnet).err
    (wordnet / "adv.exc").write_text("best well\n")
    again = tfm(*words, "--wordnet", wordnet)
    assert "wordnet changed" in again.err
    assert f"|wordnet:{WordNet(wordnet).name}|" in again.out
    (wordnet / "adv.exc").unlink()
    lacking = tfm(*words, "--wordnet", wordnet)
    assert (lacking.code, len(lacking.err.splitlines())) == (65, 2)
    idle = tfm(*words[:5], "--wordnet", wordnet)
    assert idle.code == 2
    assert "no METEOR is among them" in idle.err
