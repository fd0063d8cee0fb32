"""The tokenize stage: what it publishes and prints, when it is fresh, and what it refuses."""

import gzip
import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers

from tfm.data.config import DataConfig
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.runtime.progress import NullReporter, run_with_elapsed_time
from tfm.pipeline.stages import tokenize as stage
from tfm.tokenizer.code_points import load_pair
from tfm.tokenizer.config import FOREIGN_KEYS, SOURCE_KEYS, TARGET_KEYS, TokenizerConfig
from tfm.tokenizer.special import SPECIAL_TOKENS
from tfm.tokenizer.tokenizer import Tokenizer

COMMAND = ["tfm", "tokenize"]
CONFIG = TokenizerConfig(vocab_size=60)


class Heard(NullReporter):
    """Keeps what a stage says."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.tables: list[tuple[str, Sequence[str], Sequence[Sequence[object]]]] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        self.tables.append((title, columns, rows))


def write(path: Path, lines: Sequence[str]) -> str:
    data = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


@pytest.fixture
def data(tmp_path: Path) -> DataConfig:
    train = CorpusConfig(
        source=write(tmp_path / "train.en", ["the cat sat", "the mat sat"] * 20),
        target=write(tmp_path / "train.de.gz", ["die katze saß", "die matte saß"] * 20),
    )
    valid = CorpusConfig(
        source=write(tmp_path / "valid.en", ["the cat Q", "a cat"]),
        target=write(tmp_path / "valid.de", ["die katze", "die"]),
    )
    return DataConfig(train=(train,), valid=valid, tests={"test": valid})


def tokenize(data: DataConfig, out: Path, config: TokenizerConfig = CONFIG) -> Heard:
    heard = Heard()
    stage.tokenize(config, data, out, command=COMMAND, reporter=heard)
    return heard


def tokenize_files(files: Sequence[Path], out: Path, config: TokenizerConfig = CONFIG) -> Heard:
    heard = Heard()
    stage.tokenize_files(config, files, out, command=COMMAND, reporter=heard)
    return heard


def test_the_criterion_is_described_only_where_it_was_chosen(data: DataConfig, tmp_path: Path) -> None:
    """A tokenizer that was made before there was a choice stays up to date."""
    tokenize(data, tmp_path / "tokenizer")
    assert {"criterion", "min_score", "min_gain"}.isdisjoint(open_artifact(tmp_path / "tokenizer").config["tokenizer"])
    chosen = TokenizerConfig(kind="wordpiece", vocab_size=60, criterion="ratio", min_score=0.001)
    tokenize(data, tmp_path / "other", chosen)
    described = open_artifact(tmp_path / "other").config["tokenizer"]
    assert (described["criterion"], described["min_score"]) == ("ratio", 0.001)
    assert "up to date" in tokenize(data, tmp_path / "other", chosen).lines[0]
    assert "min_score" in tokenize(data, tmp_path / "other", chosen.model_copy(update={"min_score": 0.5})).lines[0]


def test_a_tokenizer_by_the_ratio_that_was_called_likelihood_is_made_again(data: DataConfig, tmp_path: Path) -> None:
    """Until the ratio had a name of its own, `likelihood` was described with min_score, and now it is with min_gain."""
    chosen = TokenizerConfig(kind="wordpiece", vocab_size=60, criterion="likelihood")
    tokenize(data, tmp_path / "tokenizer", chosen)
    described = open_artifact(tmp_path / "tokenizer").config["tokenizer"]
    assert (described["criterion"], described["min_gain"], "min_score" in described) == ("likelihood", 0.0, False)
    assert "up to date" in tokenize(data, tmp_path / "tokenizer", chosen).lines[0]
    manifest = tmp_path / "tokenizer" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"min_gain"', '"min_score"'))
    assert "up to date" not in tokenize(data, tmp_path / "tokenizer", chosen).lines[0]


def test_one_shared_vocabulary(data: DataConfig, tmp_path: Path) -> None:
    out = tmp_path / "tokenizer"
    heard = tokenize(data, out)
    manifest = open_artifact(out, "tokenize")
    assert list(manifest.files) == ["tokenizer.json"]
    source, target = load_pair(out)
    assert source is target
    assert source.pieces("the katze saß") == [" the", " katze", " saß"]

    ids = source.encode_batch(["the cat Q", "a cat", "die katze", "die"])
    figures = manifest.figures["shared"]
    assert figures["vocabulary_size"] == source.vocab_size
    assert figures["tokens_a_word"] == sum(map(len, ids)) / 8
    assert figures["unknown_rate"] == 1 / sum(map(len, ids))
    assert figures["longest_pieces"][:2] == [" katze", " matte"]
    (_, columns, measured), (_, _, longest) = heard.tables
    assert list(columns) == ["", "shared"]
    assert [row[0] for row in measured] == [
        *("vocabulary size", "tokens a word", "unknown tokens", "texts changed by encoding and decoding"),
    ]
    assert [row[0] for row in longest][:2] == ["␣katze", "␣matte"]
    assert len(longest) == len(figures["longest_pieces"]) == 20


def test_one_vocabulary_a_side(data: DataConfig, tmp_path: Path) -> None:
    out = tmp_path / "tokenizer"
    heard = tokenize(data, out, TokenizerConfig(kind="char", shared=False))
    manifest = open_artifact(out, "tokenize")
    assert list(manifest.files) == ["source.json", "target.json"]
    source, target = load_pair(out)
    assert "ß" not in "".join(source.pieces("ß"))
    assert target.pieces("saß") == ["s", "a", "ß"]
    assert manifest.figures["source"]["unknown_rate"] == 1 / len("the cat Qa cat")
    assert manifest.figures["target"]["unknown_rate"] == 0
    assert list(heard.tables[0][1]) == ["", "source", "target"]


def test_a_fresh_tokenizer_is_left_alone_and_a_stale_one_is_made_again(data: DataConfig, tmp_path: Path) -> None:
    out = tmp_path / "tokenizer"
    assert "not made yet" in tokenize(data, out).lines[0]
    made = open_artifact(out)
    assert "up to date" in tokenize(data, out).lines[0]
    # What a tokenizer does not see does not make it stale.
    assert "up to date" in tokenize(data.model_copy(update={"batch_tokens": 99}), out).lines[0]
    later = data.train[0].model_copy(update={"weight": 2.0, "epochs": (1, 3)})
    assert "up to date" in tokenize(data.model_copy(update={"train": (later,)}), out).lines[0]
    assert open_artifact(out).folder == made.folder
    assert "vocab_size" in tokenize(data, out, TokenizerConfig(vocab_size=50)).lines[0]
    write(tmp_path / "train.en", ["the dog sat"] * 40)
    assert "train.en changed" in tokenize(data, out, TokenizerConfig(vocab_size=50)).lines[0]


def test_missing_splits_are_taken_off_the_training_text(data: DataConfig, tmp_path: Path) -> None:
    rows = [f"w{number} x{number}" for number in range(300)]
    corpus = CorpusConfig(source=write(tmp_path / "a.en", rows), target=write(tmp_path / "a.de", rows))
    out = tmp_path / "tokenizer"
    tokenize(DataConfig(train=(corpus,)), out, TokenizerConfig(kind="word", vocab_size=2000))
    manifest = open_artifact(out)
    assert "random 10%" in manifest.figures["held_out"]
    assert manifest.figures["shared"]["unknown_rate"] == 1.0
    # Two words a row, each seen on both sides; about 80 % of the rows are trained on.
    assert 400 < Tokenizer.load(out / "tokenizer.json").vocab_size < 560


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1\n00:00:01,000 --> 00:00:02,000\neins zwei\n", "subtitles with their times"),
        ("EU NNP B-ORG\nsays VBZ O\n\n", r"has a word and its tag a line.* \$1 in place of \$NF"),
    ],
)
def test_files_of_tags_or_times_are_no_text(text: str, problem: str, tmp_path: Path) -> None:
    file, out = tmp_path / "subtitles.srt", tmp_path / "tokenizer"
    file.write_text(text, "utf-8")
    with pytest.raises(DataError, match=problem):
        stage.tokenize_files(TokenizerConfig(), [file], out, command=COMMAND, reporter=NullReporter())
    assert not out.exists()


@pytest.mark.parametrize("num_lines", [99, 250])
def test_text_files(num_lines: int, tmp_path: Path) -> None:
    lines = [f"cat {'odd' if number % 100 == 0 else 'even'}" for number in range(1, num_lines + 1)]
    files = [tmp_path / "one.txt", tmp_path / "two.txt.gz"]
    write(files[0], lines[:70])
    write(files[1], lines[70:])
    out = tmp_path / "tokenizer"
    tokenize_files(files, out, TokenizerConfig(kind="word"))
    manifest = open_artifact(out)
    assert manifest.figures["shared"]["unknown_rate"] == (0.5 if num_lines > 99 else 0)
    assert ("training text" in manifest.figures["held_out"]) == (num_lines < 100)
    assert sorted(manifest.inputs) == sorted(map(str, files))
    assert "up to date" in tokenize_files(files, out, TokenizerConfig(kind="word")).lines[0]


def test_what_cannot_be_done_is_said_and_leaves_nothing(data: DataConfig, tmp_path: Path) -> None:
    out = tmp_path / "tokenizer"
    with pytest.raises(DataError, match=r"none\.txt: no such file"):
        tokenize_files([tmp_path / "none.txt"], out)
    with pytest.raises(RecipeError, match=r"tokenizer\.shared"):
        tokenize_files([tmp_path / "train.en"], out, TokenizerConfig(shared=False))
    write(tmp_path / "empty.txt", ["", " "])
    with pytest.raises(DataError, match="nothing to learn"):
        tokenize_files([tmp_path / "empty.txt"], out)
    write(tmp_path / "rare.txt", ["abc"])
    with pytest.raises(DataError, match="min_frequency = 9"):
        tokenize_files([tmp_path / "rare.txt"], out, TokenizerConfig(min_frequency=9))
    (tmp_path / "latin.txt").write_bytes(b"good\nb\xe4d\n")
    with pytest.raises(DataError, match=r"latin\.txt, line 2, byte 2"):
        tokenize_files([tmp_path / "latin.txt"], out)
    assert not out.exists()


def test_waiting_gives_the_result_or_the_error_of_the_work() -> None:
    notes: list[str] = []

    class Bar:
        def advance(self, amount: int = 1, note: str = "") -> None:
            notes.append(note)

    def slow() -> str:
        while not notes:
            time.sleep(0.01)
        return "done"

    def failing() -> None:
        raise TimeoutError("of the work itself")

    assert run_with_elapsed_time(slow, Bar()) == "done"
    assert notes == ["1 s"]
    with pytest.raises(TimeoutError, match="of the work itself"):
        run_with_elapsed_time(failing, Bar())


def test_figures_are_plain_json(data: DataConfig, tmp_path: Path) -> None:
    tokenize(data, tmp_path / "tokenizer")
    document = json.loads((tmp_path / "tokenizer" / "manifest.json").read_text("utf-8"))
    without = {"source_from", "file", "grow", "criterion", "min_score", "min_gain", "clusters", "sentinels"}
    without |= {*SOURCE_KEYS, *TARGET_KEYS, *FOREIGN_KEYS}
    assert document["config"]["tokenizer"] == CONFIG.model_dump(mode="json", exclude=without)
    assert document["command"] == COMMAND


def from_elsewhere(file: Path, specials: Sequence[str] = SPECIAL_TOKENS, **more: int) -> str:
    """A tokenizer as others make them: words and punctuation, lower-cased, put together with spaces."""
    words = ["the", "cat", "sat", "die", "katze", "."]
    vocab = {piece: number for number, piece in enumerate([*specials, *words])} | more
    whole = tokenizers.Tokenizer(models.WordLevel(vocab, unk_token=specials[1]))
    whole.normalizer, whole.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    whole.decoder = decoders.WordPiece()
    whole.add_special_tokens(list(specials))
    whole.enable_truncation(2)
    whole.save(str(file))
    return str(file)


def test_a_tokenizer_from_elsewhere_is_taken_and_measured(data: DataConfig, tmp_path: Path) -> None:
    out, config = tmp_path / "tokenizer", TokenizerConfig(file=from_elsewhere(tmp_path / "x.json"))
    heard = tokenize(data, out, config)
    manifest = open_artifact(out, "tokenize")
    assert {label: each.path for label, each in manifest.inputs.items() if label == "file"} == {"file": config.file}
    assert not any("train" in label for label in manifest.inputs)
    taken = Tokenizer.load(out / "tokenizer.json")
    assert taken.encode("The cat sat.") == [4, 5, 6, 9]  # whole: what cuts texts is left out
    figures = manifest.figures["shared"]
    assert (figures["vocabulary_size"], figures["unknown_rate"]) == (10, 2 / 8)
    assert figures["changed_rate"] == 2 / 4  # "the cat Q" and "a cat"
    assert ["texts changed by encoding and decoding", "50.000%"] in [list(row) for row in heard.tables[0][2]]
    assert "up to date" in tokenize(data, out, config).lines[0]
    write(tmp_path / "train.en", ["the dog sat"] * 40)
    assert "up to date" in tokenize(data, out, config).lines[0]
    from_elsewhere(tmp_path / "x.json", dog=10)
    assert "input file changed" in tokenize(data, out, config).lines[0]

    text = tmp_path / "a.txt"
    write(text, ["the cat", "the Q"])
    tokenize_files([text], tmp_path / "other", config)
    assert open_artifact(tmp_path / "other").figures["shared"]["unknown_rate"] == 1 / 4


@pytest.mark.parametrize("specials", [("[PAD]", "[UNK]", "[CLS]", "[SEP]"), ("<unk>", "<pad>", "<s>", "</s>")])
def test_other_control_tokens_are_given_our_ids_and_named(
    specials: Sequence[str], data: DataConfig, tmp_path: Path
) -> None:
    file = tmp_path / "x.json"
    from_elsewhere(file, specials)
    document = json.loads(file.read_text("utf-8"))
    document["model"]["unk_token"] = next(each for each in specials if "unk" in each.lower())
    file.write_text(json.dumps(document), "utf-8")
    out, config = tmp_path / "tokenizer", TokenizerConfig(file=str(file))
    heard = tokenize(data, out, config)
    pad, unk = (next(each for each in specials if name in each.lower()) for name in ("pad", "unk"))
    ends = [each for each in specials if each not in (pad, unk)]
    named = f"<pad> is {pad}; <unk> is {unk}; <s> is {ends[0]}; </s> is {ends[1]}"
    assert any(f"{file} is a tokenizer.json; {named}" in line for line in heard.lines)
    source, target = load_pair(out)
    assert source is target
    assert source.encode("The cat sat.") == [4, 5, 6, 9]
    assert source.original_ids == (*map(specials.index, (pad, unk, *ends)), *range(4, 10))
    assert "up to date" in tokenize(data, out, config).lines[0]
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"eos_token": "."}), "utf-8")
    assert "file: special_tokens_map.json" in tokenize(data, out, config).lines[0]
    assert load_pair(out)[0].original_ids[3] == 9


def test_a_taken_tokenizer_of_the_source_goes_with_a_learned_one_of_the_target(
    data: DataConfig, tmp_path: Path
) -> None:
    out = tmp_path / "tokenizer"
    file = from_elsewhere(tmp_path / "x.json")
    tokenize(data, out, TokenizerConfig(file=file, shared=False, kind="char"))
    source, target = load_pair(out)
    assert source.encode("the cat") == [4, 5]
    assert target.pieces("saß") == ["s", "a", "ß"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"far": 99}, r"its 11 pieces do not have the ids 0 to 10"),
        ("{", r"x\.json: is not a tokenizer that tfm can use"),
        (None, r"x\.json: no such file"),
    ],
)
def test_what_of_a_tokenizer_from_elsewhere_does_not_fit_is_said(
    content: object, message: str, data: DataConfig, tmp_path: Path
) -> None:
    file = tmp_path / "x.json"
    if isinstance(content, dict):
        from_elsewhere(file, **content)
    elif isinstance(content, str):
        file.write_text(content)
    with pytest.raises(DataError, match=message):
        tokenize(data, tmp_path / "tokenizer", TokenizerConfig(file=str(file)))
    assert not (tmp_path / "tokenizer").exists()


def test_what_says_how_to_learn_is_refused_where_nothing_is_learned() -> None:
    for key, value in (("kind", "bpe"), ("vocab_size", 99), ("lowercase", False), ("min_frequency", 1)):
        with pytest.raises(ValueError, match=f"nothing is learned: remove {key}"):
            TokenizerConfig.model_validate({"file": "x.json", key: value})
    with pytest.raises(ValueError, match="remove one"):
        TokenizerConfig(file="x.json", source_from="y", shared=False)
