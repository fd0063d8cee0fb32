"""`tfm align` and `tfm translate --alignments` at the command line."""

import json
import re
from pathlib import Path

import pytest

import tfm as tfm_api
from tests.cli.user import Stages, tfm, write_lines
from tests.tiny_model import TEXTS, publish_model


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "some.de", ["eins zwei", "drei vier fünf", "sechs"])
    write_lines(tmp_path / "some.en", ["one two", "three four five", "six"])
    return tmp_path


@pytest.mark.slow
def test_alignments_of_given_pairs(stages: Stages, texts: Path) -> None:
    made = tfm("align", stages.folder, "some.de", "some.en")
    assert made.code == 0, made.err
    lines = made.out.splitlines()
    assert [len(line.split()) for line in lines] == [2, 3, 1]
    assert lines[2] == "0-0"
    assert all(link.split("-")[1] in "012" for line in lines for link in line.split())
    one = tfm("align", stages.folder, "some.de", "some.en", "--head", "2", "--shifted")
    assert one.code == 0, one.err


def test_sources_that_the_model_cannot_read_are_said(stages: Stages, texts: Path) -> None:
    write_lines(texts / "some.ko", ["안녕 하세요", "eins zwei", "여섯"])
    write_lines(texts / "gold", ["0-0 1-1", "0-0 1-1", "0-0"])
    said = "2 of 3 sources consist by half or more of what the model's vocabulary lacks"
    for more in ((), ("--gold", "gold"), ("--reverse", stages.folder)):
        made = tfm("align", stages.folder, "some.ko", "some.en", *more)
        assert (made.code, said in made.err) == (0, True), made.err
    assert "warning" not in tfm("align", stages.folder, "some.de", "some.en").err
    for given in (
        ("attend", "--head-report", "some.ko"),
        ("embed", "--text", "안녕", "--text", "eins", "--text", "여섯"),
    ):
        made = tfm(given[0], stages.folder, *given[1:])
        assert (made.code, said in made.err) == (0, True), made.err
    made = tfm("attend", stages.folder, "안녕", "--json")
    assert (made.code, "1 of 1 source consists by half" in made.err) == (0, True), made.err


def test_pairs_that_a_model_cannot_read_whole_are_refused_or_warned_of(stages: Stages, texts: Path) -> None:
    write_lines(texts / "some.en", ["one two", "three " * 2000, "six"])
    made = tfm("align", stages.folder, "some.de", "some.en")
    assert (made.code, made.err.startswith("some.en, line 2: the target has ")) == (65, True), made.err
    made = tfm("align", stages.folder, "some.de", "some.en", "--reverse", stages.folder)
    said = "1 pair of more pieces than a model reads, the first in line 2: the words behind have no links"
    assert (made.code, said in made.err) == (0, True), made.err
    assert "links" not in tfm("align", stages.folder, "some.de", "some.de", "--reverse", stages.folder).err


def test_gold_alignments_from_one_within_their_texts_are_warned_of(stages: Stages, texts: Path) -> None:
    for first, count, is_warned in ((1, 12, True), (0, 12, False), (1, 9, False)):
        write_lines(texts / "three.de", ["eins zwei drei"] * count + ["drei"])
        write_lines(texts / "three.en", ["one two three"] * count + ["three"])
        write_lines(texts / "gold", [f"{first}-{first} 1p2"] * count + [""])
        made = tfm("align", stages.folder, "three.de", "three.en", "--gold", "gold", "--json")
        warning = "gold: none of its links is of the first word of a source or target: does the file count from 1?"
        assert (made.code, warning in made.err) == (0, is_warned), made.err


@pytest.mark.slow
def test_error_rates_against_gold(stages: Stages, texts: Path) -> None:
    write_lines(texts / "gold", ["0-0 1-1", "0-0 1-1 2-2", "0-0"])
    made = tfm("align", stages.folder, "some.de", "some.en", "--gold", "gold")
    assert made.code == 0, made.err
    assert made.out.startswith("Alignment error rate of heads, 3 pairs")
    all_heads = json.loads(tfm("align", stages.folder, "some.de", "some.en", "--gold", "gold", "--json").out)
    assert (all_heads["pairs"], len(all_heads["heads"])) == (3, 6)
    chosen = tfm("align", stages.folder, "some.de", "some.en", "--gold", "gold", "--json", "--layer", "1")
    (found,) = json.loads(chosen.out)["heads"]
    links = tfm("align", stages.folder, "some.de", "some.en", "--layer", "1").out.split("\n")
    gold = [["0-0", "1-1"], ["0-0", "1-1", "2-2"], ["0-0"]]
    right = sum(link in line.split() for line, wanted in zip(links, gold, strict=False) for link in wanted)
    assert found["recall"] == pytest.approx(100 * right / 6)
    assert found["aer"] == pytest.approx(100 - 100 * right / 6)


def test_the_built_in_corpus_has_gold_alignments(stages: Stages, texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfm.data.synthetic.registry.NUM_ALIGNED_SENTENCES", 6)
    made = tfm("align", stages.folder, "grammar", "--json")
    assert made.code == 0, made.err
    assert json.loads(made.out)["pairs"] == 6
    assert "of its own" in tfm("align", stages.folder, "grammar", "some.en").err


def test_translations_come_with_alignments(stages: Stages, texts: Path) -> None:
    """They are those that `tfm align` gives for the same texts, one line for each that is printed."""
    plain = tfm("translate", stages.folder, "some.de")
    made = tfm("translate", stages.folder, "some.de", "--alignments", "links")
    assert made.code == 0, made.err
    assert made.out == plain.out
    (texts / "said").write_text(made.out, encoding="utf-8")
    assert (texts / "links").read_text(encoding="utf-8") == tfm("align", stages.folder, "some.de", "said").out
    several = tfm("translate", stages.folder, "some.de", "--n-best", "2", "--alignments", "links")
    assert len((texts / "links").read_text(encoding="utf-8").splitlines()) == len(several.out.splitlines()) == 6


def test_a_command_that_fails_leaves_the_file_of_alignments_as_it_was(stages: Stages, texts: Path) -> None:
    write_lines(texts / "links", ["0-0"])
    write_lines(texts / "prefixes", ["one"])
    for model, more in ((stages.folder / "dataset", ()), (stages.folder, ("--prefixes", "prefixes"))):
        for file, wanted in (("links", ["0-0"]), ("new", None)):
            done = tfm("translate", model, "some.de", "--alignments", file, *more)
            assert done.code == 65, done.err
            assert (texts / file).exists() is (wanted is not None)
            assert wanted is None or (texts / file).read_text(encoding="utf-8").splitlines() == wanted
    assert not [*texts.glob(".*")]


def test_a_picture_of_words(stages: Stages, texts: Path) -> None:
    made = tfm("attend", stages.folder, "eins zwei", "--target", "one two", "--alignments", "words.png")
    assert made.code == 0, made.err
    assert (texts / "words.png").read_bytes().startswith(b"\x89PNG")
    assert not (texts / "attention.html").exists()


def test_what_cannot_be_aligned(stages: Stages, texts: Path) -> None:
    write_lines(texts / "gold", ["0-0", "0:1", "0-0"])
    write_lines(texts / "short", ["0-0"])
    pair = ("align", stages.folder, "some.de", "some.en")
    for words, reason in (
        ((*pair, "--gold", "gold"), "gold, line 2: '0:1' is no link"),
        ((*pair, "--gold", "short"), "short: has 1 line, but some.de has 3"),
        ((*pair, "--layer", "7"), "--layer 7: the cross-attention has layers 1 to 1"),
        ((*pair, "--json"), "need --gold FILE"),
        (pair[:3], "give the file of the translations of some.de"),
        (("translate", stages.folder, "some.de", "--alignments", "a/b"), "a"),
        (("translate", stages.folder, "some.de", "--alignments", "a", "--out", "o"), "tfm align"),
    ):
        found = tfm(*words)
        assert found.code in (2, 65, 73)
        assert reason in found.err, found.err


def test_the_training_pairs_of_a_dataset(stages: Stages, texts: Path) -> None:
    """A line for each, which training.guided_alignment takes."""
    made = tfm("align", stages.folder, stages.folder / "dataset")
    assert made.code == 0, made.err
    from tfm.data.artifact_tokenizers import load_tokenizer_pair
    from tfm.data.dataset.store import load_dataset
    from tfm.pipeline.alignment.piece_links import read_piece_links

    (texts / "links").write_text(made.out, encoding="utf-8")
    data = load_dataset(stages.folder / "dataset")
    found = read_piece_links(texts / "links", data.train, load_tokenizer_pair(data.tokenizer_folder))
    assert len(made.out.splitlines()) == len(found) == found.num_linked_rows
    assert "is a dataset" in tfm("align", stages.folder, stages.folder / "dataset", "some.en").err


def test_models_of_both_directions(stages: Stages, texts: Path) -> None:
    pair = ("align", stages.folder, "some.de", "some.en")
    made = {how: tfm(*pair, "--reverse", stages.folder, "--symmetrize", how) for how in ("union", "intersection")}
    sets = {how: [set(line.split()) for line in each.out.splitlines()] for how, each in made.items()}
    alone = [set(line.split()) for line in tfm(*pair).out.splitlines()]
    assert [len(each) for each in alone] == [2, 3, 1]
    for some, links, every in zip(sets["intersection"], alone, sets["union"], strict=True):
        assert some <= links <= every
    best = tfm(*pair, "--reverse", stages.folder, "--heads", "best")
    assert best.code == 0, best.err
    assert "of their links agree in 3 pairs" in best.err
    assert len(best.out.splitlines()) == 3


def test_texts_and_models_of_the_other_direction_are_warned_of(texts: Path) -> None:
    """A model finds its own translations likelier than the texts that they are of."""
    model = publish_model(texts / "model")
    sources = [*TEXTS, "a dog", "the sea", "two cats asleep", "snow !"]
    write_lines(texts / "source", sources)
    write_lines(texts / "target", tfm_api.load(model, device="cpu").translate(sources, beam=1, max_length=8))
    files, exchanged = "are the two files exchanged?", "--reverse model: finds TARGET likelier, given SOURCE"
    for words, warnings in (
        (("source", "target"), ()),
        (("target", "source"), (files,)),
        (("source", "target", "--reverse", "model"), (exchanged,)),
        (("target", "source", "--reverse", "model"), (files,)),
    ):
        made = tfm("align", "model", *words)
        assert made.code == 0, made.err
        assert [each in made.err for each in (files, exchanged)] == [each in warnings for each in (files, exchanged)]


def test_unknown_words_are_copied_and_signatures_say_so(stages: Stages, texts: Path) -> None:
    """A model of seven words whose every translation is of known ones: the texts stay, the signature does not."""
    plain, made = (tfm("translate", stages.folder, "some.de", *more) for more in ((), ("--replace-unknown",)))
    assert made.code == 0, made.err
    assert made.out == plain.out
    score = ("evaluate", "--model", stages.folder, "--source", "some.de", "--reference", "some.en", "--metric", "chrf")
    signed, unsigned = (tfm(*score, *more) for more in (("--replace-unknown",), ()))
    assert signed.code == 0, signed.err
    assert "unknown:source" in signed.out + signed.err
    assert "unknown:source" not in unsigned.out + unsigned.err


@pytest.mark.slow
def test_scores_of_a_recipe_say_that_words_were_replaced(recipe: Path) -> None:
    made = tfm("run", recipe, "--set", "decoding.replace_unknown=true", "--set", "training.max_steps=5")
    assert made.code == 0, made.err
    scores = json.loads(Path("runs/tiny/scores/scores.json").read_text(encoding="utf-8"))
    text = json.dumps(scores)
    assert "unknown:source" in text
    assert all("unknown:source" not in line for line in re.findall(r'"perplexity": \{[^}]*\}', text))


def test_a_server_says_what_it_cannot_do(stages: Stages) -> None:
    assert "leave --numpy out" in tfm("serve", stages.folder, "--numpy", "--replace-unknown").err
