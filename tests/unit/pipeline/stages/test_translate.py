"""Lines in, lines out; and the translations folder."""

import json
from itertools import chain, count, repeat

import numpy as np
import pytest
import torch

from tests.rounding import assert_rounds_like
from tfm.data.dataset.metadata import write_metadata
from tfm.data.dataset.split import TokenIdColumn
from tfm.data.dataset.store import write_split
from tfm.data.errors import DataError
from tfm.model.build import build
from tfm.model.config import ModelConfig, StackConfig
from tfm.pipeline.artifacts.artifact import Plan, open_artifact, publish
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.inference.translation import translate_lines
from tfm.pipeline.inference.translation_records import join_to_one_line
from tfm.pipeline.model_io.loaded_model import load_model, save_model
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.stages.translate import translate_file, translate_tests
from tfm.tokenizer.code_points import save_pair
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.train import train

LINES = ["a cat sat", "", "the dog", "  ", "a dog sat on the cat", "the cat"]
COMMAND = ["tfm", "translate"]


class Heard(NullReporter):
    def __init__(self):
        self.lines, self.warnings = [], []

    def line(self, text):
        self.lines.append(text)

    def warn(self, text):
        self.warnings.append(text)


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    """A published model of random weights with a character vocabulary."""
    root = tmp_path_factory.mktemp("model")
    tokenizer = train(LINES, TokenizerConfig(kind="char", min_frequency=1))
    save_pair(tokenizer, tokenizer, root)
    stack = StackConfig(layers=1, dim=8, heads=2, feed_forward_dim=16)
    config = ModelConfig(encoder=stack, decoder=stack, tie="none", max_length=24)
    model = build(config, source_vocab=tokenizer.vocab_size, target_vocab=tokenizer.vocab_size, seed=1)
    with torch.no_grad():
        model.output.weight.mul_(3)
    with publish(Plan("train", root / "model", {}, {}, 1), command=["tfm", "train"]) as draft:
        save_model(draft.folder, config, model.state_dict(), root)
    return root / "model"


@pytest.fixture(scope="module")
def loaded(model_folder):
    return load_model(model_folder, "cpu", torch.float64)


@pytest.fixture
def dataset(tmp_path, loaded):
    """A dataset folder with two test sets."""
    tests = {"main": LINES, "other": ["on\nit"]}
    with publish(Plan("preprocess", tmp_path / "dataset", {}, {}, 1), command=["tfm", "preprocess"]) as draft:
        for name, lines in {"train": None, "valid": LINES[:1], **tests}.items():
            column = TokenIdColumn.from_lists(loaded.source_tokenizer.encode_batch(lines or LINES))
            ids = column.take(np.arange(len(column)))
            with write_split(draft.folder / name, texts=lines is not None) as writer:
                writer.write(ids, ids, *(([1.0] * len(column),) if lines is None else (lines, lines)))
        write_metadata(draft.folder, tests=list(tests), batch_tokens=64, train_corpora=[])
    return tmp_path / "dataset"


def translate(loaded, lines, config=None, **options):
    return list(
        translate_lines(loaded, lines, config or DecodingConfig(beam=2), **{"reporter": NullReporter(), **options})
    )


def test_an_empty_line_for_an_empty_line(loaded):
    found = translate(loaded, LINES, DecodingConfig(beam=3, n_best=3))
    assert [len(n_best) for n_best in found] == [3 if loaded.source_tokenizer.encode(line) else 1 for line in LINES]
    assert (found[1][0].text, found[1][0].score, found[1][0].num_tokens) == ("", 0.0, 0)
    assert all(n_best[0].text for line, n_best in zip(LINES, found, strict=True) if line.strip())
    assert all(n_best[0].score >= n_best[-1].score for n_best in found)


def test_text_and_length_are_those_of_the_hypothesis(loaded):
    for (each,) in translate(loaded, ["a cat"], DecodingConfig(max_length=5, min_length=5)):
        assert loaded.target_tokenizer.decode(loaded.target_tokenizer.encode(each.text)) == each.text
        assert each.num_tokens == 6
        assert each.score == pytest.approx(each.log_prob / 6)


@pytest.mark.parametrize("chunk_lines", [1, 2, 100])
def test_chunks_change_nothing(loaded, chunk_lines):
    found = [each.text for (each,) in translate(loaded, LINES, chunk_lines=chunk_lines)]
    assert found == [each.text for (each,) in translate(loaded, LINES)]
    assert found == [translate(loaded, [line])[0][0].text for line in LINES]


def test_a_line_is_answered_before_the_next_is_read(loaded):
    asked = []
    lines = (asked.append(number) or "the cat" for number in count())
    answers = translate_lines(loaded, lines, DecodingConfig(beam=1), reporter=NullReporter(), chunk_lines=1)
    for number in range(3):
        next(answers)
        assert asked == list(range(number + 1))


def test_a_source_too_long_is_cut_and_counted_once(loaded):
    heard = Heard()
    long = "a cat sat on the dog on the cat"
    pieces = loaded.source_tokenizer.encode(long)
    cut = loaded.source_tokenizer.decode(pieces[:23])
    assert loaded.source_tokenizer.encode(cut) == pieces[:23] != pieces
    found = translate(loaded, [long, "a", long, cut], chunk_lines=1, reporter=heard)
    assert found[0] == found[2] == found[3]
    (warning,) = heard.warnings
    assert warning == "2 of 4 sources were longer than the 23 pieces that the model reads, and were cut"
    translate(loaded, ["a"], reporter=heard)
    assert len(heard.warnings) == 1


def test_a_translation_begins_with_its_prefix(loaded):
    found = translate(loaded, LINES, prefixes=["dog", "x", "", "x", "a cat", "sat"])
    assert [n_best[0].text for n_best in found][1] == ""
    assert found[0][0].text.startswith("dog")
    assert found[2] == translate(loaded, LINES)[2]
    assert found[4][0].text.startswith("a cat")
    with pytest.raises(DataError, match="fewer prefixes than lines"):
        translate(loaded, LINES, prefixes=["dog"])
    with pytest.raises(DataError, match="more prefixes than lines"):
        translate(loaded, LINES, prefixes=["dog"] * (len(LINES) + 1))
    with pytest.raises(DataError, match="more lines of forced words than lines"):
        translate(loaded, LINES, forced=[""] * (len(LINES) + 1))
    assert translate(loaded, LINES, prefixes=repeat("")) == translate(loaded, LINES)
    with pytest.raises(DataError, match="a prefix has 40 pieces and the model reads at most 23"):
        translate(loaded, ["a"], prefixes=["t" * 40])


def test_one_line_stays_one_line():
    assert join_to_one_line("a\nb\r\nc\u2028d") == "a b  c\u2028d"


def test_test_sets_are_translated_once(model_folder, dataset, loaded, tmp_path):
    out, heard = tmp_path / "translations", Heard()
    config = DecodingConfig(beam=2, n_best=2)
    translate_tests(model_folder, dataset, config, out, command=COMMAND, reporter=heard, device="cpu")
    manifest = open_artifact(out, "translate")
    names = {
        f"{test}{ending}"
        for test in ("main", "other")
        for ending in (".txt", ".jsonl", ".source.txt", ".reference.txt")
    }
    assert set(manifest.files) == names
    assert manifest.figures["main"]["sentences"] == len(LINES)
    expected = translate(loaded, LINES, config)
    plain = translate(load_model(model_folder, "cpu"), LINES, config)
    assert (out / "main.txt").read_text().split("\n") == [n_best[0].text for n_best in expected] + [""]
    assert (out / "main.source.txt").read_text().split("\n") == [*LINES, ""]
    assert (out / "other.reference.txt").read_text() == "on it\n"
    records = [json.loads(line) for line in (out / "main.jsonl").read_text().splitlines()]
    assert [record["source"] for record in records] == LINES
    assert [len(record["translations"]) for record in records] == [len(n_best) for n_best in expected]
    scores = [[each["score"] for each in record["translations"]] for record in records]
    for record, n_best in zip(records, expected, strict=True):
        assert [each["text"] for each in record["translations"]] == [each.text for each in n_best]
    found, in_fp32, exact = (
        torch.tensor(list(chain.from_iterable(each)), dtype=dtype)
        for each, dtype in (
            (scores, torch.float32),
            ([[each.score for each in n_best] for n_best in plain], torch.float32),
            ([[each.score for each in n_best] for n_best in expected], torch.float64),
        )
    )
    assert_rounds_like(found, in_fp32, exact)

    written = (out / "manifest.json").stat().st_ino
    translate_tests(model_folder, dataset, config, out, command=COMMAND, reporter=heard, device="cpu")
    assert (out / "manifest.json").stat().st_ino == written
    assert "nothing to do" in heard.lines[-1]
    translate_tests(model_folder, dataset, DecodingConfig(beam=1), out, command=COMMAND, reporter=heard, device="cpu")
    assert any("decoding.beam 2 -> 1" in line for line in heard.lines)


def test_a_file_is_translated_line_by_line(model_folder, loaded, tmp_path):
    source, prefixes, out = tmp_path / "in.txt", tmp_path / "prefixes.txt", tmp_path / "out"
    source.write_bytes("\r\n".join(LINES).encode())
    config = DecodingConfig(beam=2)
    translate_file(model_folder, source, config, out, command=COMMAND, reporter=NullReporter(), device="cpu")
    assert (out / "hypotheses.txt").read_text().split("\n") == [each.text for (each,) in translate(loaded, LINES)] + [
        ""
    ]
    assert (out / "source.txt").read_text().split("\n") == [*LINES, ""]

    prefixes.write_text("dog\n" * len(LINES))
    heard = Heard()
    translate_file(
        model_folder, source, config, out, command=COMMAND, reporter=heard, device="cpu", prefixes=prefixes
    )  # fmt: skip
    assert "input prefixes is new" in heard.lines[0]
    begun = (out / "hypotheses.txt").read_text().split("\n")
    assert [line[:3] for line in begun] == ["dog" if line.strip() else "" for line in LINES] + [""]


def test_a_damaged_line_leaves_the_old_translations(model_folder, tmp_path):
    source, out = tmp_path / "in.txt", tmp_path / "out"
    source.write_text("a cat\n")
    options = {"command": COMMAND, "reporter": NullReporter(), "device": "cpu"}
    translate_file(model_folder, source, DecodingConfig(), out, **options)
    before = (out / "hypotheses.txt").read_bytes()
    source.write_bytes(b"a cat\nthe \xff dog\n")
    with pytest.raises(DataError, match=r"in\.txt, line 2, byte"):
        translate_file(model_folder, source, DecodingConfig(), out, **options)
    assert (out / "hypotheses.txt").read_bytes() == before
