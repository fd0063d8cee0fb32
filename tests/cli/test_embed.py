"""`tfm embed` at the command line: neighbours, a file of vectors, a picture; errors in a line or two."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import tfm as in_python
from tests.cli.user import Stages, tfm, write_lines
from tests.tiny_wordnet import write_wordnet


def test_the_nearest_words_as_a_table(stages: Stages) -> None:
    found = tfm("embed", stages.folder, "--nearest", "eins", "--count", "3", "--side", "source")
    assert found.code == 0, found.err
    lines = found.out.splitlines()
    assert lines[0] == "eins"
    assert lines[1].split() == ["word", "cosine"]
    assert len(lines) == 3 + 3
    assert "eins" not in "".join(lines[3:])


def test_the_nearest_words_for_scripts(stages: Stages) -> None:
    words = ("--nearest", "eins", "--nearest", "two", "--analogy", "eins", "one", "zwei", "--json")
    found = tfm("embed", stages.folder / "model", *words)
    assert found.code == 0, found.err
    listed = json.loads(found.out)
    assert list(listed) == ["eins", "two", "one - eins + zwei"]
    cosines = [each["cosine"] for each in listed["eins"]]
    assert cosines == sorted(cosines, reverse=True)
    assert len(cosines) == 10
    assert {"eins", "one", "zwei"}.isdisjoint(each["word"] for each in listed["one - eins + zwei"])


def test_vectors_are_written_and_an_embedding_starts_from_them(stages: Stages, tmp_path: Path) -> None:
    for name in ("v.txt", "v.txt.gz"):
        written = tfm("embed", stages.folder, "--out", tmp_path / name)
        assert written.code == 0, written.err
        assert written.out == ""
        assert f"written: {tmp_path / name}" in written.err
    text = (tmp_path / "v.txt").read_text(encoding="utf-8")
    assert gzip.decompress((tmp_path / "v.txt.gz").read_bytes()).decode() == text
    number, width = map(int, text.splitlines()[0].split())
    assert (number, width) == (12, 16)
    assert {line.split()[0] for line in text.splitlines()[1:]} >= {"eins", "six"}
    assert np.array([line.split()[1:] for line in text.splitlines()[1:]]).astype(float).shape == (number, width)
    model = ("--set", "model.encoder.dim=16", "--set", "model.encoder.heads=2", "--set", "model.decoder.dim=16")
    wanted = ("--set", f"model.source_vectors={tmp_path / 'v.txt.gz'}", "--set", "model.decoder.heads=2")
    words = ("train", "--data", stages.folder / "dataset", "--max-steps", "1", "--device", "cpu", *model, *wanted)
    trained = tfm(*words, "--out", tmp_path / "run")
    assert trained.code == 0, trained.err
    assert "training: 12 of 12 source pieces start from" in trained.err


@pytest.mark.parametrize("name", ["v.txt", "v.vec.gz", "v.bin", "v.bin.gz"])
def test_vectors_that_were_written_are_asked_as_those_of_the_model(name: str, stages: Stages, tmp_path: Path) -> None:
    """So are GloVe's and fastText's, which were texts with counts of neighbours, or refused as no text."""
    file, again = tmp_path / name, tmp_path / "again.txt"
    written = tfm("embed", stages.folder, "--out", file)
    assert written.code == 0, written.err
    words = ("--nearest", "eins", "--analogy", "eins", "one", "zwei", "--json")
    of_file, of_model = tfm("embed", file, *words, "--out", again), tfm("embed", stages.folder, *words)
    assert of_file.code == 0, of_file.err
    assert of_file.out == of_model.out
    assert tfm("embed", stages.folder, "--out", tmp_path / "text.txt").code == 0
    assert again.read_bytes() == (tmp_path / "text.txt").read_bytes()
    assert tfm("embed", file, "--picture", tmp_path / "p.svg").code == 0
    for flags, code, problem in (
        (("--nearest", "einz"), 2, "has no vector for 'einz'; it has 'eins'"),
        (("--pair", "eins", "two"), 2, "it needs a model, and MODEL is word vectors"),
        (("--concordance", "eins"), 2, "it needs a text file as MODEL"),
        (("--out", "v.txt.xz"), 2, "of compressed vectors its name ends in .gz"),
    ):
        refused = tfm("embed", file, *flags)
        assert refused.code == code
        assert problem in " ".join(refused.err.split())


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_picture(kind: str, stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "words.txt", ["eins german", "zwei german", "one english"])
    for place, words in ((f"all.{kind}", ()), (f"some.{kind}", ("--words", "words.txt"))):
        drawn = tfm("embed", stages.folder, "--picture", place, *words)
        assert drawn.code == 0, drawn.err
        assert (tmp_path / place).read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")
    assert (tmp_path / f"all.{kind}").read_bytes() != (tmp_path / f"some.{kind}").read_bytes()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "give --nearest, --analogy, --pair, --concordance, --text, --out or --picture"),
        (("--nearest", "einz"), 2, "no vector for 'einz'; it has 'eins'"),
        (("--analogy", "eins", "one", "zwo"), 2, "no vector for 'zwo'"),
        (("--pair", "one", "two"), 65, "P(o | c) is of skip-gram and CBOW"),
        (("--concordance", "one"), 2, "it needs a text file as MODEL"),
        (("--one-hot", "--nearest", "one"), 2, "it needs a text file as MODEL"),
        (("--wordnet", "nowhere", "--analogy", "eins", "one", "zwei"), 2, "it needs --nearest WORD"),
        (("--nearest", "eins", "--wordnet", "nowhere"), 65, "nowhere: is no folder, and none of WordNet"),
        (("--count", "3", "--out", "v.txt"), 2, "--count"),
        (("--json", "--out", "v.txt"), 2, "--json"),
        (("--words", "words.txt", "--nearest", "eins"), 2, "--words"),
        (("--picture", "p.pdf"), 2, ".svg"),
        (("--nearest", "eins", "--side", "both"), 2, "--side"),
        (("--picture", "p.png", "--words", "words.txt"), 65, "words.txt, line 2: the model has no vector for 'wort'"),
        (("--picture", "p.png", "--words", "nowhere.txt"), 65, "nowhere.txt: no such file"),
        (("--out", "no/such/v.txt"), 73, "no/such/v.txt"),
        (("--picture", "no/such/p.png"), 73, "no/such/p.png"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_errors(
    words: tuple[str, ...], code: int, said: str, stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "words.txt", ["eins", "wort"])
    result = tfm("embed", stages.folder, *words)
    assert result.code == code, result.err
    assert said in result.err
    assert result.out == ""
    assert "Traceback" not in result.err
    assert {file.name for file in tmp_path.iterdir()} == {"words.txt"}


def test_no_model_there(tmp_path: Path) -> None:
    result = tfm("embed", tmp_path / "nothing", "--nearest", "eins")
    assert result.code == 65
    assert "nothing" in result.err


def test_hidden_states_are_those_of_python_and_alike_texts_come_first(stages: Stages) -> None:
    texts = ("eins zwei", "drei eins", "eins zwei")
    words = [word for text in texts for word in ("--text", text)]
    model = in_python.load(stages.folder, device="cpu")
    for unit in ("piece", "word", "text"):
        said = tfm("embed", stages.folder, *words, "--layer", "1", "--unit", unit, "--json", "--device", "cpu")
        assert said.code == 0, said.err
        found = model.encode(texts, layer=1, unit=unit)  # type: ignore[arg-type]
        assert json.loads(said.out) == [
            {"text": each.text, "tokens": each.tokens, "vectors": each.vectors.tolist()} for each in found
        ]
    shown = tfm("embed", stages.folder, *words, "--device", "cpu").out.splitlines()
    assert shown[1].split() == ["text", "of", "beside", "of", "cosine"]
    assert shown[3].split() == ["eins", "zwei", "1", "eins", "zwei", "3", "1.000"]
    assert len(shown) == 3 + 3
    for flags, problem in ((("--text", "a", "--nearest", "b"), "not for --text"), (("--layer", "1"), "needs --text")):
        refused = tfm("embed", stages.folder, *flags)
        assert refused.code == 2
        assert problem in " ".join(refused.err.split())


def test_a_text_has_counts_and_contexts(tmp_path: Path) -> None:
    file, folder = tmp_path / "text.txt", write_wordnet(tmp_path / "wordnet")
    write_lines(file, ["the dog runs far", "the car runs far", "a dog sleeps", "a stone is a stone"])
    asked = ("--nearest", "dog", "--concordance", "runs", "--window", "2", "--count", "3", "--wordnet", folder)
    shown = tfm("embed", file, *asked)
    assert shown.code == 0, shown.err
    for line in ("1 the dog runs far", "runs: 2 in the text", "far 2", "beside runs", "dog in WordNet", "car 0.7"):
        assert any(" ".join(each.split()).startswith(line) for each in shown.out.splitlines()), line
    listed = json.loads(tfm("embed", file, *asked, "--json").out)
    assert list(listed) == ["dog", "dog in WordNet", "runs: 2 in the text", "beside runs"]
    assert listed["dog in WordNet"][0]["synset"] == "dog domestic_dog"
    assert listed["runs: 2 in the text"][0] == {"line": 1, "before": "the dog", "word": "runs", "after": "far"}
    alike = json.loads(tfm("embed", file, "--nearest", "dog", "--one-hot", "--json").out)
    assert {each["cosine"] for each in alike["dog"]} == {0}
    for words, said in (
        (("--concordance", "cat"), "the text has no vector for 'cat'; it has 'car'"),
        (("--pair", "dog", "car"), "it needs a model, and MODEL is a text file"),
        (("--nearest", "dog", "--device", "cpu"), "it needs a model, and MODEL is a text file"),
        (("--nearest", "dog", "--one-hot", "--window", "3"), "has no effect on one-hot vectors"),
        (("--concordance", "dog", "--one-hot"), "it needs --nearest"),
    ):
        refused = tfm("embed", file, *words)
        assert refused.code == 2
        assert said in " ".join(refused.err.split())
    assert tfm("embed", file, "--out", tmp_path / "counts.txt").code == 0
    assert (tmp_path / "counts.txt").read_text().splitlines()[0] == "9 9"
