"""Figures of language models a second time, by a plain forward pass; and what they may not hide: pieces that are
unknown, white space that no model reads, lines longer than the model."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer

from tests.cli.user import Result, tfm
from tests.meaning import scripts
from tests.meaning.campaign import Run, number, printed, settings
from tests.meaning.plain_forward import EOS, UNK, PlainLanguageModel
from tests.meaning.scripts import SCRIPTS, UNSEEN, Script
from tests.meaning.test_model_figures import assert_near, with_errors
from tests.meaning.test_scores import signed

pytestmark = [pytest.mark.slow, pytest.mark.meaning("model")]
RECIPE = """
[tokenizer]
kind = "{kind}"
vocab_size = 120
min_frequency = 1
[data]
batch_tokens = 600
train = {train}
valid = {valid}
tests = {{ test = {test}, spaced = {spaced} }}
limits = {{ max_length = 60 }}
[model]
architecture = "decoder_only"
task = "language_model"
decoder = {{ layers = 1, dim = 32, heads = 2, feed_forward_dim = 64 }}
dropout = {{ residual = 0.0, embedding = 0.0 }}
max_length = 64
[training]
max_steps = 80
precision = "fp32"
device = "cpu"
threads = 1
label_smoothing = 0.0
schedule = {{ name = "constant", peak = 0.005, warmup_steps = 10 }}
validation = {{ every_steps = 40 }}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(params=SCRIPTS.values(), ids=SCRIPTS)
def script(request: pytest.FixtureRequest) -> Script:
    return request.param  # type: ignore[no-any-return]


SPLITS = ("train", "valid", "test", "spaced")


def recipe(name: str, kind: str, *, sources: bool = False) -> Path:
    """The recipe of a model of the targets in corpora/, or of the sources as well."""
    of = {each: f'"corpora/{each}.src"' if sources else '"none"' for each in SPLITS}
    corpora = {each: f'{{ source = {of[each]}, target = "corpora/{each}.tgt" }}' for each in SPLITS}
    Path(f"{name}.toml").write_text(RECIPE.format(kind=kind, **corpora), encoding="utf-8")
    return Path(f"{name}.toml")


def write(texts: dict[str, list[str]]) -> None:
    """Texts as both sides of corpora/."""
    scripts.write_pairs(Path("corpora"), {name: [(line, line) for line in lines] for name, lines in texts.items()})


def trained(script: Script, tests: dict[str, list[str]], **changes: Any) -> tuple[Result, Run]:
    """A language model of lines of a script, and how it ended."""
    texts = {split: [target for _, target in script.pairs(size, 3)] for split, size in (("train", 200), ("valid", 30))}
    write(texts | tests)
    said = tfm("run", recipe("lines", script.kind), *settings(changes))
    return said, Run(Path("runs", changes.get("name", "lines")), said)


def test_figures_of_a_language_model(script: Script, record_property: Any) -> None:
    lines = [target for _, target in script.pairs(30, 4)] + [target + UNSEEN for _, target in script.pairs(2, 5)]
    spaced = [f"  {line}\u3000 " for line in lines]
    said, run = trained(script, {"test": lines, "spaced": spaced})
    assert said.code == 0, said.err
    model, single = (PlainLanguageModel(run.folder / "model", dtype) for dtype in (torch.float64, torch.float32))
    _, right, count = (sum(column) for column in zip(*map(model.line, lines), strict=True))
    log_probs = with_errors(*((each.line(line)[0] for line in lines) for each in (single, model)))
    unknown = sum(model.ids(line).count(model.id(UNK)) for line in lines)
    characters, words = sum(len(line) + 1 for line in lines), sum(len(line.split()) + 1 for line in lines)
    for name in ("test", "spaced"):
        metrics = run.scores[name]["metrics"]
        assert_near(metrics["perplexity"]["score"], lambda log_prob: math.exp(-log_prob / count), log_probs)
        assert_near(metrics["word_perplexity"]["score"], lambda log_prob: math.exp(-log_prob / words), log_probs)
        assert metrics["word_perplexity"]["signature"].startswith(f"unit:word|count:{words}|newline:counted|")
        assert metrics["token_accuracy"]["score"] == pytest.approx(100 * right / count, abs=150 / count)
        bits = metrics["bits_per_character"]["score"]
        assert_near(bits, lambda log_prob: -log_prob / math.log(2) / characters, log_probs)
        assert int(signed(metrics["perplexity"])["unknown"]) == unknown == 2
        assert int(signed(metrics["perplexity"])["count"]) == count
        rows = {row[0]: row[1] for row in printed(said.out, f"{name}: {len(lines)} segments")}
        for figure, label in (("perplexity", "perplexity ↓"), ("word_perplexity", "perplexity by word ↓")):
            assert number(rows[label]) == pytest.approx(metrics[figure]["score"], abs=0.005 + 1e-9)
    record_property("figures", 12)


def test_random_words_are_not_made_probable_by_being_unknown() -> None:
    """Text of which most is unknown to the tokenizer: its figures say how much of it is."""
    lines = [f"{UNSEEN}{UNSEEN} ☂☁ {target}" for _, target in SCRIPTS["Latin"].pairs(20, 6)]
    said, run = trained(SCRIPTS["Latin"], {"test": lines, "spaced": lines})
    assert said.code == 0, said.err
    for score in run.scores["test"]["metrics"].values():
        assert int(signed(score)["unknown"]) >= 2 * len(lines)
    assert "unknown" in said.err.split("scoring")[-1] or "warning" in said.err


def test_lines_longer_than_the_model(record_property: Any) -> None:
    """Each line's pieces count once, however long it is, with positions that reach on and with those that do not."""
    script = SCRIPTS["Greek"]
    long = [" ".join(target for _, target in script.pairs(30, seed)) for seed in (7, 8)]
    lines = [*long, *(target for _, target in script.pairs(10, 9))]
    for positions in ("sinusoidal", "rotary"):
        said, run = trained(script, {"test": lines, "spaced": lines}, **{"model.positions": positions})
        assert said.code == 0, said.err
        tokenizer = Tokenizer.from_file(str(run.folder / "model" / "tokenizer.json"))
        total = sum(len(tokenizer.encode(line).ids) + 1 for line in lines)
        metrics = run.scores["test"]["metrics"]
        assert int(signed(metrics["perplexity"])["count"]) in range(total, total + 2 * 20)
        assert "window" in metrics["perplexity"]["signature"] or "window" in said.err
        record_property("figures", 1)


@pytest.mark.parametrize("block", [None, 24])
def test_windows_that_overlap(script: Script, block: int | None, record_property: Any) -> None:
    """Each token once, from what stands before it in its window, by passes of the plain model over single windows."""
    long = [" ".join(target for _, target in script.pairs(12, seed)) for seed in (7, 8)]
    lines = [long[0], "", *(target + UNSEEN for _, target in script.pairs(3, 9)), long[1]]
    changes = {"model.block": block, "data.limits.empty": "keep"} if block else {"model.max_length": 24}
    said, run = trained(script, {"test": lines, "spaced": lines}, **{"data.limits.max_length": 23}, **changes)
    assert said.code == 0, said.err
    model, single = (PlainLanguageModel(run.folder / "model", dtype) for dtype in (torch.float64, torch.float32))
    by_line = [[*model.ids(line), model.id(EOS)] for line in lines]
    texts = by_line if block is None else [[token for line in by_line for token in line]]
    count, words = sum(map(len, by_line)), sum(len(line.split()) + 1 for line in lines)
    characters = sum(len(line) + 1 for line in lines)
    for stride in (24, 7, 1):
        found = tfm(
            "evaluate", "--model", run.folder, "--reference", "corpora/test.tgt", "--stride", str(stride), "--json"
        )
        assert found.code == 0, found.err
        metrics = json.loads(found.out)["metrics"]
        passes = ([each for text in texts for each in plain.strided(text, 24, stride)] for plain in (single, model))
        log_probs = with_errors(*passes)
        assert_near(metrics["perplexity"]["score"], lambda log_prob: math.exp(-log_prob / count), log_probs)
        assert_near(metrics["word_perplexity"]["score"], lambda log_prob: math.exp(-log_prob / words), log_probs)
        bits = metrics["bits_per_character"]["score"]
        assert_near(bits, lambda log_prob: -log_prob / math.log(2) / characters, log_probs)
        assert int(signed(metrics["perplexity"])["count"]) == count
        assert int(signed(metrics["perplexity"]).get("stride", 24)) == stride
        record_property("figures", 5)


def test_figures_by_units_of_the_text_compare_across_tokenizers() -> None:
    """Of two models with other pieces perplexity by token says nothing; by word and character it does."""
    runs = []
    lines = [target for _, target in SCRIPTS["Latin"].pairs(20, 6)]
    for name, kind in (("chars", "char"), ("pieces", "bpe")):
        said, _ = trained(SCRIPTS["Latin"], {"test": lines, "spaced": lines}, **{"name": name, "tokenizer.kind": kind})
        assert said.code == 0, said.err
        runs.append(f"runs/{name}")
    found = json.loads(tfm("compare", *runs, "--json").out)["runs"]
    of_second = {name: each["comparable"] for name, each in found[1]["figures"].items()}
    assert not of_second["test.perplexity"]
    assert of_second["test.bits_per_character"]
    assert of_second["test.word_perplexity"]


def test_blank_lines_do_not_end_a_masked_language_model() -> None:
    lines = [line for _, target in SCRIPTS["Hangul"].pairs(60, 3) for line in (target, "")]
    write(dict.fromkeys(SPLITS, lines))
    changes = {"data.limits.empty": "keep", "model.architecture": "encoder_only", "tokenizer.shared": False}
    changes |= {"model.task": "masked_language_model", "data.batch_tokens": 64, "training.max_steps": 30}
    file = recipe("blank", "word", sources=True)
    file.write_text(file.read_text("utf-8").replace("decoder =", "encoder ="), encoding="utf-8")
    said = tfm("run", file, *settings(changes))
    assert said.code == 0, said.err
    scores = Run(Path("runs/blank"), said).scores["test"]["metrics"]
    assert all(math.isfinite(each["score"]) for each in scores.values())
