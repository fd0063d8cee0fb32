"""A published tokenizer.json is taken over: pieces, ids, the roles of control tokens, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from tests.foreign_tokenizers import KINDS, document_of, legacy, write
from tests.ten_scripts import lines_of
from tfm.data.errors import DataError
from tfm.data.foreign_tokenizers.loading import load_foreign_tokenizer, tokenizer_files
from tfm.tokenizer.code_points import load_pair, save_pair
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.foreign.original_ids import ORIGINAL_IDS_FILE
from tfm.tokenizer.special import BOS, EOS, PAD, SPECIAL_TOKENS, UNK
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

WILD = Path(__file__).parents[4].parent / "shared" / "data" / "wild"
ROLES = {
    "bert": {PAD: "[PAD]", UNK: "[UNK]", BOS: "[CLS]", EOS: "[SEP]"},
    "gpt2": {EOS: "<|endoftext|>"},
    "t5": {PAD: "<pad>", UNK: "<unk>", EOS: "</s>"},
    "llama": {UNK: "<unk>", BOS: "<s>", EOS: "</s>"},
    "words": {UNK: "[unknown]"},
}


def taken(file: Path, **keys: Any) -> Tokenizer:
    return load_foreign_tokenizer(TokenizerConfig(file=str(file), **keys)).tokenizer


def there(ours: Tokenizer, ids: list[int]) -> list[int | None]:
    return [ours.original_ids[number] for number in ids]


@pytest.mark.parametrize("as_before", [False, True])
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.few(5)
def test_pieces_and_ids_are_those_of_the_original_in_ten_scripts(name: str, as_before: bool, tmp_path: Path) -> None:
    theirs = KINDS[name]()
    document = document_of(theirs)
    file = write(tmp_path, legacy(document) if as_before else document)
    found = load_foreign_tokenizer(TokenizerConfig(file=str(file)))
    ours = found.tokenizer
    assert found.control_tokens == ROLES[name]
    assert [ours.piece(number) for number in range(4)] == [*SPECIAL_TOKENS]
    names = {number: piece for piece, number in theirs.get_vocab().items()}
    for line in lines_of(1000, seed=2):
        ids, wanted = ours.encode(line), theirs.encode(line, add_special_tokens=False)
        assert there(ours, ids) == wanted.ids, line
        assert [ours.piece(each) for each in ids if each > 3] == [
            names[each] for each in wanted.ids if names[each] not in ROLES[name].values()
        ]
        assert ours.decode(ids) == theirs.decode([n for n in wanted.ids if names[n] != ROLES[name].get(UNK)])
    assert not {0, 2, 3} & {*ours.encode("</s> <s> [CLS] <pad> [PAD] <|endoftext|>")}
    known = [each for each in ours.original_ids if each is not None]
    assert {*names} <= {*known}
    assert len({*known}) == len(known) == max(names) + 1


def test_ids_there_are_kept_with_the_tokenizer_wherever_it_is_written(tmp_path: Path) -> None:
    ours = taken(write(tmp_path / "theirs", document_of(KINDS["bert"]())))
    assert ours.original_ids[:5] == (0, 1, 2, 3, 4)
    ours = taken(write(tmp_path / "theirs", document_of(KINDS["t5"]())))
    assert ours.original_ids[:5] == (0, 2, None, 1, 3)
    save_pair(ours, ours, tmp_path)
    assert load_pair(tmp_path)[0].original_ids == ours.original_ids
    for place in (tmp_path, tmp_path / "tokenizer.json"):
        assert taken(place).original_ids == ours.original_ids
    assert "file: original_ids.json" in tokenizer_files(TokenizerConfig(file=str(tmp_path)))
    both = tmp_path / "both"
    both.mkdir()
    save_pair(ours, ours.with_languages("deu"), both)
    source, target = load_pair(both)
    assert source.original_ids == target.original_ids == ours.original_ids
    for wrong in (
        [],
        [[]],
        {"source.json": [-1]},
        {"source.json": [0] * 10_000},
        {"source.json": ["0"]},
        {"source.json": [[]]},
    ):
        (both / ORIGINAL_IDS_FILE).write_text(json.dumps(wrong))
        with pytest.raises(ValueError, match="has no ids of the pieces"):
            load_pair(both)


def test_roles_are_those_of_the_files_beside_and_of_keys_before_them(tmp_path: Path) -> None:
    document = document_of(KINDS["words"]())
    some = sorted(document["model"]["vocab"])[:4]
    beside = {
        "special_tokens_map": {"eos_token": {"content": some[0], "lstrip": False}, "bos_token": "nowhere"},
        "tokenizer_config": {"cls_token": some[1], "pad_token": some[2], "model_max_length": 10**30},
    }
    file = write(tmp_path, document, **beside)
    found = load_foreign_tokenizer(TokenizerConfig(file=str(file)))
    assert found.control_tokens == {EOS: some[0], BOS: some[1], PAD: some[2], UNK: "[unknown]"}
    found = load_foreign_tokenizer(TokenizerConfig(file=str(tmp_path), eos_token=some[3]))
    assert found.control_tokens[EOS] == some[3]
    assert found.tokenizer.encode(f"{some[0]} {some[3]}") != []
    assert [*tokenizer_files(TokenizerConfig(file=str(tmp_path)))] == [
        *("file", "file: special_tokens_map.json", "file: tokenizer_config.json"),
    ]
    with pytest.raises(DataError, match=r"no piece 'nowhere', which tokenizer\.pad_token names"):
        taken(file, pad_token="nowhere")
    write(tmp_path, document, special_tokens_map={"eos_token": 7})
    with pytest.raises(DataError, match="eos_token = 7 beside it is not a token"):
        taken(file)


def test_control_tokens_of_ours_stay_unless_a_key_says_otherwise(tmp_path: Path) -> None:
    whole = KINDS["words"]()
    vocab = {
        name: number for number, name in enumerate([*SPECIAL_TOKENS, *sorted(document_of(whole)["model"]["vocab"])[:9]])
    }
    model = tokenizers.models.WordLevel(vocab, unk_token="<unk>")
    whole.model = model
    file = write(tmp_path, document_of(whole))
    found = load_foreign_tokenizer(TokenizerConfig(file=str(file)))
    assert found.control_tokens == {}
    assert found.tokenizer.original_ids == ()
    other = load_foreign_tokenizer(TokenizerConfig(file=str(file), eos_token="<s>"))
    assert other.control_tokens == {PAD: "<pad>", UNK: "<unk>", EOS: "<s>"}


@pytest.mark.skipif(not WILD.exists(), reason="needs ../shared/data/wild")
def test_a_file_without_the_type_of_its_model_as_published() -> None:
    file = WILD / "legacy_tokenizer.json"
    found = load_foreign_tokenizer(TokenizerConfig(file=str(file)))
    theirs = tokenizers.Tokenizer.from_file(str(file))
    assert found.control_tokens == ROLES["bert"]
    for line in lines_of(100):
        ids = found.tokenizer.encode(line)
        assert there(found.tokenizer, ids) == theirs.encode(line, add_special_tokens=False).ids


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("{", r"is not JSON|not JSON"),
        ("[]", "not a JSON object"),
        ('{"version": "1.0"}', "it has no 'model'"),
        ('{"model": {"vocab": 3}}', "has no type, and tokenizers cannot read it"),
        ('{"model": {"type": "BPE", "vocab": {"a": 1000000}, "merges": []}}', "has 1 pieces, and ids up to 1,000,000"),
        ('{"model": {"type": "BPE", "vocab": {}, "merges": []}}', "has 0 pieces"),
        (
            '{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]]}}',
            "out of vocabulary|OutOfVocabulary|is not a",
        ),
    ],
)
def test_what_is_no_tokenizer_is_refused_with_the_reason(content: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=rf"x\.json: .*({message})"):
        taken(file)


@pytest.mark.parametrize(
    ("merges", "problem"),
    [
        (["▁ a", " "], r"its merge 2 \(' '\) is no pair of pieces: save it again"),  # its two spaces are lost
        ([["▁", "a"], ["a"]], r"its merge 2 \(\['a'\]\) is no pair of pieces"),
        ({}, "its merges are no list"),
    ],
)
def test_merges_that_are_no_pairs_are_named(merges: object, problem: str, tmp_path: Path) -> None:
    document = document_of(KINDS["llama"]())
    document["model"]["merges"] = merges
    with pytest.raises(DataError, match=problem):
        taken(write(tmp_path, document))


def test_a_text_is_no_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("one two three four\n")
    with pytest.raises(DataError, match=r"not a tokenizer in a form that tfm reads: a tokenizer\.json, a Sent"):
        taken(tmp_path / "x.txt")


def test_folders_without_one_tokenizer_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        taken(tmp_path / "none")
    with pytest.raises(DataError, match="this folder has none: empty"):
        taken(tmp_path)
    for name in ("a.spm", "b.spm"):
        (tmp_path / name).write_text("")
    with pytest.raises(DataError, match=r"this folder has several: name one \(a\.spm, b\.spm\)"):
        taken(tmp_path)
    for name in ("source.json", "target.json"):
        (tmp_path / name).write_text("")
    with pytest.raises(DataError, match="the tokenizers there are two"):
        taken(tmp_path / "tokenizer.json")


def test_keys_of_other_forms_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path, document_of(KINDS["words"]()))
    for key in ("codes_vocabulary", "pattern"):
        with pytest.raises(DataError, match=rf"is a tokenizer\.json, which has no use for tokenizer\.{key}"):
            taken(file, **{key: "x"})
    points = train([], TokenizerConfig(kind="codepoint"))
    points.save(tmp_path / "points.json")
    assert taken(tmp_path / "points.json").vocab_size == points.vocab_size
    with pytest.raises(DataError, match=r"has every character of Unicode: remove tokenizer\.eos_token"):
        taken(tmp_path / "points.json", eos_token="a")
    with pytest.raises(ValueError, match="pattern: only for a tokenizer that is taken"):
        TokenizerConfig(pattern="x")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"eos_token": "b"}')
    file = write(tmp_path / "theirs", document_of(KINDS["words"]()))
    (tmp_path / "theirs" / "special_tokens_map.json").symlink_to(secret)
    with pytest.raises(DataError, match="is a link out of its folder"):
        taken(file)


def test_a_snapshot_in_a_cache_of_the_hub_is_taken_as_it_lies(tmp_path: Path) -> None:
    repository = tmp_path / "models--x--y"
    blobs, snapshot = repository / "blobs", repository / "snapshots" / "abc"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    beside = {"tokenizer_config": {"pad_token": "the"}}
    write(tmp_path / "theirs", document_of(KINDS["words"]()), **beside)
    for number, name in enumerate(("tokenizer.json", "tokenizer_config.json")):
        (tmp_path / "theirs" / name).rename(blobs / str(number))
        (snapshot / name).symlink_to(Path("../../blobs") / str(number))
    for place in (snapshot, snapshot / "tokenizer.json"):
        assert load_foreign_tokenizer(TokenizerConfig(file=str(place))).control_tokens[PAD] == "the"


def test_a_tokenizer_that_draws_its_merges_cuts_a_text_always_alike(tmp_path: Path) -> None:
    """With `dropout` in the file of another program each text had other pieces whenever it was read."""
    document = document_of(KINDS["gpt2"]())
    plain = taken(write(tmp_path / "plain", document))
    document["model"]["dropout"] = 0.5
    drawn = taken(write(tmp_path / "drawn", document))
    lines = lines_of(50, seed=3)
    assert [drawn.encode(line) for line in lines] == [plain.encode(line) for line in lines]
    (tmp_path / "kept").mkdir()
    save_pair(drawn, drawn, tmp_path / "kept")
    assert load_pair(tmp_path / "kept")[0].encode_batch(lines) == plain.encode_batch(lines)
