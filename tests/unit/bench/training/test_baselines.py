"""What is read of the contestants' logs, and what they are told."""

from dataclasses import fields
from pathlib import Path
from string import Template

import pytest

from bench.processes import ProcessError
from bench.training.baselines import EOLE_CONFIGS, PEERS_FOLDER, average_metrics, find_peers, parse_eole_log
from bench.training.pieces import write_pieces
from bench.training.workload import ModelSize, RecurrentSize, read_configs, set_options
from tfm.data.dataset.split import Split, TokenIdColumn
from tfm.model.config import ModelConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.section_validation import section_from_flags
from tfm.pipeline.training_config import TrainingConfig

EOLE_LOG = """
[2026-11-21 08:01:02,345 INFO] Start training loop and validate every 1000000 steps...
[2026-11-21 08:01:04,345 INFO] Step  1/   12; acc: 0.0; ppl: 28442.76; xent: 10.26; aux: 0.000; mtp: 0.000; \
attn_ent: 0.000; lr: 5.00e-04; sents:     250; bsz: 3465/3500/250; 1010/1020 tok/s;      3 sec;
[2026-11-21 08:01:05,245 INFO] Step  2/   12; acc: 3.1; ppl: 14442.76; xent: 9.58; aux: 0.000; mtp: 0.000; \
attn_ent: 0.000; lr: 5.00e-04; sents:     301; bsz: 3965/4000/301; 3970/4000 tok/s;      4 sec;
[2026-11-21 08:01:06,145 INFO] Step 11/   12; acc: 3.1; ppl: 14442.76; xent: 9.58; aux: 0.000; mtp: 0.000; \
attn_ent: 0.000; lr: 5.00e-04; sents:      90; bsz:  965/1000/ 90;  490/ 500 tok/s;      6 sec;
"""


def test_eole_is_measured_after_its_warm_up() -> None:
    assert parse_eole_log(EOLE_LOG, 1) == {"rate": 5000 / 3, "tokens": 2500}
    with pytest.raises(ProcessError):
        parse_eole_log(EOLE_LOG, 11)


def test_metrics_are_measured_after_the_warm_up_and_without_validation() -> None:
    lines = [
        {"event": "train", "step": 1, "tokens_per_second": 10.0, "seconds": 7.0},
        {"event": "train", "step": 2, "tokens_per_second": 100.0, "seconds": 8.0},
        {"event": "train", "step": 3, "tokens_per_second": 300.0, "seconds": 10.0},
        {"event": "valid", "step": 3, "seconds": 5.0},
    ]
    assert average_metrics(lines, 1) == {"rate": 700 / 3, "tokens": 350}
    with pytest.raises(ProcessError):
        average_metrics(lines, 3)


def test_pieces_are_words_of_the_ids(tmp_path: Path) -> None:
    split = Split(TokenIdColumn.from_lists([[4, 7], [5]]), TokenIdColumn.from_lists([[6], []]), weights=None)  # type: ignore[arg-type]
    write_pieces(split, 8, tmp_path)
    assert (tmp_path / "train.source").read_text() == "p4 p7\np5\n"
    assert (tmp_path / "train.target").read_text() == "p6\n\n"
    assert (tmp_path / "vocabulary.tsv").read_text() == "p4\t1\np5\t1\np6\t1\np7\t1\n"


def test_settings_come_back_as_the_config_they_were() -> None:
    sets = [
        "model.encoder.dim=64",
        "model.decoder.dim=64",
        "model.norm=post",
        "training.schedule.warmup_steps=3",
        "training.clip_norm=none",
    ]
    model, training = read_configs(None, sets)
    given = [word for word in set_options({"model": model, "training": training}) if word != "--set"]
    assert section_from_flags(ModelConfig, {}, given, other_sections=("training",)) == model
    assert section_from_flags(TrainingConfig, {}, given, other_sections=("model",)) == training


def test_what_a_parent_recipe_says_and_the_model_cannot_use_is_left_out() -> None:
    model, training = read_configs(Path("recipes/recurrent-multi30k.toml"), [])
    assert model.encoder.feed_forward_dim == 256
    words = set_options({"model": model, "training": training})
    assert "model.architecture=recurrent" in words
    assert "model.encoder.dim=256" in words
    assert not any("feed_forward_dim" in word for word in words)


def test_recurrent_peers_are_told_their_sizes_or_refused() -> None:
    sets = ["model.recurrent.bidirectional=false"]
    model, training = read_configs(Path("recipes/recurrent-multi30k.toml"), sets)
    size = RecurrentSize.from_config(model, training, 100)
    assert (size.layers, size.dim, size.embedding_dim, size.dropout) == (1, 256, 128, 0.3)
    keys = Template((PEERS_FOLDER / EOLE_CONFIGS["recurrent"]).read_text()).get_identifiers()
    assert {field.name for field in fields(RecurrentSize)} - {"vocab"} <= set(keys)
    for other in ("recurrent.bidirectional=true", "recurrent.attention=bahdanau", "recurrent.cell=gru", "tie=output"):
        config = read_configs(Path("recipes/recurrent-multi30k.toml"), [*sets, f"model.{other}"])[0]
        with pytest.raises(RecipeError, match="LSTMs of equal encoder and decoder"):
            RecurrentSize.from_config(config, training, 100)
    with pytest.raises(RecipeError, match="peers train Transformers"):
        ModelSize.from_config(model, training, 100)
    assert set(find_peers(model)) == {"plain", "eole"}


def test_peers_have_equal_stacks_and_one_table() -> None:
    config = TrainingConfig()
    assert ModelSize.from_config(ModelConfig(), config, 100).dim == 512
    for other in ("model.encoder.layers=2", "model.tie=output", "model.embedding_dim=8"):
        with pytest.raises(RecipeError, match="equal encoder and decoder"):
            ModelSize.from_config(read_configs(None, [other])[0], config, 100)


def test_eole_is_told_every_size() -> None:
    told = set(Template((PEERS_FOLDER / "train_eole.yaml").read_text("utf-8")).get_identifiers())
    sizes = {field.name for field in fields(ModelSize)} - {
        "norm_first",
        "vocab",
    }  # it has its own norms, and counts words
    assert told == sizes | {"source", "target", "vocabulary", "steps", "batch_tokens"}
