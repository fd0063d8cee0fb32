"""Folders whose settings and weights were changed by hand: what transformers computes of them, or a refusal."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tests.huggingface_encoders import made, transformers
from tests.huggingface_models import our_logits
from tests.unit.pipeline.model_io.huggingface.test_import import MADE, gpt2, llama, rows_of, taken
from tfm.model.layout import Layout
from tfm.pipeline.errors import DataError
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.tokenizer.special import EOS_ID


def change_settings(folder: Path, changes: Mapping[str, Any], file: str = "config.json") -> None:
    settings = json.loads((folder / file).read_text("utf-8")) | changes
    kept = {key: value for key, value in settings.items() if value is not ...}
    (folder / file).write_text(json.dumps(kept), "utf-8")


def change_weights(folder: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def check_masked_logits(folder: Path) -> LoadedModel:
    """The imported model, whose ids and logits are those of transformers, which reads the folder anew."""
    ours, tokenizer = taken(folder), transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).double().eval()
    ours.model.double()
    table = model.get_input_embeddings().weight.detach()
    row = [int((table - each).abs().sum(1).argmin()) for each in ours.model.embedding.table.weight.detach()]
    for text in ("the dog Runs!", "Café 北京 ½", "ΣΊΣΥΦΟΣ שלום"):
        ids, theirs = ours.source_tokenizer.encode(text), tokenizer(text, return_tensors="pt").input_ids
        assert [row[number] for number in ids] == theirs[0, 1:-1].tolist()
        read = torch.tensor([*ids, EOS_ID])
        with torch.no_grad():
            found = ours.model.output(ours.model(read, Layout.from_lengths(torch.tensor([len(read)]))))
            wanted = model(theirs).logits[0, 1:, row]
        torch.testing.assert_close(found[:, 4:], wanted[:, 4:], atol=1e-10, rtol=0)
    return ours


@pytest.mark.parametrize("name", ["BertForMaskedLM", "RobertaForMaskedLM"])
@pytest.mark.parametrize("tied", [True, False])
def test_of_two_biases_the_output_layer_s_own_counts(tied: bool, name: str, tmp_path: Path) -> None:
    """Files have two biases if tables are not tied, and transformers adds the one of the layer."""
    made(tmp_path / "theirs", name, tie_word_embeddings=tied)
    bias = "cls.predictions.bias" if name.startswith("Bert") else "lm_head.bias"
    own = bias.replace(".bias", ".decoder.bias")
    change_weights(tmp_path / "theirs", lambda weights: weights.update({own: weights[bias].flip(0)}))
    check_masked_logits(tmp_path / "theirs")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("BertForMaskedLM", {"tokenizer_class": "DistilBertTokenizer", "do_lower_case": False}),
        ("BertForMaskedLM", {"tokenizer_class": "ElectraTokenizerFast", "do_lower_case": False}),
        ("RobertaForMaskedLM", {"tokenizer_class": "BartTokenizer", "add_prefix_space": True}),
        ("RobertaForMaskedLM", {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True}),
    ],
)
def test_the_settings_of_a_tokenizer_count_for_classes_alike(
    name: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    made(tmp_path / "theirs", name)
    change_settings(tmp_path / "theirs", settings, "tokenizer_config.json")
    check_masked_logits(tmp_path / "theirs")


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
@pytest.mark.parametrize("name", MADE)
def test_an_output_whose_own_table_is_missing_is_refused(name: str, tmp_path: Path) -> None:
    """The table of the input stood in for one that transformers makes up at random."""
    (folder := tmp_path / "theirs").mkdir()
    MADE[name](folder)
    change_weights(folder, lambda weights: weights.pop("lm_head.weight", None))
    change_settings(folder, {"tie_word_embeddings": False})
    with pytest.raises(DataError, match=r"it has no lm_head\.weight, and tie_word_embeddings = false"):
        taken(folder)


@pytest.mark.parametrize(("key", "layer"), [("attention_bias", "self_attn.o_proj"), ("mlp_bias", "mlp.up_proj")])
def test_biases_that_transformers_leaves_out_are_refused(key: str, layer: str, tmp_path: Path) -> None:
    (folder := tmp_path / "theirs").mkdir()
    llama(folder)
    name = f"model.layers.1.{layer}.bias"
    width = 16 if key == "attention_bias" else 24
    change_weights(folder, lambda weights: weights.update({name: torch.ones(width)}))
    with pytest.raises(DataError, match=f"{key} is not true in config.json, so that transformers leaves out {name}"):
        taken(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"rope_scaling": {"type": "linear", "factor": 3.0}},
        {"rope_scaling": {"rope_type": "linear", "factor": 3.0}, "rope_theta": 99.0},
        {"rope_scaling": {"type": "linear", "factor": 3.0}, "rope_parameters": ..., "rope_theta": 77.0},
        {"rope_parameters": ..., "rope_theta": 55.0},
    ],
)
def test_rotary_positions_are_those_of_the_key_that_transformers_reads(changes: dict[str, Any], tmp_path: Path) -> None:
    """A text that is longer than a model was trained for is often allowed by adding rope_scaling to config.json."""
    (folder := tmp_path / "theirs").mkdir()
    llama(folder)
    change_settings(folder, changes)
    ours, model = taken(folder), transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    row, ids = rows_of(folder, ours, model), [*range(9, 30)]
    with torch.no_grad():
        wanted = model(torch.tensor([[model.config.bos_token_id, *(row[number] for number in ids)]])).logits[0]
    torch.testing.assert_close(our_logits(ours, [], ids)[:, 9:], wanted[:, row[9:]], atol=1e-4, rtol=0)


@pytest.mark.parametrize("wanted", [True, False])
def test_a_gpt2_has_the_space_before_a_text_that_its_settings_want(wanted: bool, tmp_path: Path) -> None:
    (folder := tmp_path / "theirs").mkdir()
    model, _ = gpt2(folder)
    change_settings(folder, {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": wanted}, "tokenizer_config.json")
    document = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    document["pre_tokenizer"]["add_prefix_space"] = not wanted
    (folder / "tokenizer.json").write_text(json.dumps(document), "utf-8")
    ours, tokenizer = taken(folder), transformers.AutoTokenizer.from_pretrained(folder)
    row = rows_of(folder, ours, model)
    for text in ("a dog runs", "Ein Hund", " two"):
        assert [row[number] for number in ours.source_tokenizer.encode(text)] == tokenizer(text).input_ids


@pytest.mark.parametrize("has_settings", [True, False])
def test_a_gpt2_may_have_its_vocabulary_and_merges_alone(has_settings: bool, tmp_path: Path) -> None:
    """As folders of before 2020 have them; they were refused, where those of RoBERTa were read."""
    (folder := tmp_path / "theirs").mkdir()
    gpt2(folder)
    document = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    vocab = document["model"]["vocab"] | {each["content"]: each["id"] for each in document["added_tokens"]}
    (folder / "vocab.json").write_text(json.dumps(vocab), "utf-8")
    merges = [" ".join(pair) for pair in document["model"]["merges"]]
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]), "utf-8")
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    if has_settings:
        wanted = {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True}
        (folder / "tokenizer_config.json").write_text(json.dumps(wanted), "utf-8")
    ours = taken(folder)
    tokenizer = transformers.GPT2Tokenizer.from_pretrained(folder)
    row = rows_of(folder, ours, transformers.AutoModelForCausalLM.from_pretrained(folder))
    for text in ("a dog runs", "Ein Hund  läuft\n", " two", "a <|endoftext|> b", "שלום 😀"):
        theirs = tokenizer(text, split_special_tokens=True).input_ids
        assert [row[number] for number in ours.source_tokenizer.encode(text)] == theirs, text
    (folder / "added_tokens.json").write_text("{}", "utf-8")
    with pytest.raises(DataError, match=r"has no tokenizer\.json: load and save"):
        taken(folder)


def test_a_llama_whose_settings_deny_the_space_of_its_tokenizer_is_refused(tmp_path: Path) -> None:
    (folder := tmp_path / "theirs").mkdir()
    llama(folder)
    document = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    prepend = {"type": "Prepend", "prepend": "\u2581"}
    (folder / "tokenizer.json").write_text(json.dumps(document | {"normalizer": prepend}), "utf-8")
    change_settings(folder, {"tokenizer_class": "LlamaTokenizer", "add_prefix_space": True}, "tokenizer_config.json")
    taken(folder)
    change_settings(folder, {"add_prefix_space": False}, "tokenizer_config.json")
    with pytest.raises(DataError, match=r"add_prefix_space = false in tokenizer_config\.json, and its tokenizer\.json"):
        taken(folder)
