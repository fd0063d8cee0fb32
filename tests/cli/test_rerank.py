"""`tfm rerank`, as typed: lists from `tfm translate`, weights tuned on validation, and what is refused."""

import json
from pathlib import Path

import pytest

from tests.cli.user import Stages, tfm
from tfm.pipeline.reranking.features import FeatureScorer


@pytest.fixture
def lists(stages: Stages, corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The output of `tfm translate` for the validation text."""
    monkeypatch.chdir(tmp_path)
    beside = ("--beam", "3", "--n-best", "3", "--max-length", "6", "--jsonl", "--device", "cpu")
    done = tfm("translate", stages.folder, corpora / "valid.de", *beside)
    assert done.code == 0, done.err
    return done.out


def test_weights_are_tuned_and_used(lists: str, stages: Stages, corpora: Path) -> None:
    channel = ("--channel", stages.folder)  # of the wrong direction, which any model is good enough for
    tuned = tfm("rerank", *channel, "--tune", "w.json", "--reference", corpora / "valid.en", stdin=lists)
    assert tuned.code == 0, tuned.err
    assert "1,000 trials, seed 1" in tuned.err
    assert "language_model   0.0000" in tuned.err
    weights = json.loads(Path("w.json").read_text("utf-8"))
    assert weights["tuning"]["value"] >= weights["tuning"]["direct_alone"]
    Path("lists.jsonl").write_text(lists, "utf-8")
    used = tfm("rerank", "lists.jsonl", *channel, "--weights", "w.json")
    assert used.out == tuned.out
    assert len(used.out.splitlines()) == 20
    whole = tfm("rerank", "-", *channel, "--weights", "w.json", "--jsonl", stdin=lists)
    found = [json.loads(line) for line in whole.out.splitlines()]
    assert [each["translations"][0]["text"] for each in found] == used.out.splitlines()
    for each in found:
        scores = [one["score"] for one in each["translations"]]
        assert scores == sorted(scores, reverse=True)
        for one in each["translations"]:
            assert one["score"] == pytest.approx(
                sum(weights["weights"][name] * value for name, value in one["features"].items())
            )


def test_too_few_references_are_said_before_lists_are_scored(
    lists: str, stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FeatureScorer, "score", lambda self, lists: pytest.fail("scored"))
    Path("few").write_text("one\n", "utf-8")
    done = tfm("rerank", "--channel", stages.folder, "--tune", "w", "--reference", "few", stdin=lists)
    assert done.code == 65
    assert "1 reference of 20 lists: give one for each line" in done.err


def test_lists_of_one_translation_leave_nothing_to_choose(lists: str, stages: Stages, corpora: Path) -> None:
    """As where --n-best was forgotten: weights cannot be tuned, and what is printed is what was read."""
    documents = [json.loads(line) for line in lists.splitlines()]
    single = [{**each, "translations": each["translations"][:1]} for each in documents]
    channel, problem = ("--channel", stages.folder), "each list has one translation, so that there is nothing to choose"
    for chosen, is_refused in ((single, True), ([*single[:3], *documents[3:]], False)):
        text = "".join(json.dumps(each) + "\n" for each in chosen)
        tuned = tfm("rerank", *channel, "--tune", "w.json", "--reference", corpora / "valid.en", stdin=text)
        assert (tuned.code, problem in tuned.err) == ((65, True) if is_refused else (0, False)), tuned.err
    for chosen, is_warned in ((single, True), (documents, False)):
        text = "".join(json.dumps(each) + "\n" for each in chosen)
        used = tfm("rerank", *channel, "--weights", "w.json", stdin=text)
        assert (used.code, problem in used.err) == (0, is_warned)
        if is_warned:
            assert used.out.splitlines() == [each["translations"][0]["text"] for each in documents]


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("--weights", "w.json"), 2, "give it, or --language-model"),
        (("--channel", "M"), 2, "give either --weights, or --tune"),
        (("--channel", "M", "--weights", "w", "--tune", "w"), 2, "give either --weights, or --tune"),
        (("--channel", "M", "--tune", "w"), 2, "give the right translations"),
        (("--channel", "M", "--weights", "w", "--trials", "5"), 2, "is for --tune"),
        (("--channel", "M", "--weights", "none.json"), 65, "none.json: no such file: make it with `tfm rerank --tune`"),
        (("--language-model", "M", "--tune", "w", "--reference", "r"), 65, "a language model is wanted"),
        (("--channel", "M", "--tune", "no/w.json", "--reference", "r"), 73, "no/w.json"),
        (("--channel", "M", "--tune", "w", "--reference", "sgm"), 65, "sgm: is a test set as WMT had it"),
        (("--channel", "M", "--tune", "w", "--reference", "r"), 65, "there is no list"),
    ],
)
def test_words_that_do_not_go_together(
    stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r").write_text("one\n", "utf-8")
    Path("sgm").write_text(
        '<refset setid="x" trglang="en">\n<doc docid="1">\n<seg id="1">one</seg>\n</doc></refset>\n', "utf-8"
    )
    done = tfm("rerank", *(str(stages.folder) if word == "M" else word for word in words), stdin="")
    assert done.code == code, done.err
    assert reason in " ".join(done.err.replace("│", " ").split())
