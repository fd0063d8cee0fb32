"""Marian models whose source and target have a numbering and a table each, as transformers has them."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.huggingface_models import our_logits
from tests.tiny_model import TEXTS
from tests.unit.pipeline.model_io.huggingface.test_import import GERMAN, SMALL, sentencepiece, shaken, taken
from tests.unit.pipeline.model_io.huggingface.test_import_lines import STRONGER
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.model_io.huggingface.card import ModelCard
from tfm.pipeline.model_io.huggingface.export import to_huggingface
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID

transformers: Any = pytest.importorskip("transformers", reason="needs the extra `dev`")
pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")


def marian(folder: Path) -> Any:
    """As large OPUS-MT models are: target_vocab.json beside vocab.json; here also of another size, and the source's
    control tokens in another order."""
    transformers.utils.logging.disable_progress_bar()
    english = ["<unk>", "</s>", *sentencepiece(TEXTS * 5, 60, folder, "source.spm"), "<pad>"]
    german = ["</s>", "<unk>", *reversed(sentencepiece(GERMAN * 5, 70, folder, "target.spm")), "<pad>"]
    for file, pieces in (("vocab.json", english), ("target_vocab.json", german)):
        numbers = {piece: number for number, piece in enumerate(pieces)}
        (folder / file).write_text(json.dumps(numbers), encoding="utf-8")
    last = len(german) - 1
    while len(english) <= last:  # the padding of config.json is an id of both tables
        english.append(f"<more_{len(english)}>")
    special = {"pad_token_id": last, "decoder_start_token_id": last, "eos_token_id": 0, "forced_eos_token_id": 0}
    sizes = {"vocab_size": len(english) + 2, "decoder_vocab_size": len(german)}
    config = transformers.MarianConfig(**sizes, **SMALL, **special, share_encoder_decoder_embeddings=False)
    model = shaken(transformers.MarianMTModel(config))
    with torch.no_grad():
        model.final_logits_bias.normal_()
        for name, weight in model.named_parameters():
            weight.mul_(next((factor for part, factor in STRONGER.items() if part in name), 1))
    files = [str(folder / name) for name in ("source.spm", "target.spm", "vocab.json", "target_vocab.json")]
    tokenizer = transformers.MarianTokenizer(*files, separate_vocabs=True)
    model.save_pretrained(folder)
    return model, tokenizer


@pytest.fixture
def pair(tmp_path: Path) -> tuple[LoadedModel, Any, Any, Path]:
    (folder := tmp_path / "theirs").mkdir()
    model, tokenizer = marian(folder)
    return taken(folder), model, tokenizer, folder


def row_of(tokenizer: Any, numbers: dict[str, int], special: dict[int, int]) -> list[int]:
    """By our id the row there, told by the spelling of each piece."""
    found = dict(special)
    for number in range(tokenizer.vocab_size):
        piece = tokenizer.piece(number)
        if number not in found and piece in numbers:
            found[number] = numbers[piece]
    return [found.get(number, -1) for number in range(tokenizer.vocab_size)]


def test_ids_logits_and_greedy_output_are_theirs(pair: tuple[LoadedModel, Any, Any, Path]) -> None:
    ours, model, tokenizer, folder = pair
    assert ours.config.tie == "output"
    read, write = (json.loads((folder / name).read_text("utf-8")) for name in ("vocab.json", "target_vocab.json"))
    config = model.config
    start = config.decoder_start_token_id
    source = row_of(ours.source_tokenizer, read, {PAD_ID: read["<pad>"], 1: read["<unk>"], EOS_ID: read["</s>"]})
    target = row_of(ours.target_tokenizer, write, {PAD_ID: start, BOS_ID: start, 1: write["<unk>"], EOS_ID: 0})
    assert len({*source}) > 30
    assert len({*target}) > 30
    for texts, row, side, asked in (
        (TEXTS, source, ours.source_tokenizer, "text"),
        (GERMAN, target, ours.target_tokenizer, "text_target"),
    ):
        for text in texts:
            ids = tokenizer(**{asked: text}, add_special_tokens=False)["input_ids"]
            assert [row[number] for number in side.encode(text)] == ids

    draw = random.Random(2)
    some = [[draw.choice([n for n in range(4, len(row)) if row[n] >= 0]) for _ in range(7)] for row in (source, target)]
    found = our_logits(ours, *some)
    ids = torch.tensor([[*(source[n] for n in some[0]), read["</s>"]]])
    with torch.no_grad():
        wanted = model(ids, decoder_input_ids=torch.tensor([[start, *(target[n] for n in some[1])]])).logits[0]
    assert wanted.std() > 0.1
    named = [number for number in range(4, len(target)) if target[number] >= 0] + [EOS_ID, 1]
    assert len(named) == config.decoder_vocab_size - 1  # all but the padding, which begins
    torch.testing.assert_close(found[:, named], wanted[:, [target[n] for n in named]], atol=1e-4, rtol=0)

    outputs = set()
    for text in (*TEXTS, *(" ".join(reversed(text.split())) for text in TEXTS)):
        own = ours.source_tokenizer.encode(text)
        (one,) = decode(ours.model, [own], DecodingConfig(beam=1, max_length=10))[0]
        ids = torch.tensor([[*(source[n] for n in own), read["</s>"]]])
        options = {"num_beams": 1, "max_new_tokens": 11, "suppress_tokens": [start], "bad_words_ids": None}
        theirs = model.generate(ids, attention_mask=torch.ones_like(ids), **options)[0, 1:].tolist()
        assert [target[n] for n in (*one.ids, EOS_ID)][: len(theirs)] == theirs
        assert (
            ours.target_tokenizer.decode(one.ids).strip() == tokenizer.decode(theirs, skip_special_tokens=True).strip()
        )
        outputs.add(tuple(theirs))
    assert len(outputs) > 2


def test_what_is_missing_is_said_and_it_is_not_exported(
    pair: tuple[LoadedModel, Any, Any, Path], tmp_path: Path
) -> None:
    ours, _, _, folder = pair
    (out := tmp_path / "again").mkdir()
    with pytest.raises(RecipeError, match="one vocabulary"):
        to_huggingface(ours, out, ModelCard())
    file = folder / "vocab.json"
    numbers = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({piece: number + 1 for piece, number in numbers.items()}), encoding="utf-8")
    (again := tmp_path / "second" / "theirs").parent.mkdir()
    folder.rename(again)
    with pytest.raises(DataError, match=r"the numbers in vocab\.json are not 0, 1, 2"):
        taken(again)
