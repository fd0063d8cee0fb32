"""Every task from text to scores, as a user runs it; each learns what little there is to learn."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

import tfm as tfm_in_python
from tests.cli.user import Result, tfm
from tfm.data.dataset.store import load_dataset
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.inference.numpy_labels import NumpyLabeller
from tfm.pipeline.inference.numpy_translation import load_small_model

ANIMALS, TOOLS = "cat dog horse owl bee".split(), "saw drill hammer file rasp".split()
RECIPE = """
[tokenizer]
kind = "word"
vocab_size = 60
min_frequency = 1

[data]
batch_tokens = 256
train = {{ {corpus}, path = "train.tsv" }}
valid = {{ {corpus}, path = "test.tsv" }}
tests = {{ main = {{ {corpus}, path = "test.tsv" }} }}

[model]
encoder = {{ layers = 1, dim = 32, heads = 2, feed_forward_dim = 32 }}
decoder = {{ layers = 1, dim = 32, heads = 2, feed_forward_dim = 32 }}
dropout = {{ residual = 0.0, embedding = 0.0 }}
max_length = 300

[training]
max_steps = 120
precision = "fp32"
label_smoothing = 0.0

[training.schedule]
name = "cosine"
peak = 0.01
warmup_steps = 10
"""
CORPUS = 'format = "tsv", source = {source}, target = "{target}"'
CLASSES = ('model.architecture="encoder_only"', 'model.task="classification"', "tokenizer.shared=false")
TAGS = ('model.architecture="encoder_only"', 'model.task="tagging"', "tokenizer.shared=false")
MASKED = ('model.architecture="encoder_only"', 'model.task="masked_language_model"', "tokenizer.shared=false")
LINES = ('model.architecture="decoder_only"', 'model.task="language_model"')
SPANS = ('model.task="span_corruption"', "tokenizer.sentinels=20", "tokenizer.vocab_size=80")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a corpus: sentences, what kind of thing each is of, and a tag a word."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(3)
    for name, size in (("train", 300), ("test", 40)):
        rows = ["sentence\tkind\ttags\n"]
        for _ in range(size):
            kind, things = draw.choice((("animal", ANIMALS), ("tool", TOOLS)))
            words = ["the", draw.choice(things), "is", draw.choice(("old", "new"))]
            rows.append(f"{' '.join(words)}\t{kind}\tDET NOUN VERB ADJ\n")
        Path(f"{name}.tsv").write_text("".join(rows), encoding="utf-8")
    return tmp_path


def run(name: str, settings: tuple[str, ...], source: str | None = "sentence", target: str = "kind") -> Result:
    corpus = CORPUS.format(source=json.dumps(source or "none"), target=target)
    Path(f"{name}.toml").write_text(RECIPE.format(corpus=corpus), encoding="utf-8")
    words = [word for setting in settings for word in ("--set", setting)]
    return tfm("run", f"{name}.toml", "--device", "cpu", *words)


def scores(name: str) -> dict[str, Any]:
    found = json.loads(Path(f"runs/{name}/scores/scores.json").read_text("utf-8"))
    return {metric: entry["score"] for metric, entry in found["metrics"].items()}


@pytest.mark.parametrize(
    ("settings", "target", "line"),
    [(CLASSES, "kind", "tool\n"), (TAGS, "tags", "DET NOUN VERB ADJ\n")],
    ids=["classification", "tagging"],
)
@pytest.mark.few(1)
def test_labels_are_learned_given_and_scored(settings: tuple[str, ...], target: str, line: str) -> None:
    done = run("labels", settings, target=target)
    assert done.code == 0, done.err
    assert scores("labels") == {"accuracy": 100.0, "macro_f1": 100.0, "exact_match": 100.0}
    assert "[5/5] evaluate" in done.err
    said = tfm("translate", "runs/labels", "--device", "cpu", stdin="the drill is old\n\n")
    assert said.out == line + "\n"
    assert isinstance(load_small_model(Path("runs/labels/model"), DecodingConfig()), NumpyLabeller)
    texts, model = ["the drill is old", ""], tfm_in_python.load("runs/labels", device="cpu")
    if target == "kind":
        assert model.classify(texts) == said.out.split("\n")[:2]
    else:
        assert [" ".join(tags) for tags in model.tag(texts)] == said.out.split("\n")[:2]
    Path("source").write_text("the owl is new\nthe file is old\n", encoding="utf-8")
    Path("reference").write_text(line if target == "tags" else "animal\n", encoding="utf-8")
    with Path("reference").open("a", encoding="utf-8") as file:
        file.write(line)
    scored = tfm("evaluate", "--model", "runs/labels", "--source", "source", "--reference", "reference", "--json")
    assert scored.code == 0, scored.err
    assert json.loads(scored.out)["metrics"]["accuracy"]["score"] == 100.0
    labels_of_files(target)
    report = Path("runs/labels/scores/report.html").read_text("utf-8")
    assert "accuracy of 100" in report
    assert "Confusion matrix on main" in report
    assert "<th>BLEU" not in report
    (probabilities if target == "kind" else no_second_best)()
    for flags, what in ((("--prefix", "animal"), "prefixes"), (("--forced", "source"), "forced words")):
        refused = tfm("translate", "runs/labels", "--device", "cpu", *flags, stdin="the drill is old\n")
        assert (refused.code, refused.out) == (2, "")
        assert f"the model gives labels, which take no {what}" in " ".join(refused.err.split())
    for flags, key in (
        (("--beam", "5"), "beam"),
        (("--strategy", "sample"), "strategy"),
        (("--max-length", "3"), "max_length"),
    ):
        refused = tfm("translate", "runs/labels", "--device", "cpu", *flags, stdin="the drill is old\n")
        assert (refused.code, refused.out) == (2, "")
        assert f"decoding.{key} has no effect: this model predicts labels" in " ".join(refused.err.split())


def labels_of_files(target: str) -> None:
    """Labels in files, scored as the model's own: a classifier's are whole lines, a tagger's words."""
    Path("wanted").write_text("a kind of animal\n", encoding="utf-8")
    Path("given").write_text("a kind of tool\n", encoding="utf-8")
    files = ("--model", "runs/labels", "--hypotheses", "given", "--reference", "wanted", "--json")
    found = json.loads(tfm("evaluate", *files).out)["metrics"]
    assert list(found) == ["accuracy", "macro_f1", "exact_match"]
    assert found["accuracy"]["score"] == (0 if target == "kind" else 75)
    refused = tfm("evaluate", *files, "--metric", "accuracy", "--lowercase")
    assert (refused.code, refused.out) == (2, "")
    assert "lowercase has no effect on accuracy" in " ".join(refused.err.split())
    assert tfm("evaluate", *files, "--metric", "accuracy", "--metric", "exact_match", "--lowercase").code == 0


def probabilities() -> None:
    """A classifier gives its labels, the likeliest first, with the logarithms of their probabilities."""
    asked = ("translate", "runs/labels", "--device", "cpu", "--n-best", "9")
    rows = [line.split("\t") for line in tfm(*asked, stdin="the drill is old\n\nthe owl is new\n").out.splitlines()]
    assert [(number, text) for number, _, text in rows] == [
        *(("1", "tool"), ("1", "animal"), ("2", ""), ("3", "animal"), ("3", "tool"))
    ]
    # what is left is of control tokens, which are no labels
    assert 0.99 < sum(math.exp(float(score)) for number, score, _ in rows if number == "1") < 1.000001
    found = tfm_in_python.load("runs/labels", device="cpu").probabilities(["the drill is old", "", "the owl is new"])
    assert [list(each) for each in found] == [["tool", "animal"], [], ["animal", "tool"]]
    printed = [math.exp(float(score)) for number, score, _ in rows if number == "1"]
    assert list(found[0].values()) == pytest.approx(printed, abs=2e-6)
    (entry,) = map(json.loads, tfm(*asked, "--jsonl", stdin="the drill is old\n").out.splitlines())
    assert [each["text"] for each in entry["translations"]] == ["tool", "animal"]
    assert [each["log_prob"] for each in entry["translations"]] == pytest.approx(
        [float(row[1]) for row in rows[:2]], abs=1e-5
    )
    done = run("labels", (*CLASSES, "decoding.n_best=7"))
    assert done.code == 0, done.err
    first = json.loads(Path("runs/labels/translations/main.jsonl").read_text("utf-8").splitlines()[0])
    assert sorted(each["text"] for each in first["translations"]) == ["animal", "tool"]


def no_second_best() -> None:
    refused = tfm("translate", "runs/labels", "--device", "cpu", "--n-best", "2", stdin="the drill is old\n")
    assert refused.code == 2
    assert "a tagger returns only the most probable tag" in refused.err
    refused = run("labels", (*TAGS, "decoding.n_best=2"), target="tags")
    assert refused.code == 2
    assert "decoding.n_best (2): a tagger" in " ".join(refused.err.split())


NAMES = ("Good", "good", "ﬁne", "²", "Плохо", "плохо", "جيد", "悪い", "<s>", "Ångström")


@pytest.mark.parametrize(("settings", "per_line"), [(CLASSES, 1), (TAGS, 2)], ids=["classification", "tagging"])
@pytest.mark.few(1)
def test_labels_are_names_in_any_script_and_case_however_rare(settings: tuple[str, ...], per_line: int) -> None:
    def row(source: str, target: str) -> str:
        return "\t".join(" ".join([text] * per_line) for text in (source, target)) + "\n"

    names = [*NAMES, "New York", "New Jersey"] if per_line == 1 else NAMES
    rows = [row(f"Word{number}", name) for number, name in enumerate(names)]
    Path("train.tsv").write_text("".join(["sentence\tkind\n", *rows * 20, row("Word0", "Once")]), "utf-8")
    Path("test.tsv").write_text("".join(["sentence\tkind\n", *rows, row("Word1", "gOOD")]), "utf-8")
    text = ("tokenizer.lowercase=true", "tokenizer.normalization=nfkc", "tokenizer.min_frequency=2")
    done = run("names", (*settings[:2], *text, "tokenizer.vocab_size=16", "training.max_steps=100"))
    assert done.code == 0, done.err
    said = (
        f"{'1 label of the main split is' if per_line == 1 else '2 labels of the main split are'} not in the training"
    )
    assert f"{said} data: 'gOOD' ({per_line}); each counts as wrong" in warnings_of(done)
    right = len(names) / (len(names) + 1)
    assert scores("names")["accuracy"] == pytest.approx(100 * right)
    validation = json.loads(Path("runs/names/model/manifest.json").read_text("utf-8"))["figures"]["validation"]
    assert validation["accuracy"] == pytest.approx(right)
    pieces = json.loads(Path("runs/names/model/target.json").read_text("utf-8"))["model"]["vocab"]
    assert [piece[1:] for piece in pieces if pieces[piece] >= 4] == [*sorted(names), "Once"]
    said = tfm("translate", "runs/names", "--device", "cpu", stdin=" ".join(["WORD3"] * per_line) + "\n")
    assert said.out == " ".join([names[3]] * per_line) + "\n"
    Path("source").write_text(" ".join(["Word3"] * per_line) + "\n" + "Word5 " * 400 + "\n", "utf-8")
    Path("reference").write_text(" ".join([names[3]] * per_line) + "\n" + " ".join(["Bad"] * 400) + "\n", "utf-8")
    scored = tfm("evaluate", "--model", "runs/names", "--source", "source", "--reference", "reference", "--json")
    units, lost = (2, "") if per_line == 1 else (402, ": 101 words have no tag, and count as wrong")
    assert json.loads(scored.out)["metrics"]["accuracy"]["score"] == pytest.approx(100 * per_line / units)
    assert f"longer than the 299 pieces that the model reads, and was cut{lost}" in warnings_of(scored)
    assert "of the references" in warnings_of(scored)


def warnings_of(done: Result) -> str:
    """What was said, without the breaks of lines that a terminal's width makes."""
    return " ".join(done.err.split())


@pytest.mark.few(1)
@pytest.mark.parametrize("block", [None, 16])
def test_a_language_model_is_scored_by_how_probable_it_finds_texts(block: int | None) -> None:
    settings = LINES if block is None else (*LINES, f"model.block={block}", "data.batch_tokens=64")
    done = run("texts", settings, source=None, target="sentence")
    assert done.code == 0, done.err
    assert "[4/4] evaluate" in done.err
    found = scores("texts")
    # of five things of two kinds and two qualities a line is one of 20; the rest is certain
    assert 20 ** (1 / 5) * 0.98 < found["perplexity"] < 2.1
    assert found["bits_per_character"] > 0
    refused = tfm("translate", "--recipe", "texts.toml", *(x for each in settings for x in ("--set", each)))
    assert refused.code == 2
    assert 'model.task = "language_model" has no stage `tfm translate`' in refused.err
    refused = tfm("translate", "runs/texts", stdin="the\n")
    assert refused.code == 65
    assert "was trained for language_model and does not translate" in refused.err


@pytest.mark.slow
def test_a_decoder_alone_translates() -> None:
    settings = ('model.architecture="decoder_only"', "decoding.beam=2", "training.max_steps=250")
    done = run("decoder", settings, target="tags")
    assert done.code == 0, done.err
    assert scores("decoder")["exact_match"] == 100.0


def test_a_decoder_that_learned_texts_goes_on_to_translate() -> None:
    texts = run("lm", (*LINES, "training.max_steps=4"), source=None, target="sentence")
    assert texts.code == 0, texts.err
    for name in ("train", "test"):
        rows = Path(f"{name}.tsv").read_text("utf-8").splitlines()[1:]
        for side, column in (("de", 0), ("en", 0)):
            lines = "".join(row.split("\t")[column] + "\n" for row in rows)
            Path(f"{name}.{side}").write_text(lines, encoding="utf-8")
    pairs = ("--train", "train.de", "train.en", "--valid", "test.de", "test.en", "--test", "test.de", "test.en")
    wanted = ("--set", "model.task=translation", "--set", "model.architecture=decoder_only", "--max-steps", "2")
    start = ("--init-from", "runs/lm", "--device", "cpu", *wanted, "--set", "training.schedule.warmup_steps=1")
    made = tfm("tokenize", "train.de", "--kind", "char", "--out", "other/tokenizer")
    assert made.code == 0, made.err
    made = tfm("preprocess", *pairs, "--tokenizer", "other/tokenizer", "--out", "other/dataset")
    assert made.code == 0, made.err
    refused = tfm("train", "--data", "other/dataset", "--out", "other", *start)
    assert refused.code == 65
    advice = "tfm preprocess --tokenizer runs/lm/tokenizer"
    assert advice in refused.err
    made = tfm("preprocess", *pairs, *advice.split()[2:], "--out", "tuned/dataset")  # which can be followed
    assert made.code == 0, made.err
    trained = tfm("train", "--data", "tuned/dataset", "--out", "tuned", *start)
    assert trained.code == 0, trained.err
    assert "begins with all weights of runs/lm/model (language_model)" in trained.err
    assert "anew" not in trained.err
    assert json.loads(Path("tuned/model/config.json").read_text("utf-8"))["decoder"]["dim"] == 32


@pytest.mark.slow
def asked_of_masks() -> None:
    """A thing, and its age, are found from their places; the command and Python say the same."""
    text, model = "the [MASK] is [MASK]", tfm_in_python.load("runs/masked", device="cpu")
    said = tfm("translate", "runs/masked", "--device", "cpu", "--n-best", "3", stdin=f"{text}\n")
    assert said.code == 0, said.err
    rows = [line.split("\t") for line in said.out.splitlines()]
    assert [row[:2] for row in rows] == [["1", mask] for mask in "111222"]
    assert {row[3].strip("␣") for row in rows[:3]} <= {*ANIMALS, *TOOLS}
    assert {row[3].strip("␣") for row in rows[3:5]} == {"old", "new"}
    for unit in ("piece", "word"):
        told = tfm("translate", "runs/masked", "--device", "cpu", "--unit", unit, "--jsonl", stdin=f"{text}\n")
        found = model.fill(text, unit=unit)  # type: ignore[arg-type]
        assert json.loads(told.out) == {"source": text, "masks": [[vars(each) for each in mask] for mask in found]}
    for flags in (("--beam", "3"), ("--out", "there"), ("--prefix", "the")):
        refused = tfm("translate", "runs/masked", "--device", "cpu", *flags, stdin=f"{text}\n")
        assert (refused.code, refused.out) == (2, "")
        assert "this model predicts what [MASK] hides" in " ".join(refused.err.split())


@pytest.mark.slow
def test_an_encoder_is_trained_on_masked_texts_and_then_on_labels() -> None:
    masked = run("masked", (*MASKED, "tokenizer.target_kind=word"))
    assert masked.code == 0, masked.err
    assert scores("masked")["token_accuracy"] > 30
    asked_of_masks()
    Path("some.txt").write_text("the drill is old\n\nthe red lamp is new\n", encoding="utf-8")
    of_text = tfm("evaluate", "--model", "runs/masked", "--reference", "some.txt", "--device", "cpu", "--json")
    assert of_text.code == 0, of_text.err
    assert json.loads(of_text.out)["metrics"].keys() == {"perplexity", "token_accuracy"}
    refused = tfm("evaluate", "--model", "runs/masked", "--reference", "some.txt", "--stride", "3")
    assert refused.code == 2
    assert "evaluation.stride has no effect on the scores of a masked_language_model model" in refused.err
    taken = "tokenizer.source_from=runs/masked/tokenizer"
    tuned = run("tuned", (*CLASSES, taken, "training.init_from=runs/masked/model", "training.max_steps=60"))
    assert tuned.code == 0, tuned.err
    assert "begins with the encoder of runs/masked/model (masked_language_model)" in tuned.err
    assert scores("tuned")["accuracy"] == 100.0
    same = (Path(f"runs/{name}/tokenizer/source.json").read_bytes() for name in ("masked", "tuned"))
    assert next(same) == next(same)


@pytest.mark.slow
def test_an_encoder_and_decoder_are_trained_on_hidden_spans_and_then_on_labels_and_on_translation() -> None:
    spans = run("spans", (*SPANS, "data.batch_tokens=128"), None, "sentence")
    assert spans.code == 0, spans.err
    assert scores("spans")["token_accuracy"] > 60  # two of three targets are a sentinel and an end
    report = json.loads(Path("runs/spans/scores/scores.json").read_text("utf-8"))
    signature = report["metrics"]["perplexity"]["signature"]
    assert signature.startswith(
        "unit:hidden-token|count:840|end:counted|sentinels:counted|hidden:0.15-in-spans-of-3|draws:7"
    )
    refused = tfm("translate", "runs/spans", "the drill is old")
    assert refused.code == 65
    assert "was trained for span_corruption and does not translate: it is for starting other trainings" in refused.err
    shown = tfm("attend", "runs/spans", "the drill is old", "--out", "a.html")
    assert shown.code == 2
    assert "was trained for span_corruption: `tfm attend` shows the models that start from it" in shown.err
    Path("some.txt").write_text("the drill is old\n\nthe red lamp is new <extra_id_0>\n", encoding="utf-8")
    of_text = tfm("evaluate", "--model", "runs/spans", "--reference", "some.txt", "--device", "cpu", "--json")
    assert of_text.code == 0, of_text.err
    assert "unknown-in-text:3" in of_text.out  # red, lamp, and what looks like a control token
    first, still = "training.init_from=runs/spans/model", "training.max_steps=60"
    tuned = run("tuned", (*CLASSES, "tokenizer.source_from=runs/spans/tokenizer", first, still))
    assert tuned.code == 0, tuned.err
    assert (
        "begins with the encoder of runs/spans/model (span_corruption); its head is initialized at random" in tuned.err
    )
    assert scores("tuned")["accuracy"] == 100.0
    taken = ("model.task=translation", "tokenizer.file=runs/spans/tokenizer/tokenizer.json", first, still)
    recipe = Path("spans.toml").read_text("utf-8").replace('source = "none"', 'source = "sentence"')
    learned = ('kind = "word"', "vocab_size = 60", "min_frequency = 1")
    Path("spans.toml").write_text("\n".join(line for line in recipe.splitlines() if line not in learned), "utf-8")
    Path("spans.toml").rename("copied.toml")
    copied = tfm("run", "copied.toml", "--device", "cpu", *(word for each in taken for word in ("--set", each)))
    assert copied.code == 0, copied.err
    assert "begins with all weights of runs/spans/model (span_corruption)" in copied.err
    assert "anew" not in copied.err


def test_an_encoder_with_another_tokenizer_is_refused() -> None:
    assert run("masked", (*MASKED, "training.max_steps=2")).code == 0
    refused = run("tuned", (*CLASSES, "tokenizer.vocab_size=12", "training.init_from=runs/masked/model"))
    assert refused.code == 65
    assert 'tokenizer.source_from = "runs/masked/model"' in refused.err


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (('model.architecture="encoder_only"',), 'is for "masked_language_model" or'),
        (('model.task="tagging"',), 'architecture = "transformer" is for "translation" or "span_corruption", not'),
        (SPANS[:1], "puts sentinels in place of spans: set tokenizer.sentinels = 100"),
        ((*SPANS, "tokenizer.shared=false"), "set shared = true"),
        ((*SPANS, "model.span_corruption.share=0.6"), "share = 0.6 must be at most 0.5"),
        (("model.span_corruption.mean_length=20",), 'it is for task = "span_corruption"'),
        (("tokenizer.sentinels=60",), "leave too little of vocab_size (60)"),
        ((*CLASSES, "model.block=8"), 'block is for task = "language_model"'),
        ((*LINES, "model.block=400"), "block (400) exceeds max_length (300)"),
        (
            (*CLASSES, "training.layout=flat"),
            'layout = "flat" is for translation and language_model and span_corruption',
        ),
        ((*CLASSES, "training.early_stopping.metric=bleu"), "there are no translations"),
        (('model.architecture="decoder_only"', "tokenizer.shared=false"), "needs one vocabulary"),
        (("tokenizer.target_kind=word",), "set shared = false"),
        ((*CLASSES[:2], "tokenizer.shared=true"), "remove tokenizer.shared, or set it to false"),
        ((*TAGS, "tokenizer.target_kind=bpe"), "labels are names, in a vocabulary of their own, never split"),
    ],
)
def test_what_does_not_combine_is_refused_before_any_work(settings: tuple[str, ...], problem: str) -> None:
    refused = run("wrong", settings)
    assert refused.code == 2
    assert problem in refused.err
    assert not Path("runs").exists()


EVERY_TASK = pytest.mark.parametrize(
    ("settings", "source", "target"),
    [
        (("training.validation.bleu=false",), "sentence", "tags"),
        (LINES, None, "sentence"),
        ((*LINES, "model.block=16", "data.batch_tokens=64"), None, "sentence"),
        ((*MASKED, "tokenizer.target_kind=word"), "sentence", "sentence"),
        (SPANS, None, "sentence"),
        (CLASSES, "sentence", "kind"),
        (TAGS, "sentence", "tags"),
        (('model.architecture="skip_gram"', 'model.task="word_vectors"', "model.embedding_dim=8"), None, "sentence"),
    ],
    ids=["translation", "texts", "windows", "masked", "spans", "classification", "tagging", "word_vectors"],
)


def run_task(settings: tuple[str, ...], source: str | None, target: str, *flags: str) -> Result:
    """A short run of the recipe task.toml, without the tables that its architecture has no use for."""
    corpus = CORPUS.format(source=json.dumps(source or "none"), target=target)
    recipe = RECIPE.format(corpus=corpus)
    unused = {"skip_gram": ("encoder =", "decoder =", "dropout ="), "decoder_only": ("encoder =",)}
    for architecture, starts in unused.items():
        if any(architecture in setting for setting in settings):
            recipe = "\n".join(line for line in recipe.splitlines() if not line.startswith(starts))
    Path("task.toml").write_text(recipe, encoding="utf-8")
    words = [word for setting in (*settings, "training.max_steps=12") for word in ("--set", setting)]
    done = tfm("run", "task.toml", "--device", "cpu", *flags, *words)
    assert done.code == 0, done.err
    return done


@pytest.mark.slow
@EVERY_TASK
def test_every_task_is_cross_validated(settings: tuple[str, ...], source: str | None, target: str) -> None:
    done = run_task(settings, source, target, "--folds", "2", "--json")
    (found,) = json.loads(done.out)
    assert sum(fold["examples"] for fold in found["folds"]) == 300
    for number in (1, 2):
        data = load_dataset(Path(f"runs/task-fold-{number}/dataset"))
        assert len(data.train) + len(data.valid) == 300
        assert data.valid.texts()[0 if source else 1]
    assert 0 < found["loss"]["mean"] < 6
    assert not list(Path("runs").glob("*/scores"))


@pytest.mark.slow
@EVERY_TASK
def test_the_tests_of_every_task_are_scored_once(settings: tuple[str, ...], source: str | None, target: str) -> None:
    run_task(settings, source, target, "--set", "evaluation.tests=final")
    assert not Path("runs/task/scores").exists()
    done = tfm("evaluate", "--final", "runs/task", "--device", "cpu")
    assert done.code == 0, done.err
    assert scores("task")
    assert len(Path("runs/ledger.jsonl").read_text("utf-8").splitlines()) == 1


@pytest.mark.slow
def test_test_sets_with_as_many_of_each_label_are_two() -> None:
    """One of other sentences was not scored before, and the same sentences in another order were."""
    for name in ("train", "test"):
        text = Path(f"{name}.tsv").read_text("utf-8")
        Path(f"other-{name}.tsv").write_text(text.replace("the ", "one "), "utf-8")
    head, *rows = Path("test.tsv").read_text("utf-8").splitlines(keepends=True)
    Path("turned.tsv").write_text("".join([head, *rows[::-1]]), "utf-8")
    run_task(CLASSES, "sentence", "kind", "--set", "evaluation.tests=final")
    assert tfm("evaluate", "--final", "runs/task", "--device", "cpu").code == 0
    for name, changed in (("other", "other-test.tsv"), ("turned", "turned.tsv")):
        given = (f"data.valid.path={changed}", f"data.tests.main.path={changed}", f"name={name}")
        words = [word for setting in (*given, "evaluation.tests=final") for word in ("--set", setting)]
        run_task(CLASSES, "sentence", "kind", *words)
    assert tfm("evaluate", "--final", "runs/other", "--device", "cpu").code == 0
    refused = tfm("evaluate", "--final", "runs/turned", "--device", "cpu")
    assert (refused.code, "was already scored once with --final" in refused.err) == (2, True)
    mixed = tfm("evaluate", "--final", "runs/task", "runs/other", "--again")
    assert "have other validation texts" in mixed.err


def test_a_curriculum_trains_each_corpus_in_its_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    from tfm.pipeline.tasks.translation import Translation

    seen: list[int] = []  # the smallest and largest row of each batch in turn
    batch = Translation.batch

    def watched(task: Any, split: Any, rows: Any) -> Any:
        if len(split) == 120:
            seen.extend((int(rows.min()), int(rows.max())))
        return batch(task, split, rows)

    monkeypatch.setattr(Translation, "batch", watched)
    part = 'format = "tsv", source = "sentence", target = "kind", path = "train.tsv"'
    train = f"train = [{{ {part}, size = 40, epochs = [1, 2] }}, {{ {part}, skip = 40, size = 80, epochs = [3, 3] }}]"
    recipe = RECIPE.format(corpus=part.replace("train.tsv", "test.tsv").rpartition(", path")[0])
    lines = [train if line.startswith("train = ") else line for line in recipe.splitlines()]
    text = "\n".join(lines).replace("max_steps = 120", "max_epochs = 3\nvalidation = { bleu = false }")
    Path("turns.toml").write_text(text, encoding="utf-8")
    done = tfm("run", "turns.toml", "--device", "cpu", "--set", "decoding.beam=1", "--set", "decoding.max_length=4")
    assert done.code == 0, done.err
    steps = int(json.loads(Path("runs/turns/model/manifest.json").read_text("utf-8"))["figures"]["updates"])
    assert f"at most {steps} updates" in done.err
    early = [row for row in seen if row < 40]
    late = [row for row in seen if row >= 40]
    assert seen == early + late
    assert early
    assert late
