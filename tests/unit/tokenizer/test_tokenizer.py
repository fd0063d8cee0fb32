"""The tokenizer: its file is Hugging Face's own, a broken one is refused, a control token in text is text."""

import json
import unicodedata
from pathlib import Path
from typing import get_args

import pytest
import tokenizers
from transformers import PreTrainedTokenizerFast

from tfm.tokenizer.code_points import CodePoints, load_pair, load_tokenizer, save_pair
from tfm.tokenizer.config import Kind, Normalization, TokenizerConfig
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID, SPECIAL_TOKENS, UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

KINDS = get_args(Kind)
TRAINING = ["The cat sat on the mat, didn't it?", "Die Katze saß auf der Matte. 12 \u2581x ##y ①", "#a b</c> <d>"] * 3
TEXTS = [
    *TRAINING,
    "",
    " \t ",
    "unseen Ωmega ☃ \u2028 zz",
    "the\u00a0mat  on\nthe mat ¨ İ",
    "Çç e\u0301 \U0001f469\u200d\U0001f52c",
    "</ s> < s>",
]


@pytest.fixture(scope="module", params=KINDS)
def made(request: pytest.FixtureRequest) -> Tokenizer:
    return train(TRAINING, TokenizerConfig(kind=request.param, vocab_size=300))


def test_others_read_the_file_and_give_the_same_ids(made: Tokenizer, tmp_path: Path) -> None:
    made.save(tmp_path / "tokenizer.json")
    ids = made.encode_batch(TEXTS)
    assert any(ids)
    assert load_tokenizer(tmp_path / "tokenizer.json").encode_batch(tuple(TEXTS)) == ids
    assert [made.encode(text) for text in TEXTS] == ids
    if isinstance(made, CodePoints):  # others have no such model, and say so
        with pytest.raises(Exception, match="did not match any variant"):
            tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
        return
    plain = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert [plain.encode(text).ids for text in TEXTS] == ids
    fast = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    assert fast(TEXTS)["input_ids"] == ids


def test_saving_what_was_loaded_gives_the_same_bytes(made: Tokenizer, tmp_path: Path) -> None:
    made.save(tmp_path / "one.json")
    load_tokenizer(tmp_path / "one.json").save(tmp_path / "two.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_control_tokens_have_their_ids_and_are_not_decoded(made: Tokenizer) -> None:
    assert [made.piece(number) for number in (PAD_ID, UNK_ID, BOS_ID, EOS_ID)] == list(SPECIAL_TOKENS)
    ids = made.encode("the mat")
    assert made.decode([BOS_ID, *ids, EOS_ID, PAD_ID]) == made.decode(ids)
    assert made.decode_batch([ids, []]) == [made.decode(ids), ""]


def test_a_loaded_tokenizer_takes_a_control_token_in_text_for_text(made: Tokenizer, tmp_path: Path) -> None:
    made.save(tmp_path / "tokenizer.json")
    loaded = load_tokenizer(tmp_path / "tokenizer.json")
    for special in SPECIAL_TOKENS:
        for text in (special, f"the mat{special}", f"{special} the {special}mat"):
            assert {PAD_ID, BOS_ID, EOS_ID}.isdisjoint(loaded.encode(text))
            assert loaded.encode(text) == made.encode(text)


def test_a_lone_surrogate_is_encoded_as_the_replacement_character(made: Tokenizer) -> None:
    assert made.encode_batch(["mat \ud800", "mat"]) == made.encode_batch(["mat \ufffd", "mat"])
    assert made.normalize("mat \ud800") == "mat \ufffd"


def test_surfaces_of_pieces_are_the_text(made: Tokenizer) -> None:
    ids = made.encode("the mat, the cat")
    joined = "".join(made.surface(number) for number in ids if number != UNK_ID)
    assert joined.strip() == made.decode(ids)
    with pytest.raises(ValueError, match=f"no piece has id {made.vocab_size}"):
        made.piece(made.vocab_size)


def test_normalised_text() -> None:
    def normalized(text: str, **settings: object) -> str:
        return train(["a"], TokenizerConfig.model_validate({"min_frequency": 1, **settings})).normalize(text)

    text = "  ＡÄ\u00a0 ﬁ\n\u2028x\u3000"
    assert normalized(text) == "ＡÄ ﬁ x"
    assert normalized(text, lowercase=True) == "ａä ﬁ x"
    assert normalized(text, normalization="nfkc") == "AÄ fi x"
    assert normalized(text, normalization="nfkc", lowercase=True) == "aä fi x"
    assert normalized(text, normalization="nfd") == "ＡA\u0308 ﬁ x"
    assert normalized(text, normalization="nfkd", lowercase=True) == "aa\u0308 fi x"
    assert normalized("e\u0301", normalization="none") == "e\u0301"


@pytest.mark.parametrize("text", ["ΔΡΌΜΟΣ", "Δρόμος ΟΔΌΣ.", "ΣΣ Σ", "ΟΣΟ", "μεσ' ΠΩΣ;", "Ο.Σ.Ε."])
@pytest.mark.parametrize("form", ["none", "nfc", "nfd"])
def test_a_sigma_is_lower_cased_by_its_place(text: str, form: Normalization) -> None:
    """As Python has it, which knows Unicode's rule; what was a small letter stays as it is."""
    given = text if form == "none" else unicodedata.normalize(form.upper(), text)  # type: ignore[arg-type]
    made = train(["a"], TokenizerConfig(min_frequency=1, lowercase=True, normalization=form))
    assert made.normalize(given) == given.lower()


def test_a_pair_is_saved_and_loaded(tmp_path: Path) -> None:
    one, other = (train([text], TokenizerConfig(min_frequency=1)) for text in ("abc", "xyz"))
    (tmp_path / "shared").mkdir()
    save_pair(one, one, tmp_path / "shared")
    assert [path.name for path in (tmp_path / "shared").iterdir()] == ["tokenizer.json"]
    source, target = load_pair(tmp_path / "shared")
    assert source is target
    (tmp_path / "sides").mkdir()
    save_pair(one, other, tmp_path / "sides")
    assert sorted(path.name for path in (tmp_path / "sides").iterdir()) == ["source.json", "target.json"]
    source, target = load_pair(tmp_path / "sides")
    assert source.encode("abc") == one.encode("abc")
    assert target.encode("xyz") == other.encode("xyz")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not a tokenizer that tfm can use"),
        (b"{}", "is not a tokenizer that tfm can use"),
        (b'{"version": "1.0", "model": {"type": "None such"}}', "is not a tokenizer that tfm can use"),
        (b"\xff\xfe", "is not a tokenizer that tfm can use"),
        (b'{"model": {"type": "CodePoint"}}', "is not a tokenizer of code points"),
        (b'{"model": {"type": "CodePoint", "languages": []}, "normalizer": null}', "is not a tokenizer of code points"),
        (
            b'{"model": {"type": "CodePoint", "languages": ["deu", "deu"]}, "normalizer": {"type": "NFC"}}',
            "is not a tokenizer of code points",
        ),
    ],
)
def test_a_broken_file_is_refused_in_one_line(content: bytes, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        load_tokenizer(file)
    assert str(caught.value).startswith(f"{file}: {reason}")
    assert "\n" not in str(caught.value)


def test_a_file_with_other_control_tokens_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    train(["ab"], TokenizerConfig(min_frequency=1)).save(file)
    document = json.loads(file.read_text("utf-8"))
    vocab = document["model"]["vocab"]
    vocab["<s>"], vocab["</s>"] = vocab["</s>"], vocab["<s>"]
    document["added_tokens"] = []
    file.write_text(json.dumps(document), "utf-8")
    with pytest.raises(ValueError, match=r"control token <s> has id 3; expected 2"):
        Tokenizer.load(file)


def test_a_cut_off_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    train(["ab"], TokenizerConfig(min_frequency=1)).save(file)
    file.write_bytes(file.read_bytes()[:-50])
    with pytest.raises(ValueError, match="is not a tokenizer that tfm can use"):
        Tokenizer.load(file)


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_pair(tmp_path)
