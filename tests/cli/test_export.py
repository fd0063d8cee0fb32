"""Exported to CTranslate2, a model of every kind translates as it does here; what its format cannot hold is refused."""

import copy
import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.cli.user import Stages, tfm
from tests.onnx_models import onnxruntime
from tests.rounding import assert_rounds_like
from tests.tiny_training import WORDS
from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig, StackConfig
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.decoding.teacher_forcing import target_log_probs
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io import export
from tfm.pipeline.model_io.export import to_ctranslate2, vocabulary_tokens
from tfm.pipeline.model_io.loaded_model import LoadedModel, load_model
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import EOS_ID
from tfm.tokenizer.train import train

KINDS: dict[str, dict[str, Any]] = {
    "pre-norm": {},
    "post-norm, GELU": {"norm": "post", "activation": "gelu"},
    "learned positions, tanh, untied": {"positions": "learned", "activation": "tanh", "tie": "none"},
    "positions of fairseq": {"positions": "fairseq", "tie": "none"},
    "no positions, unscaled": {"positions": "none", "scale_embedding": False},
    "normed embeddings, post-norm": {"embedding_norm": True, "norm": "post"},
    "an output that ends early": {"output_bias": True},
    "stacks of two shapes": {
        "encoder": StackConfig(layers=1, dim=24, heads=3, feed_forward_dim=16),
        "tie": "output",
    },
}


def documented_settings() -> dict[str, Any]:
    """The settings with which docs/exchange/README.md says that an engine writes what `tfm` does."""
    page = (Path(__file__).parents[2] / "docs" / "exchange" / "README.md").read_text("utf-8")
    (call,) = re.findall(r"translate_batch\(\s*\[source\], (.*?)\s*\)\n", page)
    found: dict[str, Any] = eval(f"dict({call})", {})
    return found


def loaded(folder: Path, **changes: Any) -> LoadedModel:
    """A model with random weights, larger than a beginner's so that it is sure of something."""
    stack = StackConfig(layers=2, dim=16, heads=2, feed_forward_dim=32)
    dropout = DropoutConfig(residual=0, embedding=0)
    config = ModelConfig(**{"encoder": stack, "decoder": stack, "max_length": 64, "dropout": dropout} | changes)
    tokenizer = train([WORDS], TokenizerConfig(kind="bpe", vocab_size=60, min_frequency=1))
    model = build(config, source_vocab=tokenizer.vocab_size, target_vocab=tokenizer.vocab_size, seed=2).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(1.5)
            else:
                parameter.add_(torch.linspace(-0.2, 0.2, len(parameter)))
        if config.output_bias:
            model.output.bias[EOS_ID] += 4  # some texts end before they begin
    return LoadedModel(model, tokenizer, tokenizer, config, folder)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.few(3)
def test_it_translates_and_scores_as_here(kind: str, tmp_path: Path) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2", reason="needs the extra `export`")
    ours = loaded(tmp_path, **KINDS[kind])
    to_ctranslate2(ours, tmp_path)
    draw = random.Random(1)
    sources, targets = ([[draw.randrange(4, 40) for _ in range(draw.randint(1, 9))] for _ in range(40)] for _ in "st")
    pieces = vocabulary_tokens(ours.source_tokenizer)
    spelled = [[[pieces[number] for number in ids] for ids in side] for side in (sources, targets)]
    engine = ctranslate2.Translator(str(tmp_path), device="cpu", compute_type="float32")

    greedy = documented_settings() | {"max_decoding_length": 12}
    theirs = [found.hypotheses[0] for found in engine.translate_batch(spelled[0], **greedy)]
    found = decode(ours.model, sources, DecodingConfig(beam=1, max_length=12))
    assert theirs == [[pieces[number] for number in one[0].ids] for one in found]
    assert len({tuple(each) for each in theirs}) > 10
    assert [] in theirs or kind != "an output that ends early"

    log_probs = [sum(scored.log_probs) for scored in engine.score_batch(*spelled)]
    models = ours.model, copy.deepcopy(ours.model).double()
    plain, exact = (target_log_probs(model, sources, targets) for model in models)
    assert_rounds_like(torch.tensor(log_probs), torch.from_numpy(plain).float(), torch.from_numpy(exact))


def test_what_is_not_written_is_refused_and_it_is_said_that_it_is_we_who_do_not(tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2", reason="needs the extra `export`")
    for changes, what in (
        ({"embedding_dim": 8}, r"embeddings of another width \(8\)"),
        ({"architecture": "decoder_only"}, 'models of architecture = "decoder_only"'),
    ):
        with pytest.raises(RecipeError, match=rf"`tfm export` does not support {what}.* for CTranslate2 yet"):
            to_ctranslate2(loaded(tmp_path, **changes), tmp_path)


LACKING: dict[str, dict[str, Any]] = {
    'architecture = "decoder_only"': {"architecture": "decoder_only"},
    'mixing = "convolution"': {"mixing": "convolution"},
    "attention within a window (3)": {"window": 3},
    "a norm of queries and keys (qk_norm)": {"qk_norm": True},
    "heads that share keys and values": {"decoder": StackConfig(key_value_heads=2)},
    "whose widths are not dim / heads": {"encoder": StackConfig(value_dim=32)},
    'normalization = "batch"': {"normalization": "batch"},
    'model.residual = "none"': {"residual": "none"},
    'model.feed_forward = "none"': {"feed_forward": "none"},
    "model.attention_projections = false": {"attention_projections": False},
    'model.values = "keys"': {"values": "keys"},
    "model.output_projection = false": {"output_projection": False},
    'model.lookup = "hard"': {"lookup": "hard"},
    'model.mask = "strict"': {"mask": "strict"},
    'model.positions_join = "attention"': {"positions_join": "attention"},
    'positions = "sinusoidal_from_one"': {"positions": "sinusoidal_from_one"},
    'positions_join = "concatenate"': {"positions_join": "concatenate"},
    'the activation "swiglu"': {"activation": "swiglu"},
}


@pytest.mark.parametrize("what", LACKING)
def test_parts_that_are_not_written_are_named(what: str) -> None:
    assert what in str(export.ctranslate2_unsupported_part(ModelConfig.model_validate(LACKING[what])))
    assert export.ctranslate2_unsupported_part(ModelConfig()) is None


def test_the_missing_package_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    monkeypatch.setitem(sys.modules, "ctranslate2.specs", None)
    with pytest.raises(RecipeError, match=r'pip install "tfm-toolkit\[export\]"'):
        to_ctranslate2(loaded(tmp_path), tmp_path)
    assert not any(tmp_path.iterdir())
    assert set(export.EXPORT_FORMATS) == {"ctranslate2", "huggingface", "onnx"}


def test_the_command_publishes_an_artifact(stages: Stages, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2", reason="needs the extra `export`")
    made = tfm("export", stages.folder, "--to", "ctranslate2", "--out", tmp_path / "engine")
    assert made.code == 0, made.err
    assert {"model.bin", "tokenizer.json", "manifest.json"} <= {file.name for file in (tmp_path / "engine").iterdir()}
    assert "export" in tfm("inspect", tmp_path / "engine").out
    again = tfm("export", stages.folder / "model", "--to", "ctranslate2", "--out", tmp_path / "engine")
    assert "nothing to do" in again.err


def test_the_documented_code_cuts_texts_as_here_also_such_as_spell_control_tokens(
    stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tokenizer beside an engine, as its library reads it, took a typed </s> for the end of the text."""
    pytest.importorskip("ctranslate2", reason="needs the extra `export`")
    monkeypatch.chdir(tmp_path)
    assert tfm("export", stages.folder, "--to", "ctranslate2", "--out", "engine").code == 0
    page = (Path(__file__).parents[2] / "docs" / "exchange" / "README.md").read_text("utf-8")
    (code,) = re.findall(r"\n\n((?: {4}.*\n|\n)*? {4}print\(tokenizer\.decode.*\n)", page)
    ours = load_model(stages.folder / "model", "cpu").source_tokenizer
    for text in ("eins zwei", "eins </s> zwei", "<pad> drei <s>"):
        names: dict[str, Any] = {}
        exec(re.sub(r"^ {4}", "", code, flags=re.MULTILINE).replace("The dog sees the cats.", text), names)
        assert names["source"] == [ours.piece(number) for number in ours.encode(text)], text


def test_the_folder_for_onnxruntime_says_what_it_is(stages: Stages, tmp_path: Path) -> None:
    onnxruntime()
    words = ("export", stages.folder, "--to", "onnx", "--out", tmp_path / "out")
    made = tfm(*words)
    assert made.code == 0, made.err
    files = {"encoder.onnx", "decoder.onnx", "tokenizer.json", "config.json", "translate.py", "README.md"}
    assert files | {"manifest.json"} == {file.name for file in (tmp_path / "out").iterdir()}
    readme = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "| in | `past.LAYER.key` | float32 | batch, 2, past, 8 |" in readme
    assert "nothing to do" in tfm(*words).err
    assert "config changed" in tfm(*words, "--quantize", "int8").err
    assert "its matrices in 8 bits" in (tmp_path / "out" / "README.md").read_text("utf-8")
    for refused, flag in (("huggingface", ("--quantize", "int8")), ("onnx", ("--license", "mit"))):
        done = tfm("export", stages.folder, "--to", refused, "--out", tmp_path / "e", *flag)
        assert done.code == 2
        assert flag[0] in done.err
        assert not (tmp_path / "e").exists()


def test_the_folder_for_transformers_has_a_card(stages: Stages, tmp_path: Path) -> None:
    out = tmp_path / "dogs"
    words = ("export", stages.folder, "--to", "huggingface", "--out", out, "--language", "de", "--licence", "mit")
    made = tfm(*words, "--language", "en")
    assert made.code == 0, made.err
    files = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json"}
    assert files | {"README.md", "manifest.json"} == {file.name for file in out.iterdir()}
    card = (out / "README.md").read_text("utf-8")
    head = dict(line.split(": ", 1) for line in card.split("---")[1].strip().splitlines())
    assert json.loads(head["language"]) == ["de", "en"]
    assert json.loads(head["license"]) == "mit"
    assert "# dogs" in card
    assert "model-index" not in head
    assert "None are recorded" in card
    assert "train: train.de" in card
    assert str(stages.folder) not in card
    assert "nothing to do" in tfm(*words, "--language", "en").err
    assert "config changed" in tfm(*words).err
    refused = tfm("export", stages.folder, "--to", "ctranslate2", "--out", tmp_path / "e", "--licence", "mit")
    assert refused.code == 2
    assert "--license" in refused.err


def test_scores_beside_the_model_stand_in_the_card(recipe: Path) -> None:
    assert tfm("run", recipe, "--set", "training.max_steps=2").code == 0
    assert tfm("export", "runs/tiny", "--to", "huggingface", "--out", "out").code == 0
    card = Path("out/README.md").read_text("utf-8")
    head = next(line for line in card.splitlines() if line.startswith("model-index: "))
    (result,) = json.loads(head.partition(": ")[2])[0]["results"]
    scores = json.loads(Path("runs/tiny/scores/scores.json").read_text("utf-8"))["metrics"]
    found = {each["name"]: (each["value"], each["args"]["signature"]) for each in result["metrics"]}
    assert found == {name: (each["score"], each["signature"]) for name, each in scores.items()}
    assert f"| main | bleu | {scores['bleu']['score']:.4f} | `nrefs:1\\|case" in card

    other = tfm("train", "--recipe", recipe, "--set", "training.max_steps=3")
    assert other.code == 0, other.err
    assert tfm("export", "runs/tiny", "--to", "huggingface", "--out", "out").code == 0
    assert "None are recorded" in Path("out/README.md").read_text("utf-8")


@pytest.mark.parametrize("command", [("export", "--to", "huggingface", "--out", "out"), ("push", "--to", "me/mine")])
@pytest.mark.parametrize(
    ("flag", "value", "problem"),
    [
        ("--language", "english", "'english' is no code of a language"),
        ("--language", "", "'' is no code of a language"),
        ("--licence", "Apache 2.0", "'Apache 2.0' is no identifier of a license"),
    ],
)
def test_what_the_hub_would_not_take_in_a_card_is_refused(
    command: tuple[str, ...], flag: str, value: str, problem: str
) -> None:
    refused = tfm(command[0], "nowhere", *command[1:], flag, value)
    assert refused.code == 2
    assert problem in refused.err
