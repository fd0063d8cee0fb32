"""A corpus in the format of Penn Treebank through its recipe, and any text of a user under the model."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import ROOT, Result, tfm

WORDS = ["the", "<unk>", "N", "stock", "markets", "fell", "n't", "'s", "mr.", "größer", "股票", "<eos>", "</s>"]
SMALL = {
    "data.path": "ptb",
    "data.batch_tokens": 256,
    "model.block": 24,
    "model.max_length": 40,
    "model.decoder.layers": 1,
    "model.decoder.dim": 16,
    "model.decoder.heads": 2,
    "model.decoder.feed_forward_dim": 16,
    "training.max_steps": 4,
    "training.schedule.warmup_steps": 1,
    "training.device": "cpu",
    "evaluation.stride": 8,
}
TEST = "ptb/ptb.test.txt"
OF_TEXT = ("evaluate", "--model", "runs/ptb", "--reference", TEST)


def run(**changes: Any) -> Result:
    settings = {**SMALL, **{key.replace("__", "."): value for key, value in changes.items()}}
    return tfm(
        "run", ROOT / "recipes/ptb.toml", *(x for key, value in settings.items() for x in ("--set", f"{key}={value}"))
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the recipe on a corpus whose lines begin and end with a space, some of them empty."""
    folder, draw = tmp_path_factory.mktemp("ptb"), random.Random(5)
    (folder / "ptb").mkdir()
    for split, size in (("train", 120), ("valid", 20), ("test", 20)):
        lines = [" ".join(["", *draw.choices(WORDS, k=draw.choice([0, 3, 9, 30])), ""]) for _ in range(size)]
        (folder / "ptb" / f"ptb.{split}.txt").write_text("\n".join([" ".join(["", *WORDS, ""]), *lines, ""]), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        said = run()
        assert said.code == 0, said.err
        assert "dropped" not in said.err or "too long          0" in said.err
    return folder


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def scores(said: Result) -> dict[str, tuple[float, str]]:
    assert said.code == 0, said.err
    metrics = json.loads(said.out)["metrics"]
    return {name: (each["score"], each["signature"]) for name, each in metrics.items()}


def recipes_own() -> dict[str, tuple[float, str]]:
    metrics = json.loads(Path("runs/ptb/scores/scores.json").read_text("utf-8"))["metrics"]
    return {name: (each["score"], each["signature"]) for name, each in metrics.items()}


def test_the_recipe_counts_as_the_papers_do() -> None:
    words = sum(len([*line.split(), "<eos>"]) for line in Path(TEST).read_text("utf-8").splitlines())
    found = recipes_own()
    by_word, by_piece = found["word_perplexity"], found["perplexity"]
    assert by_word[0] == by_piece[0]
    stream = f"unit:token|count:{words}|end:counted|context:windows-of-24|stride:8"
    assert by_piece[1] == f"{stream}|vocab:{len(WORDS) + 4}"  # the text's <unk> and </s> are words
    assert by_word[1] == f"unit:word|count:{words}|newline:counted|{stream}"
    assert "perplexity by word" in Path("runs/ptb/scores/report.html").read_text("utf-8")
    segments = [json.loads(line) for line in Path("runs/ptb/scores/segments.jsonl").read_text("utf-8").splitlines()]
    lines = Path(TEST).read_text("utf-8").splitlines()
    assert [each["words"] for each in segments] == [len(line.split()) + 1 for line in lines]
    assert by_word[0] == math.exp(-math.fsum(each["log_prob"] for each in segments) / words)
    shown = json.loads(tfm("compare", "runs/ptb", "--json").out)["runs"][0]["figures"]
    assert shown["test.word_perplexity"]["value"] == pytest.approx(by_word[0])


def test_a_text_of_the_users_own_has_the_same_figures() -> None:
    """The same text, read from its file: what differs is how many windows are read at once."""
    by_file = scores(tfm(*OF_TEXT, "--stride", "8", "--json"))
    for name, (score, signature) in recipes_own().items():
        assert by_file[name][1] == signature
        assert by_file[name][0] == pytest.approx(score, rel=1e-5)


def test_a_stride_gives_context_and_is_said() -> None:
    beside, over = (scores(tfm(*OF_TEXT, "--json", *stride)) for stride in ((), ("--stride", "1")))
    assert "stride" not in beside["perplexity"][1]
    assert "|stride:1|" in over["perplexity"][1]
    assert beside == scores(tfm(*OF_TEXT, "--json", "--stride", "24"))
    assert beside["perplexity"][0] != over["perplexity"][0]
    ratio = math.log(beside["bits_per_character"][0] / over["bits_per_character"][0])
    assert math.log(math.log(beside["perplexity"][0]) / math.log(over["perplexity"][0])) == pytest.approx(ratio)


def test_several_texts_are_published_with_the_model_they_are_of() -> None:
    Path("other").mkdir(exist_ok=True)
    Path("other/ptb.test.txt").write_bytes("\ufeff the 股票\r\n\r\n größer".encode())
    said = tfm(
        "evaluate", "--model", "runs/ptb", "--reference", TEST, "--reference", "other/ptb.test.txt", "--out", "s"
    )
    assert said.code == 0, said.err
    content = json.loads(Path("s/scores.json").read_text("utf-8"))
    assert content["split"] == TEST  # two have one name
    other = content["others"]["other/ptb.test.txt"]["metrics"]["word_perplexity"]
    assert other["signature"].startswith("unit:word|count:6|newline:counted|unit:token|count:6|")
    assert "trained" not in said.err
    again = tfm(
        "evaluate", "--model", "runs/ptb", "--reference", TEST, "--reference", "other/ptb.test.txt", "--out", "s"
    )
    assert "up to date" in again.err
    assert "perplexity by word" in again.out
    swapped = tfm(
        "evaluate", "--model", "runs/ptb", "--reference", "other/ptb.test.txt", "--reference", TEST, "--out", "s"
    )
    assert "up to date" not in swapped.err
    assert json.loads(Path("s/scores.json").read_text("utf-8"))["split"] == "other/ptb.test.txt"


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        ((*OF_TEXT, "--stride", "25"), 2, "evaluation.stride (25) exceeds the model's window (model.block = 24)"),
        ((*OF_TEXT, "--stride", "0"), 2, "evaluation.stride = 0 must be at least 1"),
        ((*OF_TEXT, "--metric", "bleu"), 2, "evaluation.metrics has no effect on the scores of a language_model"),
        ((*OF_TEXT, "--beam", "3"), 2, "give --source as well"),
        ((*OF_TEXT, "--set", "decoding.beam=3"), 2, "give --source as well"),
        ((*OF_TEXT, "--source", TEST), 65, "does not translate: remove --source"),
        (("evaluate", "--hypotheses", TEST, "--reference", TEST, "--stride", "3"), 2, "stride = 3 is for the texts of"),
        (("evaluate", "--recipe", ROOT / "recipes/demo.toml", "--stride", "3"), 2, "it is for language models"),
        (("evaluate", "--model", "runs/ptb", "--reference", "empty"), 65, "empty: is empty: there is nothing to score"),
        (("evaluate", "--model", "runs/ptb", "--reference", "none.txt"), 65, "none.txt: no such file"),
    ],
)
def test_what_has_no_meaning_is_refused(words: tuple[str, ...], code: int, problem: str) -> None:
    Path("empty").write_text("")
    refused = tfm(*words)
    assert refused.code == code, refused.err
    assert problem in " ".join(refused.err.split())
    assert len(refused.err.splitlines()) <= 4


def test_a_stride_longer_than_the_window_is_refused_before_anything_is_made() -> None:
    refused = run(evaluation__stride=25, name="refused")
    assert refused.code == 2
    assert "evaluation.stride (25) exceeds the model's window (model.block = 24)" in refused.err
    assert not Path("runs/refused").exists()
