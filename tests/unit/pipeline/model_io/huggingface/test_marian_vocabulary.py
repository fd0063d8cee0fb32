"""A Marian whose vocab.json lacks pieces of source.spm and target.spm, as published ones do, and whose table is padded:
ids and logits are those of transformers."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.huggingface_models import our_logits
from tests.quick import mostly_slow
from tests.tiny_model import TEXTS
from tests.unit.pipeline.model_io.huggingface import test_import
from tests.unit.pipeline.model_io.huggingface.test_import import GERMAN, marian, taken
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.errors import DataError
from tfm.pipeline.model_io.huggingface.card import ModelCard
from tfm.pipeline.model_io.huggingface.export import to_huggingface
from tfm.tokenizer.special import EOS_ID, UNK, UNK_ID

transformers: Any = pytest.importorskip("transformers", reason="needs the extra `dev`")
pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
PADDED = 3
HARD = ("", "   ", "a  dog ", "☃ snow ☃☃", "ﬁne ①½", "dogs▁and")


def lacking(folder: Path, num_bias: int) -> Any:
    """A Marian without every third piece of its vocab.json, with rows beyond it, and with so many numbers of a bias
    more than pieces; its tokenizer."""
    marian(folder)
    numbers = json.loads((folder / "vocab.json").read_text("utf-8"))
    kept = [piece for piece, number in numbers.items() if number % 3 or piece.startswith("<") or len(piece) == 1]
    rows = [numbers[piece] for piece in kept] + [2] * PADDED
    weights = load_file(folder / "model.safetensors")
    weights = {
        name: weight[rows] if weight.shape[:1] == (len(numbers),) else weight.clone()
        for name, weight in weights.items()
    }
    weights["final_logits_bias"] = weights["final_logits_bias"][:, (rows * 2)[: len(kept) + num_bias]]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    (folder / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(kept)}), "utf-8")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    pad = len(kept) - 1
    config |= {"pad_token_id": pad, "decoder_start_token_id": pad, "vocab_size": len(rows)}
    (folder / "config.json").write_text(json.dumps(config | {"decoder_vocab_size": len(rows)}), encoding="utf-8")
    (folder / "generation_config.json").unlink()
    files = [str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")]
    return transformers.MarianTokenizer(*files)


@pytest.mark.parametrize("num_bias", [PADDED, 0])
def test_ids_and_logits_are_theirs(tmp_path: Path, num_bias: int) -> None:
    transformers.utils.logging.disable_progress_bar()
    (folder := tmp_path / "theirs").mkdir()
    tokenizer = lacking(folder, num_bias)
    ours = taken(folder)
    lacked = 0
    for side, asked, texts in (
        (ours.source_tokenizer, "text", (*TEXTS, *HARD)),
        (ours.target_tokenizer, "text_target", GERMAN),
    ):
        for text in texts:
            theirs = tokenizer(**{asked: text}, add_special_tokens=False)["input_ids"]
            assert side.pieces(text) == tokenizer.convert_ids_to_tokens(theirs), text
            lacked += theirs.count(tokenizer.unk_token_id)
            assert max(side.encode(text), default=0) < side.vocab_size
    assert lacked > 5
    names = json.loads((folder / "vocab.json").read_text("utf-8"))
    pieces = [ours.target_tokenizer.piece(number).removeprefix("\ue000") for number in range(4, 10)]
    source, target = ([*range(4, 8), UNK_ID], [*range(5, 10)])
    start = len(names) - 1
    row = {number: names[piece] for number, piece in enumerate(pieces, 4)} | {UNK_ID: names[UNK]}
    if num_bias == PADDED:  # transformers does not read a shorter bias
        model = transformers.MarianMTModel.from_pretrained(folder).eval()
        with torch.no_grad():
            read = torch.tensor([[*(row[number] for number in source), names["</s>"]]])
            wanted = model(read, decoder_input_ids=torch.tensor([[start, *(row[n] for n in target)]])).logits[0]
        found = our_logits(ours, source, target)
        torch.testing.assert_close(found[:, [*row]], wanted[:, [*row.values()]], atol=1e-4, rtol=0)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("lacks", mostly_slow([False, True], True))
@pytest.mark.few(1)
def test_what_came_in_goes_out_and_comes_back(tmp_path: Path, lacks: bool, kind: str, monkeypatch: Any) -> None:
    """As after fine-tuning: transformers has the ids, the logits and the greedy text, and so has what is imported."""
    transformers.utils.logging.disable_progress_bar()
    # CTranslate2's converter takes the encoder's number of heads for both
    monkeypatch.setattr(test_import, "SMALL", test_import.SMALL | {"decoder_attention_heads": 2})
    monkeypatch.setattr(test_import, "sentencepiece", partial(test_import.sentencepiece, model_type=kind))
    (folder := tmp_path / "theirs").mkdir()
    lacking(folder, PADDED) if lacks else marian(folder)
    ours = taken(folder)
    (again := tmp_path / "again" / "theirs").mkdir(parents=True)
    to_huggingface(ours, again, ModelCard())
    back, tokenizer = taken(again), transformers.AutoTokenizer.from_pretrained(again)
    assert type(tokenizer).__name__ == "MarianTokenizer"
    for mine, other, asked, texts in (
        (ours.source_tokenizer, back.source_tokenizer, "text", TEXTS),
        (ours.target_tokenizer, back.target_tokenizer, "text_target", GERMAN),
    ):
        assert mine.document["model"] == other.document["model"]
        for text in (*texts, "", "   ", "\u2603 \u2603\u2603"):
            ids = tokenizer(**{asked: text}).input_ids
            assert ids == [*mine.encode(text), EOS_ID], text
        for text in ("<s> </s>", "a<pad>", "<begin>", "<unnumbered>", "\ue000"):
            assert mine.encode(text) == other.encode(text)
            assert not {0, 2, 3} & {*mine.encode(text)}
    model = transformers.MarianMTModel.from_pretrained(again).eval()
    for text in TEXTS:
        ids = ours.source_tokenizer.encode(text)
        found = [decode(each.model, [ids], DecodingConfig(beam=1))[0][0].ids for each in (ours, back)]
        read = tokenizer(text, return_tensors="pt")
        written = model.generate(**read, num_beams=1, max_new_tokens=len(found[0]) + 1)[0].tolist()
        assert [*found[0], EOS_ID] == [*found[1], EOS_ID] == written[1:]
        assert tokenizer.decode(written, skip_special_tokens=True) == ours.target_tokenizer.decode(found[0])
    _check_ctranslate2(again, ours, tokenizer, tmp_path / "engine")
    (third := tmp_path / "third").mkdir()
    to_huggingface(back, third, ModelCard())
    for name in ("vocab.json", "source.spm", "target.spm", "config.json", "tokenizer_config.json"):
        assert (third / name).read_bytes() == (again / name).read_bytes()


def _check_ctranslate2(folder: Path, ours: Any, tokenizer: Any, engine: Path) -> None:
    """CTranslate2's converter reads the folder, and the engine writes the greedy text."""
    ctranslate2: Any = pytest.importorskip("ctranslate2", reason="needs the extra `export`")
    ctranslate2.converters.TransformersConverter(str(folder)).convert(str(engine))
    translator = ctranslate2.Translator(str(engine), device="cpu", compute_type="float32")
    options = {"beam_size": 1, "suppress_sequences": [["<pad>"], ["<s>"]], "min_decoding_length": 0}
    for text in TEXTS:
        ids = ours.source_tokenizer.encode(text)
        found = decode(ours.model, [ids], DecodingConfig(beam=1, max_length=12))[0][0].ids
        source = tokenizer.convert_ids_to_tokens([*ids, EOS_ID])
        written = translator.translate_batch([source], max_decoding_length=12, **options)[0].hypotheses[0]
        assert written == tokenizer.convert_ids_to_tokens(found)


def test_a_bias_longer_than_the_table_is_refused(tmp_path: Path) -> None:
    (folder := tmp_path / "theirs").mkdir()
    lacking(folder, PADDED + 1)
    with pytest.raises(DataError, match=r"final_logits_bias is \(1, \d+\), and its table of pieces has \d+ rows"):
        taken(folder)
