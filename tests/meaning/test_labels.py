"""Labels and tags in ten scripts, in capitals, with marks, seen once: what is learned, given, counted and printed."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import tfm, write_lines
from tests.meaning import plain_scores as plain
from tests.meaning.campaign import Run, number, printed, run, settings
from tests.meaning.scripts import SCRIPTS, Script

pytestmark = [pytest.mark.slow, pytest.mark.meaning("labels")]
RECIPE = """
name = "labels"
[tokenizer]
kind = "{kind}"
vocab_size = 120
min_frequency = 2
lowercase = true
[data]
batch_tokens = 400
train = {{ source = "train.src", target = "train.tgt" }}
valid = {{ source = "valid.src", target = "valid.tgt" }}
[data.tests.test]
source = "test.src"
target = "test.tgt"
[model]
architecture = "encoder_only"
task = "{task}"
encoder = {{ layers = 1, dim = 32, heads = 2, feed_forward_dim = 32 }}
dropout = {{ residual = 0.0, embedding = 0.0 }}
max_length = 300
[training]
max_steps = 150
precision = "fp32"
device = "cpu"
threads = 1
label_smoothing = 0.0
schedule = {{ name = "linear", peak = 0.01, warmup_steps = 5 }}
validation = {{ every_steps = 50 }}
"""
SIZES = {"train": 240, "valid": 40, "test": 60}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(params=SCRIPTS.values(), ids=SCRIPTS)
def script(request: pytest.FixtureRequest) -> Script:
    return request.param  # type: ignore[no-any-return]


def names_of(script: Script) -> list[str]:
    """Four labels: of the script in capitals and not, one that NFKC would change, one in Turkish."""
    word, other = list(script.words)[:2]
    return [word.upper(), f"{other}²", "İYİ", "Neg-１"]


def write(script: Script, task: str) -> dict[str, list[str]]:
    """Corpora in the working folder: the first word of a sentence says its label, or each word its own tag; one pair
    in ten is labelled at random, so that nothing can be right throughout. The targets by split."""
    draw, names, targets = random.Random(5), names_of(script), {}
    words = list(script.words)
    for split, size in SIZES.items():
        sources, found = [], []
        for _ in range(size):
            chosen = draw.choices(words, k=draw.randint(2, 5))
            tags = [names[words.index(word) % len(names)] for word in chosen]
            if draw.random() < 0.1:
                tags = draw.choices(names, k=len(tags))
            sources.append(" ".join(chosen))
            found.append(" ".join(tags) if task == "tagging" else tags[0])
        write_lines(Path(f"{split}.src"), sources)
        write_lines(Path(f"{split}.tgt"), found)
        targets[split] = found
    return targets


def append(split: str, source: str, target: str) -> None:
    """One more pair of a split."""
    for side, line in (("src", source), ("tgt", target)):
        with Path(f"{split}.{side}").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def trained(script: Script, task: str, **changes: Any) -> tuple[Run, dict[str, list[str]]]:
    targets = write(script, task)
    kind = "word" if task == "tagging" else script.kind
    recipe = Path("labels.toml")
    recipe.write_text(RECIPE.format(kind=kind, task=task), encoding="utf-8")
    return run(recipe, changes), targets


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_figures_of_labels(script: Script, task: str, record_property: Any) -> None:
    done, targets = trained(script, task)
    given_lines = done.lines("translations/test.txt")
    given = [label for line in given_lines for label in line.split()]
    wanted = [label for line in targets["test"] for label in line.split()]
    assert len(given) == len(wanted)
    assert set(given) <= set(names_of(script))
    found = done.scores["test"]
    metrics = {name: each["score"] for name, each in found["metrics"].items()}
    mine = {
        "accuracy": plain.accuracy(given, wanted),
        "macro_f1": plain.macro_f1(given, wanted),
        "exact_match": plain.exact_match(given_lines, targets["test"]),
    }
    assert metrics == pytest.approx(mine)
    assert mine["accuracy"] > 60
    rows = {row[0]: row[1] for row in printed(done.said.out, f"test: {SIZES['test']} segments")}
    assert number(rows["accuracy"]) == pytest.approx(mine["accuracy"], abs=0.005 + 1e-9)
    assert number(rows["macro F1"]) == pytest.approx(mine["macro_f1"], abs=0.005 + 1e-9)
    check_by_class(found["labels"], done.said.out, given, wanted)
    check_validation(done)
    record_property("figures", 6 + 4 * len({*given, *wanted}))


def check_by_class(found: Any, said: str, given: list[str], wanted: list[str]) -> None:
    """Precision, recall, F1 and support of each label, and which was taken for which."""
    mine = plain.by_class(given, wanted)
    assert set(found["by_label"]) == set(mine)
    rows = {row[0]: row for row in printed(said, "test: labels")}
    for label, shares in mine.items():
        each, wanted_shares = found["by_label"][label], [100 * share for share in shares]
        assert [each["precision"], each["recall"], each["f1"]] == pytest.approx(wanted_shares)
        assert each["support"] == wanted.count(label)
        assert [number(cell) for cell in rows[label][1:4]] == pytest.approx(wanted_shares, abs=0.005 + 1e-9)
    pairs = list(zip(given, wanted, strict=True))
    confusion = {(one, other): count for other, row in found["confusion"].items() for one, count in row.items()}
    assert confusion == {pair: pairs.count(pair) for pair in set(pairs)}


def check_validation(done: Run) -> None:
    """Accuracy of the validation split in training is accuracy of the same lines as `tfm evaluate` has it."""
    validation = done.json("model/manifest.json")["figures"]["validation"]
    said = tfm("evaluate", "--model", done.folder, "--source", "valid.src", "--reference", "valid.tgt", "--json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["metrics"]["accuracy"]["score"] == pytest.approx(100 * validation["accuracy"])


def test_macro_f1_is_over_the_labels_of_both_sides(record_property: Any) -> None:
    """Labels given that no reference has count, as scikit-learn has it: random lines, of labels of random sets."""
    draw = random.Random(6)
    for _ in range(20):
        names = draw.sample("a b c d e f g h".split(), 6)
        wanted = [draw.choice(names[:4]) for _ in range(12)]
        given = [one if draw.random() < 0.5 else draw.choice(names[2:]) for one in wanted]
        files = write_lines(Path("given"), given), write_lines(Path("wanted"), wanted)
        words = ("--metric", "macro_f1", "--metric", "accuracy", "--json")
        said = tfm("evaluate", "--hypotheses", files[0], "--reference", files[1], *words)
        assert said.code == 0, said.err
        found = {name: each["score"] for name, each in json.loads(said.out)["metrics"].items()}
        mine = {"macro_f1": plain.macro_f1(given, wanted), "accuracy": plain.accuracy(given, wanted)}
        assert found == pytest.approx(mine)
        record_property("figures", 2)


def test_a_label_seen_once_is_a_label(record_property: Any) -> None:
    """min_frequency is of text: a label of one occurrence has a probability, and is given for its text."""
    targets = write(SCRIPTS["Latin"], "classification")
    append("train", "fünf fünf fünf fünf fünf fünf fünf", "Einmalig")
    recipe = Path("labels.toml")
    recipe.write_text(RECIPE.format(kind="word", task="classification"), encoding="utf-8")
    done = run(recipe, {"training.max_steps": 400})
    said = tfm("translate", done.folder, stdin="fünf fünf fünf fünf fünf fünf fünf\n")
    assert said.out == "Einmalig\n"
    pieces = json.loads((done.folder / "tokenizer" / "target.json").read_text("utf-8"))["model"]["vocab"]
    assert {piece.strip() for piece in pieces} == {*targets["train"], "Einmalig", "<pad>", "<unk>", "<s>", "</s>"}
    record_property("labels", 1)


def test_labels_with_spaces_are_one_label_each(record_property: Any) -> None:
    """With "New York" taken for "New Delhi" one of one labels is wrong, not one of two."""
    names = ["New York", "New Delhi", "São Paulo"]
    draw, targets = random.Random(3), {}
    words = list(SCRIPTS["Latin"].words)
    for split, size in SIZES.items():
        sources = [" ".join(draw.choices(words, k=3)) for _ in range(size)]
        found = [draw.choice(names) if draw.random() < 0.2 else names[words.index(s.split()[0]) % 3] for s in sources]
        write_lines(Path(f"{split}.src"), sources)
        write_lines(Path(f"{split}.tgt"), found)
        targets[split] = found
    Path("labels.toml").write_text(RECIPE.format(kind="word", task="classification"), encoding="utf-8")
    done = run(Path("labels.toml"))
    given = done.lines("translations/test.txt")
    metrics = {name: each["score"] for name, each in done.scores["test"]["metrics"].items()}
    assert 0 < metrics["accuracy"] < 100
    assert metrics["accuracy"] == pytest.approx(plain.accuracy(given, targets["test"]))
    assert metrics["macro_f1"] == pytest.approx(plain.macro_f1(given, targets["test"]))
    record_property("figures", 2)


def test_probabilities_of_labels(record_property: Any) -> None:
    """`--n-best` on a classifier gives each label once, the likeliest first; their probabilities add up to 1."""
    done, targets = trained(SCRIPTS["Hebrew"], "classification")
    names = set(targets["train"])
    said = tfm("translate", done.folder, "test.src", "--n-best", str(len(names)))
    assert said.code == 0, said.err
    best = done.lines("translations/test.txt")
    rows: dict[str, list[tuple[float, str]]] = {}
    for line, score, label in (row.split("\t") for row in said.out.splitlines()):
        rows.setdefault(line, []).append((float(score), label))
    assert len(rows) == SIZES["test"]
    for place, found in enumerate(rows.values()):
        assert found == sorted(found, key=lambda each: -each[0])
        assert {label for _, label in found} == names
        assert found[0][1] == best[place]
        assert math.fsum(math.exp(log_prob) for log_prob, _ in found) == pytest.approx(1.0, abs=0.01)
    record_property("lines", len(rows))


def test_words_are_those_of_the_corpus(record_property: Any) -> None:
    """Tags are as many as the words between spaces, whatever a tokenizer makes of them."""
    strange = ["a´b", "\ufdfa", "cat-日本", "soft\u00adhyphen", "don't", "１２"]
    done, _ = trained(SCRIPTS["Latin"], "tagging", **{"tokenizer.normalization": "nfkc"})
    for word in strange:
        said = tfm("translate", done.folder, stdin=f"{word} fünf\n")
        assert said.code == 0, said.err
        assert len(said.out.split()) == 2, (word, said.out)
    record_property("words", len(strange))


def test_strange_words_in_training_do_not_refuse_a_corpus() -> None:
    write(SCRIPTS["Greek"], "tagging")
    for split in SIZES:
        append(split, "cat-日本 a´b soft\u00adhyphen", "NOUN VERB NOUN")
    Path("labels.toml").write_text(RECIPE.format(kind="wordpiece", task="tagging"), encoding="utf-8")
    said = tfm("run", "labels.toml", *settings({"tokenizer.normalization": "nfkc", "training.max_steps": 20}))
    assert said.code == 0, said.err
    given = Path("runs/labels/translations/test.txt").read_text("utf-8").splitlines()
    assert len(given[-1].split()) == 3
