"""Folders whose config.json lacks keys, or fits its weights only in part: what transformers computes, or a refusal."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.huggingface_encoders import made, transformers
from tests.huggingface_models import logits_of_rows, our_logits
from tests.unit.pipeline.model_io.huggingface.test_import import gpt2, llama, pegasus, rows_of, taken
from tests.unit.pipeline.model_io.huggingface.test_odd_settings import (
    change_settings,
    change_weights,
    check_masked_logits,
)
from tfm.pipeline.errors import DataError
from tfm.pipeline.model_io.huggingface.received.default_settings import DEFAULT_SETTINGS
from tfm.pipeline.model_io.huggingface.registry import IMPORT_CLASSES

MADE = {"pegasus": pegasus, "gpt2": gpt2, "llama": llama}
PEGASUS_KEYS = ("is_encoder_decoder", "decoder_start_token_id", "scale_embedding", "attention_dropout")
LLAMA_KEYS = ("bos_token_id", "eos_token_id", "rms_norm_eps", "hidden_act", "attention_bias")


@pytest.mark.parametrize("model_type", DEFAULT_SETTINGS)
def test_defaults_are_those_of_the_class(model_type: str) -> None:
    theirs: Mapping[str, Any] = transformers.AutoConfig.for_model(model_type).to_dict()
    assert {key: theirs[key] for key in DEFAULT_SETTINGS[model_type]} == DEFAULT_SETTINGS[model_type]


def test_every_class_has_defaults() -> None:
    assert {each.model_type for each in IMPORT_CLASSES} == {*DEFAULT_SETTINGS}


@pytest.mark.parametrize(
    ("name", "key"),
    [
        *(("pegasus", key) for key in PEGASUS_KEYS),
        *(("llama", key) for key in LLAMA_KEYS),
        ("gpt2", "layer_norm_epsilon"),
        ("gpt2", "attn_pdrop"),
    ],
)
def test_a_key_that_is_missing_has_the_default_of_its_class(name: str, key: str, tmp_path: Path) -> None:
    """Without `is_encoder_decoder` a target began with a token of its own, and a default of its class was refused."""
    (folder := tmp_path / "theirs").mkdir()
    MADE[name](folder)
    change_settings(folder, {key: ...})
    auto = transformers.AutoModelForSeq2SeqLM if name == "pegasus" else transformers.AutoModelForCausalLM
    ours, model = taken(folder), auto.from_pretrained(folder).eval()
    row, source, target = rows_of(folder, ours, model), [9, 8, 12, 10], [14, 6, 7]
    wanted = logits_of_rows(model, row, source, target)
    found = our_logits(ours, source, target)
    torch.testing.assert_close(found[:, 4:], wanted[:, row[4:]], atol=1e-4, rtol=0)


@pytest.mark.parametrize("key", ["pad_token_id", "hidden_act", "layer_norm_eps", "hidden_dropout_prob"])
def test_an_encoder_whose_keys_are_missing_has_defaults_too(key: str, tmp_path: Path) -> None:
    made(tmp_path / "theirs", "RobertaForMaskedLM")
    change_settings(tmp_path / "theirs", {key: ...})
    check_masked_logits(tmp_path / "theirs")


def test_an_output_that_is_not_tied_by_default_has_its_table(tmp_path: Path) -> None:
    (folder := tmp_path / "theirs").mkdir()
    llama(folder)
    change_settings(folder, {"tie_word_embeddings": ...})
    taken(folder)
    change_weights(folder, lambda weights: weights.pop("lm_head.weight"))
    with pytest.raises(DataError, match=r"it has no lm_head\.weight, and tie_word_embeddings = false"):
        taken(folder)


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("llama", {"num_key_value_heads": 1}, r"k_proj\.weight is \(8, 16\): by config.json it has 4 rows, not 8"),
        ("llama", {"intermediate_size": 20}, r"gate_proj\.weight is \(24, 16\): by config.json it has 20 rows, not 24"),
        ("pegasus", {"encoder_ffn_dim": 20}, "encoder"),
    ],
)
def test_weights_of_which_a_part_would_be_left_out_are_refused(
    name: str, settings: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    """A Llama of fewer heads of keys was imported, with keys in place of its values."""
    (folder := tmp_path / "theirs").mkdir()
    MADE[name](folder)
    change_settings(folder, settings)
    with pytest.raises(DataError, match=reason):
        taken(folder)
