"""What transformers computes of an exported model is what we do: logits, ids of a text, greedy output."""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.huggingface_models import KINDS, our_logits, published, their_logits
from tfm.model.config import ModelConfig, StackConfig
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.export import to_ctranslate2
from tfm.pipeline.model_io.huggingface.card import ModelCard
from tfm.pipeline.model_io.huggingface.export import to_huggingface
from tfm.pipeline.model_io.huggingface.registry import EXPORT_CLASSES, find_export_class, unsupported_reason
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.tokenizer.special import PAD_ID

SOURCE, TARGET = [5, 6, 7, 8, 20, 9], [9, 10, 30, 12]
TEXT = "  a dog <s> runs </s>\t\tthrough THE snow स्नो שלום \u0001."


def exported(folder: Path, **changes: Any) -> tuple[LoadedModel, Path]:
    ours = published(folder / "model", **changes)
    (out := folder / "out").mkdir()
    to_huggingface(ours, out, ModelCard())
    return ours, out


def theirs(folder: Path) -> Any:
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra `dev`")
    transformers.utils.logging.disable_progress_bar()
    name = json.loads((folder / "config.json").read_text("utf-8"))["architectures"][0]
    model, about = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    assert not any(about.values()), about
    return model.eval()


def quick(*kinds: str, all_kinds: Iterable[str] = KINDS) -> list[Any]:
    """Every kind, those that are not named as slow ones."""
    return [pytest.param(kind, marks=[pytest.mark.slow] * (kind not in kinds)) for kind in all_kinds]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "kind",
    quick(
        *("pre-norm", "post-norm", "GPT-2, scaled, tanh", "Llama, grouped heads", "tagger"),
        *("masked", "masked, pre-norm, normed", "classifier, post-norm"),
    ),
)
def test_logits_are_the_same(kind: str, tmp_path: Path) -> None:
    name, changes = KINDS[kind]
    ours, folder = exported(tmp_path, **changes)
    model = theirs(folder)
    assert type(model).__name__ == name
    wanted = our_logits(ours, SOURCE, TARGET)
    assert wanted.std() > 0.1
    torch.testing.assert_close(their_logits(model, ours, SOURCE, TARGET), wanted, atol=1e-4, rtol=0)


GREEDY = ("pre-norm, untied, unscaled", "post-norm, untied, GELU", "GPT-2 that translates")


@pytest.mark.parametrize("kind", quick("post-norm, untied, GELU", all_kinds=GREEDY))
def test_greedy_output_is_the_same_also_through_ctranslate2(kind: str, tmp_path: Path) -> None:
    ours, folder = exported(tmp_path, **KINDS[kind][1])
    model, draw = theirs(folder), random.Random(1)
    sources = [[draw.randrange(4, 40) for _ in range(draw.randint(1, 9))] for _ in range(30)]
    found = [list(one[0].ids) for one in decode(ours.model, sources, DecodingConfig(beam=1, max_length=12))]
    assert len({tuple(each) for each in found}) > 6
    begins = [2] if kind.startswith("GPT") else []
    for source, wanted in zip(sources, found, strict=True):
        read = torch.tensor([[*source, 3, *begins]])
        mask = torch.ones_like(read)
        written = model.generate(read, attention_mask=mask, num_beams=1, max_new_tokens=13, forced_eos_token_id=3)
        assert written[0, read.shape[1] if begins else 1 :].tolist() == [*wanted, 3]
    if not begins:
        engine: Any = pytest.importorskip("ctranslate2", reason="needs the extra `export`")
        engine.converters.TransformersConverter(str(folder)).convert(str(tmp_path / "engine"))
        translator = engine.Translator(str(tmp_path / "engine"), device="cpu", compute_type="float32")
        piece = ours.source_tokenizer.piece
        spelled = [[piece(number) for number in [*source, 3]] for source in sources]
        options = {"beam_size": 1, "max_decoding_length": 12, "suppress_sequences": [["<pad>"], ["<s>"]]}
        translated = [each.hypotheses[0] for each in translator.translate_batch(spelled, **options)]
        assert translated == [[piece(number) for number in ids] for ids in found]


@pytest.mark.parametrize("activation", ["silu", "gelu_tanh"])
def test_ctranslate2_has_each_activation_that_is_written_for_it(activation: str, tmp_path: Path) -> None:
    engine: Any = pytest.importorskip("ctranslate2", reason="needs the extra `export`")
    ours = published(tmp_path / "model", norm="post", activation=activation)
    (out := tmp_path / "out").mkdir()
    to_ctranslate2(ours, out)
    sources = [[*range(first, first + 6)] for first in range(4, 40, 3)]
    found = [one[0].ids for one in decode(ours.model, sources, DecodingConfig(beam=1, max_length=12))]
    piece = ours.source_tokenizer.piece
    options: dict[str, Any] = {"beam_size": 1, "max_decoding_length": 12, "min_decoding_length": 0}
    options["suppress_sequences"] = [["<pad>"], ["<s>"]]
    translator = engine.Translator(str(out), device="cpu", compute_type="float32")
    written = translator.translate_batch([[*map(piece, source)] for source in sources], **options)
    assert [each.hypotheses[0] for each in written] == [[*map(piece, ids)] for ids in found]
    assert len({*found}) > 4


def test_texts_have_the_same_ids_there(tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra `dev`")
    around = {
        "pre-norm": ([], [3]),
        "GPT-2": ([2], []),
        "Llama that translates, GLU": ([], [3, 2]),
        "tagger": ([], [3]),
        "tagger, post-norm": ([2], [3]),
    }
    for kind, (before, after) in around.items():
        ours, folder = exported(tmp_path / kind.replace(" ", ""), **KINDS[kind][1])
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        ids = ours.source_tokenizer.encode(TEXT)
        assert 2 not in ids
        assert 3 not in ids
        assert tokenizer(TEXT).input_ids == [*before, *ids, *after]
        assert tokenizer.decode([*before, *ids, *after], skip_special_tokens=True) == ours.source_tokenizer.decode(ids)


def test_what_is_hidden_reads_as_there(tmp_path: Path) -> None:
    """Of a text in which the token for hidden pieces is spelled, probabilities are the same, and its own is none."""
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra `dev`")
    ours, folder = exported(tmp_path, **KINDS["masked, pre-norm, normed"][1])
    model, tokenizer = theirs(folder), transformers.AutoTokenizer.from_pretrained(folder)
    read = tokenizer("a dog<mask> the snow", return_tensors="pt")
    (place,) = (read.input_ids[0] == tokenizer.mask_token_id).nonzero().flatten().tolist()
    size = ours.source_tokenizer.vocab_size
    assert tokenizer.mask_token_id == size
    source = [PAD_ID if number == size else number for number in read.input_ids[0, 1:-1].tolist()]
    with torch.no_grad():
        logits = model(**read).logits[0, place]
    wanted = our_logits(ours, source, [])[place - 1].log_softmax(-1)
    torch.testing.assert_close(logits.log_softmax(-1)[:size], wanted, atol=1e-4, rtol=0)
    assert logits.softmax(-1)[size] < 1e-30
    assert '"fill-mask", "DIR")("A <mask>.")' in (folder / "README.md").read_text("utf-8")


def test_a_language_is_asked_for_by_its_token(tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra `dev`")
    plain = published(tmp_path / "plain").source_tokenizer
    ours, folder = exported(tmp_path, tokenizer=plain.with_languages("deu", "hin"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokens = {code: tokenizer.convert_tokens_to_ids(f">>{code}<<") for code in ("deu", "hin")}
    assert tokens == ours.source_tokenizer.languages
    for text in ("a dog", "  the sea is cold !"):
        assert tokenizer(f">>hin<<{text}").input_ids == [*ours.for_languages("hin").source_tokenizer.encode(text), 3]
    assert ">>deu<<A text." in (folder / "README.md").read_text("utf-8")


LACKING: dict[str, dict[str, Any]] = {
    "model.window = 3": {"window": 3},
    'model.normalization = "batch"': {"normalization": "batch"},
    'model.activation = "swiglu"': {"activation": "swiglu"},
    "model.embedding_dim = 8": {"embedding_dim": 8},
    "model.qk_norm = true": {"qk_norm": True},
    "model.encoder.key_value_heads = 2": {"encoder": StackConfig(key_value_heads=2)},
    "model.decoder.dim = 16": {"decoder": StackConfig(dim=16), "tie": "output"},
    'model.positions = "alibi"': {"architecture": "decoder_only", "task": "language_model", "positions": "alibi"},
    'model.pooling = "mean"': {"architecture": "encoder_only", "task": "classification"},
    "model.head_transform = false": {"architecture": "encoder_only", "task": "masked_language_model"},
    "model.embedding_norm = false": {"architecture": "encoder_only", "task": "tagging", "norm": "post"},
    'model.architecture = "recurrent"': {"architecture": "recurrent"},
}


@pytest.mark.parametrize("part", LACKING)
def test_a_part_that_no_class_holds_is_named(part: str) -> None:
    config = ModelConfig.model_validate(LACKING[part])
    assert find_export_class(config) is None
    assert part in unsupported_reason(config)


def test_a_part_that_is_new_is_refused_until_a_class_holds_it() -> None:
    class Newer(ModelConfig):
        frobnication: float = 0.0

    assert find_export_class(Newer()) is EXPORT_CLASSES[0]
    assert find_export_class(Newer(frobnication=0.5)) is None
    assert "model.frobnication = 0.5" in unsupported_reason(Newer(frobnication=0.5))


def test_two_vocabularies_are_refused(tmp_path: Path) -> None:
    ours = published(tmp_path / "model")
    two = LoadedModel(
        ours.model, ours.source_tokenizer, ours.source_tokenizer.with_languages("deu"), ours.config, tmp_path
    )
    with pytest.raises(RecipeError, match=r"PegasusForConditionalGeneration has one vocabulary.*tokenizer.shared"):
        to_huggingface(two, tmp_path, ModelCard())
