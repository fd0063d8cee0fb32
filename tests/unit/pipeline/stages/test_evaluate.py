"""The evaluate stage: from translations, from files, from a model; what it publishes and what it refuses."""

import gzip
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.rounding import assert_rounds_like
from tfm.data.dataset.metadata import write_metadata
from tfm.data.dataset.split import TokenIdColumn
from tfm.data.dataset.store import write_split
from tfm.data.errors import DataError, format_share
from tfm.model.build import build
from tfm.model.config import ModelConfig, StackConfig
from tfm.pipeline.artifacts.artifact import Plan, open_artifact, publish
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.decoding.teacher_forcing import target_log_probs
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.inference.translation import translate_lines
from tfm.pipeline.model_io.loaded_model import LoadedModel, load_model, save_model
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.metrics.registry import score_texts
from tfm.pipeline.scoring.perplexity import perplexity
from tfm.pipeline.stages.evaluate import evaluate_tests
from tfm.pipeline.stages.evaluate_files import evaluate_files
from tfm.pipeline.stages.translate import translate_tests
from tfm.tokenizer.code_points import save_pair
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import UNK_ID
from tfm.tokenizer.train import train

LINES = ["a cat sat", "the dog", "a dog sat on the cat", "the cat", "on it", "it sat"]
REFERENCES = ["the cat sat", "a dog", "the dog sat on a cat", "the cat", "on it", "a cat"]
CONFIG = EvaluationConfig(samples=2)
DECODING = DecodingConfig(beam=2)
COMMAND = ["tfm", "evaluate"]


class Heard(NullReporter):
    """A reporter that remembers."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.warnings: list[str] = []
        self.tables: list[tuple[str, list[tuple[str, str, str]]]] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        assert tuple(columns) == ("metric", "score", "signature")
        self.tables.append((title, [(str(a), str(b), str(c)) for a, b, c in rows]))


def publish_model(root: Path, seed: int = 1) -> Path:
    """A published model of random weights that reads up to 23 characters."""
    tokenizer = train(LINES, TokenizerConfig(kind="char", min_frequency=1))
    root.mkdir(exist_ok=True)
    save_pair(tokenizer, tokenizer, root)
    stack = StackConfig(layers=1, dim=8, heads=2, feed_forward_dim=16)
    config = ModelConfig(encoder=stack, decoder=stack, tie="none", max_length=24)
    model = build(config, source_vocab=tokenizer.vocab_size, target_vocab=tokenizer.vocab_size, seed=seed)
    with torch.no_grad():
        model.output.weight.mul_(3)
    with publish(Plan("train", root / "model", {}, {}, 1), command=["tfm", "train"]) as draft:
        save_model(draft.folder, config, model.state_dict(), root)
    return root / "model"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def loaded(model: Path) -> LoadedModel:
    return load_model(model, "cpu", torch.float64)


@pytest.fixture
def dataset(tmp_path: Path, loaded: LoadedModel) -> Path:
    """A dataset whose main test set comes first, though its name sorts last."""
    tests = {"main": (LINES, REFERENCES), "a second": (LINES[:2], REFERENCES[:2])}
    encode = loaded.source_tokenizer.encode_batch
    with publish(Plan("preprocess", tmp_path / "dataset", {}, {}, 1), command=["tfm", "preprocess"]) as draft:
        for name, (sources, targets) in {"train": (LINES, LINES), "valid": (LINES, LINES), **tests}.items():
            columns = [TokenIdColumn.from_lists(encode(texts)) for texts in (sources, targets)]
            ids = [column.take(np.arange(len(column))) for column in columns]
            extra = ([1.0] * len(sources),) if name == "train" else (sources, targets)
            with write_split(draft.folder / name, texts=name != "train") as writer:
                writer.write(*ids, *extra)
        write_metadata(draft.folder, tests=list(tests), batch_tokens=64, train_corpora=[])
    return tmp_path / "dataset"


def write(file: Path, lines: Sequence[str]) -> Path:
    file.write_bytes("".join(line + "\n" for line in lines).encode())
    return file


def score_tests(model: Path, dataset: Path, reporter: Heard, out: str = "scores") -> dict[str, object]:
    root = dataset.parent
    translations, training = root / "translations", root / "training"
    translate_tests(model, dataset, DECODING, translations, command=COMMAND, reporter=NullReporter(), device="cpu")
    return evaluate_tests(
        model, dataset, translations, training, CONFIG, root / out, command=COMMAND, reporter=reporter, device="cpu"
    )


def test_every_test_set_is_scored_and_published(tmp_path: Path, model: Path, dataset: Path) -> None:
    (tmp_path / "training").mkdir()
    line = {"event": "valid", "step": 1, "epoch": 1, "loss": 2.0, "perplexity": 7.4, "bleu": 1.0}
    (tmp_path / "training" / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    heard = Heard()
    content = score_tests(model, dataset, heard)

    assert content == json.loads((tmp_path / "scores" / "scores.json").read_text())
    assert content["split"] == "main"
    metrics, others = content["metrics"], content["others"]
    assert isinstance(metrics, dict)
    assert isinstance(others, dict)
    assert list(others) == ["a second"]
    hypotheses = (tmp_path / "translations" / "main.txt").read_text().split("\n")[:-1]
    for name, score in score_texts(hypotheses, [REFERENCES], CONFIG).items():
        beside = {"recall": score.recall, "precision": score.precision} if name.startswith("rouge") else {}
        assert metrics[name] == {"score": score.score, "signature": score.signature, **beside}
    assert {"perplexity", "word_perplexity", "bits_per_character"} <= metrics.keys() & others["a second"][
        "metrics"
    ].keys()

    manifest = open_artifact(tmp_path / "scores", "evaluate")
    assert manifest.inputs.keys() == {"model", "dataset", "translations"}
    assert manifest.figures["main"]["bleu"] == metrics["bleu"]["score"]
    page = (tmp_path / "scores" / "report.html").read_text()
    assert metrics["chrf"]["signature"] in page
    assert "<svg" in page
    assert manifest.inputs["model"].fingerprint in page

    assert [title for title, _ in heard.tables] == ["main: 6 segments", "a second: 2 segments"]
    signatures = [signature for _, rows in heard.tables for _, _, signature in rows]
    assert metrics["ter"]["signature"] in signatures
    for kind in ("source", "hypothesis", "reference"):
        assert sum(text.strip().startswith(kind) for text in heard.lines) == 5
    assert heard.lines[-1].endswith("report.html")


def test_fresh_scores_are_not_made_again_but_shown(model: Path, dataset: Path) -> None:
    first = score_tests(model, dataset, Heard())
    heard = Heard()
    assert score_tests(model, dataset, heard) == first
    assert any("up to date" in text for text in heard.lines)
    assert len(heard.tables) == 2


def test_translations_of_another_model_are_refused(tmp_path: Path, model: Path, dataset: Path) -> None:
    score_tests(model, dataset, Heard())
    other = publish_model(tmp_path / "elsewhere", seed=2)
    with pytest.raises(DataError, match=r"translations: were made from another model \([0-9a-f]{12}\) than"):
        evaluate_tests(
            other,
            dataset,
            tmp_path / "translations",
            None,
            CONFIG,
            tmp_path / "x",
            command=COMMAND,
            reporter=NullReporter(),
        )
    assert not (tmp_path / "x").exists()


def files_of(
    tmp_path: Path,
    *,
    hypotheses: Sequence[str] | None = None,
    source: Sequence[str] | None = None,
    references: Sequence[Sequence[str]] = (REFERENCES,),
    model: Path | None = None,
    config: EvaluationConfig = CONFIG,
    out: Path | None = None,
    reporter: Heard | None = None,
) -> dict[str, dict[str, dict[str, object]]]:
    """`evaluate_files` on files with these lines."""
    return evaluate_files(
        config,
        hypotheses=None if hypotheses is None else write(tmp_path / "hypotheses", hypotheses),
        model=model,
        source=None if source is None else write(tmp_path / "source", source),
        references=[write(tmp_path / f"reference{i}", lines) for i, lines in enumerate(references)],
        decoding=DECODING,
        out=out,
        command=COMMAND,
        reporter=reporter or Heard(),
        device="cpu",
    )


def test_files_alone_have_no_perplexity_and_say_so_when_asked(tmp_path: Path) -> None:
    heard = Heard()
    content = files_of(tmp_path, hypotheses=REFERENCES, reporter=heard)
    assert content["metrics"]["bleu"]["score"] == pytest.approx(100)
    assert "perplexity" not in content["metrics"]
    assert content["missing"] == {}
    assert len(heard.tables[0][1]) == 9 + 4  # metrics, and the recall of each ROUGE

    heard = Heard()
    asked = EvaluationConfig(metrics=("bleu", "perplexity"))
    content = files_of(tmp_path, hypotheses=REFERENCES, reporter=heard, config=asked)
    assert list(content["metrics"]) == ["bleu"]
    assert heard.tables[0][1][-1][1:] == ("–", "needs a model and a source: give --model DIR and --source FILE")


def test_several_references(tmp_path: Path) -> None:
    content = files_of(tmp_path, hypotheses=LINES, references=[REFERENCES, LINES])
    assert content["metrics"]["exact_match"]["score"] == 100
    assert "nrefs:2" in str(content["metrics"]["bleu"]["signature"])


def test_a_model_translates_as_translate_does(tmp_path: Path, model: Path, loaded: LoadedModel) -> None:
    out = tmp_path / "scores"
    content = files_of(tmp_path, model=model, source=LINES, out=out)
    found = load_model(model, "cpu")
    hypotheses = [best.text for best, *_ in translate_lines(found, LINES, DECODING, reporter=NullReporter())]
    assert (out / "hypotheses.txt").read_text() == "".join(text + "\n" for text in hypotheses)
    for name, score in score_texts(hypotheses, [REFERENCES], CONFIG).items():
        assert content["metrics"][name]["score"] == score.score
    plain, exact = (perplexity(each, LINES, [REFERENCES], reporter=NullReporter())[0] for each in (found, loaded))
    for name, score in exact.items():
        scores = torch.tensor([content["metrics"][name]["score"]]), torch.tensor([plain[name].score])
        assert_rounds_like(*scores, torch.tensor([score.score], dtype=torch.float64))
    assert open_artifact(out).config["decoding"]["beam"] == 2


def test_files_may_be_compressed_and_hold_odd_line_separators(tmp_path: Path) -> None:
    odd = ["a\u2028b", "c\x0cd\x85", ""]
    file = tmp_path / "reference.gz"
    file.write_bytes(gzip.compress("".join(line + "\n" for line in odd).encode()))
    content = evaluate_files(
        CONFIG,
        hypotheses=write(tmp_path / "hypotheses", odd),
        model=None,
        source=None,
        references=[file],
        decoding=DECODING,
        out=None,
        reporter=Heard(),
    )
    assert content["num_segments"] == 3
    assert content["metrics"]["exact_match"]["score"] == 100


def test_differing_line_counts_name_both_files_and_counts(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"hypotheses: has 2 lines, but .*reference0 has 6"):
        files_of(tmp_path, hypotheses=LINES[:2])
    with pytest.raises(DataError, match=r"reference0: has 5 lines, but .*reference1 has 6"):
        files_of(tmp_path, hypotheses=LINES, references=[REFERENCES[:5], REFERENCES])
    with pytest.raises(DataError, match="source: is empty"):
        files_of(tmp_path, hypotheses=LINES, source=[])


def test_nothing_to_score_is_a_usage_error(tmp_path: Path, model: Path) -> None:
    with pytest.raises(RecipeError, match="--hypotheses"):
        files_of(tmp_path, model=model)
    with pytest.raises(RecipeError, match="--reference"):
        files_of(tmp_path, hypotheses=LINES, references=[])


def test_tokenised_hypotheses_bring_a_warning(tmp_path: Path) -> None:
    heard = Heard()
    lines = ["a cat ."] * 100
    files_of(tmp_path, hypotheses=lines, references=[lines], reporter=heard)
    assert len(heard.warnings) == 1
    assert "detokenise" in heard.warnings[0]


def test_an_empty_reference_beside_others_is_no_omission_to_warn_of(loaded: LoadedModel) -> None:
    """Images have one to five captions; further lists of references have gaps, which nobody wrote."""
    references, warnings = [[*REFERENCES], ["", *REFERENCES[1:]]], []
    for row in (None, 0):
        heard = Heard()
        if row is not None:
            references[0][row] = " "
        perplexity(loaded, LINES, references, reporter=heard)
        warnings.append([each for each in heard.warnings if "omitted" in each])
    assert warnings == [[], ["1 empty reference is omitted from the perplexity"]]


def test_perplexity_is_that_of_the_forced_probabilities(loaded: LoadedModel) -> None:
    references = [REFERENCES, ["it", "", "x" * 24, "the zoo", "on", "cat"]]
    heard = Heard()
    scores, _ = perplexity(loaded, LINES, references, reporter=heard)
    kept = [
        (source, target)
        for reference in references
        for source, target in zip(LINES, reference, strict=True)
        if 0 < len(target) < 24
    ]
    assert len(kept) == 10
    sources = loaded.source_tokenizer.encode_batch([source for source, _ in kept])
    targets = loaded.target_tokenizer.encode_batch([target for _, target in kept])
    nats = -float(target_log_probs(loaded.model, sources, targets).sum())
    num_tokens = sum(len(target) + 1 for target in targets)
    assert scores["perplexity"].score == pytest.approx(math.exp(nats / num_tokens), rel=1e-12)
    num_words = sum(len(target.split(" ")) for _, target in kept)
    assert scores["word_perplexity"].score == pytest.approx(math.exp(nats / num_words), rel=1e-12)
    num_characters = sum(len(target) for _, target in kept)
    assert scores["bits_per_character"].score == pytest.approx(nats / math.log(2) / num_characters, rel=1e-12)
    num_unknown = sum(ids.count(UNK_ID) for ids in targets)
    assert num_unknown > 0
    for part in (f"count:{num_tokens}", "nrefs:var", f"unknown:{num_unknown}", "left-out-empty:1", "left-out-long:1"):
        assert part in scores["perplexity"].signature
    num_pieces = num_tokens - len(kept)
    assert heard.warnings[1:] == [
        f"the references: {format_share(num_unknown, num_pieces, 'piece', 'is', 'are')} unknown to the tokenizer "
        f"({num_unknown / num_pieces:.1%}), which makes perplexity and bits a character look better than they are"
    ]


def rows_of(scores: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (scores / "segments.jsonl").read_text("utf-8").split("\n")[:-1]]


def test_segments_sum_up_to_the_perplexity_of_the_corpus_exactly(
    tmp_path: Path, loaded: LoadedModel, model: Path
) -> None:
    references = [REFERENCES, ["it", "", "x" * 24, "ATIS", "על", "A CAT"], ["", "", "", "", "", "cat"]]
    references[0] = ["", *REFERENCES[1:-1], "x" * 30]
    out = tmp_path / "scores"
    content = files_of(tmp_path, hypotheses=LINES, source=LINES, references=references, model=model, out=out)
    rows = rows_of(out)
    assert [(row["split"], row["line"], row["external"]) for row in rows] == [
        ("reference0", n, {}) for n in range(1, 7)
    ]
    log_prob, pieces, words = (math.fsum(row[name] for row in rows) for name in ("log_prob", "pieces", "words"))
    metrics = content["metrics"]
    assert metrics["perplexity"]["score"] == math.exp(-log_prob / pieces)
    assert metrics["word_perplexity"]["score"] == math.exp(-log_prob / words)
    assert f"count:{pieces:.0f}|" in str(metrics["perplexity"]["signature"])
    # by hand: of each segment its references that have a piece and are not too long, one after the other
    for row, source, *texts in zip(rows, LINES, *references, strict=True):
        kept = [text for text in texts if 0 < len(text) < 24]
        ids = loaded.target_tokenizer.encode_batch(kept)
        alone = [
            float(target_log_probs(loaded.model, loaded.source_tokenizer.encode_batch([source]), [each])[0])
            for each in ids
        ]
        assert row["log_prob"] == pytest.approx(sum(alone), rel=1e-5)
        assert row["pieces"] == sum(len(each) + 1 for each in ids)
        assert row["words"] == sum(len(text.split()) for text in kept)


def test_segments_without_a_probability_have_none(tmp_path: Path, model: Path) -> None:
    references = ["", *REFERENCES[1:-1], "x" * 30]
    files_of(tmp_path, hypotheses=LINES, source=LINES, references=[references], model=model, out=tmp_path / "scores")
    rows = rows_of(tmp_path / "scores")
    none = {"log_prob": None, "pieces": None, "words": None}
    assert [number for number, row in enumerate(rows) if {name: row[name] for name in none} == none] == [0, 5]
    files_of(tmp_path, hypotheses=LINES, out=tmp_path / "texts")
    rows = rows_of(tmp_path / "texts")
    assert rows == [{"split": "reference0", "line": number, **none, "external": {}} for number in range(1, 7)]


def test_references_without_a_token_have_no_perplexity(loaded: LoadedModel) -> None:
    with pytest.raises(DataError, match="no reference has a perplexity: empty are 2"):
        perplexity(loaded, ["a", "b"], [["", " "]], reporter=NullReporter())


@pytest.mark.parametrize("which", ["hypotheses", "reference", "source"])
def test_files_that_are_no_texts_a_line_are_refused(which: str, tmp_path: Path) -> None:
    """The tags of WMT's XML and the times of transcripts were scored as words."""
    for text, problem in (
        (
            '<?xml version="1.0"?>\n<dataset id="wmttest2022">\n  <collection id="general">\n',
            "is a test set as WMT had it",
        ),
        ("<?x\n<html>\n", None),
        ("<html>\n<p>\n", "is XML or HTML"),
        ("<!DOCTYPE html>\n<p>\n", "is XML or HTML"),
        ("EU B-ORG\nrejects O\n\n", r"has a word and its tag a line, as CoNLL-2003: .* as by awk"),
        ('{"text": "a"}\n{"text": "b"}\n', "has an object of JSON a line, and other files have texts: write its texts"),
        ("{a}\n{}\n", None),
        ("B-ORG O\nO O B-X\n", None),
        ("he says O\nshe does O\n", None),
        ("f 1 s 0.06 3.47 a\nf 1 s 3.47 5.0 b\n", "is STM, segments with speakers, times and labels"),
    ):
        files = {name: tmp_path / name for name in ("hypotheses", "reference", "source")}
        for name, file in files.items():
            file.write_text(text if name == which else "x\n" * text.count("\n"))
        references = [files.pop("reference")]
        keys: dict[str, Any] = {**files, "references": references, "out": None, "reporter": NullReporter()}
        is_source_of_objects = which == "source" and text.startswith("{")  # of data-to-text: it is warned of
        if problem is None or is_source_of_objects:
            evaluate_files(CONFIG, model=None, decoding=DECODING, command=COMMAND, **keys)
            continue
        with pytest.raises(DataError, match=problem):
            evaluate_files(CONFIG, model=None, decoding=DECODING, command=COMMAND, **keys)
