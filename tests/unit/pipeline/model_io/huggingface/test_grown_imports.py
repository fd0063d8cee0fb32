"""Models of transformers whose vocabulary grows after their import: texts are cut as before, and they train on."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.huggingface_encoders import made
from tests.tiny_training import run, training, write_dataset
from tests.unit.pipeline.model_io.huggingface.test_import import GERMAN, LINES, MADE, taken
from tfm.model.config import ModelConfig
from tfm.pipeline.training import session
from tfm.tokenizer.growth.extension import is_extension, segment_new_pieces_by_old
from tfm.tokenizer.growth.trainer import GrowthTrainer
from tfm.tokenizer.tokenizer import Tokenizer

NEW = ("neunundneunzig Hunde rennen", "ein Schneehund rennt durch die Hundehütte", "runny dogs rundown")
LM: dict[str, Any] = {"architecture": "decoder_only", "task": "language_model"}


def imported(name: str, folder: Path, *, whole: bool = True) -> Path:
    """An imported model. whole: its tokenizer has a piece for each of its rows."""
    (theirs := folder / "theirs").mkdir()
    model, tokenizer = MADE[name](theirs)
    if whole and name == "pegasus":
        model.resize_token_embeddings(len(tokenizer))
        model.save_pretrained(theirs)
    return taken(theirs).folder


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["gpt2", "llama", "pegasus"])
def test_an_imported_model_grows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "draw_curves", lambda metrics, file: None)
    first = imported(name, tmp_path)
    old = Tokenizer.load(first / "tokenizer.json")
    trainer = GrowthTrainer(old, 15, 1)
    for line in (*NEW, *NEW[:2]):
        trainer.add(line)
    new = trainer.learn()
    assert trainer.num_new == 15
    assert is_extension(new, old)
    parts = dict(enumerate(segment_new_pieces_by_old(new, old), old.vocab_size))
    without = 0
    for line in (*LINES, *GERMAN, *NEW, *(f"{a} {b}" for a in GERMAN for b in NEW)):
        before, after = old.encode(line), new.encode(line)
        if max(after) < old.vocab_size:
            without += 1
            assert after == before
        if name != "pegasus":
            assert [each for number in after for each in parts.get(number, [number])] == before
    assert without > 5
    assert sum(map(len, new.encode_batch(NEW))) < sum(map(len, old.encode_batch(NEW)))

    still = {"max_steps": 1, "schedule": {"name": "constant", "peak": 1e-30, "warmup_steps": 0}}
    data = write_dataset(tmp_path / "dataset", words=" ".join(NEW[:2]), by=new, batch_tokens=512)
    config = training(**still, validation={"every_steps": 1, "bleu": False}, init_from=str(first))
    model = ModelConfig.model_validate({} if name == "pegasus" else LM)
    second = run(data, tmp_path / "second", config, model=model)
    own, trained = (load_file(each / "model.safetensors") for each in (first, second))
    tables = [key for key in own if len(own[key]) != len(trained[key])]
    assert len(tables) >= 1
    for key in tables:
        torch.testing.assert_close(trained[key][: old.vocab_size], own[key], rtol=0, atol=1e-20)
        for number, ids in parts.items():
            torch.testing.assert_close(trained[key][number], own[key][ids].mean(0))


def test_pieces_that_a_text_could_then_spell_are_a_reason_not_to(tmp_path: Path) -> None:
    first = imported("pegasus", tmp_path, whole=False)
    with pytest.raises(ValueError, match="a text that spells <unused:"):
        GrowthTrainer(Tokenizer.load(first / "tokenizer.json"), 5, 1)


@pytest.mark.parametrize("name", ["BertForMaskedLM", "RobertaForMaskedLM"])
def test_the_tokenizers_of_encoders_grow_too(name: str, tmp_path: Path) -> None:
    (theirs := tmp_path / "theirs").mkdir()
    made(theirs, name)
    old = taken(theirs).source_tokenizer
    trainer = GrowthTrainer(old, 15, 1)
    for line in (*NEW, *NEW[:2]):
        trainer.add(line)
    new = trainer.learn()
    assert trainer.num_new == 15
    assert is_extension(new, old)
    encoded = [(old.encode(line), new.encode(line)) for line in (*LINES, *GERMAN, *NEW, "[MASK] <s> [CLS] <mask>")]
    without = [(before, after) for before, after in encoded if max(after) < old.vocab_size]
    assert all(before == after for before, after in without)
    assert 5 < len(without) < len(encoded)
