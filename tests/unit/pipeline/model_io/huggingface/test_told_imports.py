"""Models of many languages made by transformers, with real kinds of tokenizers, compute here what they do there."""

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch

from tests.huggingface_languages import (
    BEGIN,
    END,
    GERMAN,
    KINDS,
    LINES,
    LONGEST,
    PAD,
    drawn,
    language,
    lead,
    m2m100,
    made,
    nllb,
    taken,
)
from tests.huggingface_models import our_logits, published
from tests.tiny_model import TEXTS
from tfm.data.dataset.directions import Direction
from tfm.model.config import ModelConfig
from tfm.pipeline.attention_page.forward_passes import make_token
from tfm.pipeline.attention_page.reading import trace_text
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.decoding.teacher_forcing import target_log_probs
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.model_io.export import ctranslate2_unsupported_part
from tfm.pipeline.model_io.huggingface.card import ModelCard
from tfm.pipeline.model_io.huggingface.export import to_huggingface
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.model_io.onnx.export import to_onnx
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.perplexity import perplexity
from tfm.pipeline.training.init_from import encoder_config
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import EOS_ID
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return made(request.param, tmp_path_factory.mktemp("told"))


def test_every_piece_has_its_row(model: Any) -> None:
    _, theirs, _, ours, row = model
    assert sorted(row) == list(range(theirs.config.vocab_size))
    assert ours.target_tokenizer.vocab_size == theirs.config.vocab_size
    assert row[:4] == [PAD, 3, BEGIN, END]


def test_a_source_is_read_as_theirs(model: Any) -> None:
    kind, _, tokenizer, ours, row = model
    for text in LINES:
        ids = torch.tensor([*ours.source_tokenizer.encode(text), EOS_ID])
        told = ours.model.split_off_language_prefix(ids, ours.model.source_layout(ids, torch.tensor([len(ids)])))
        assert [row[number] for number in told.source.tolist()] == tokenizer(text).input_ids, text
        assert row[told.prefix[0, -1]] == language(tokenizer, kind.codes[1])


def test_a_text_that_spells_a_language_is_text(model: Any) -> None:
    kind, _, _, ours, _ = model
    control = {*ours.source_tokenizer.languages.values(), 0, 2, 3}
    for code in (*kind.codes, "__de__", "<mask>", "</s>"):
        ids = ours.target_tokenizer.encode(f"a {code} dog")
        assert not control & {*ids}, code


def test_logits_are_theirs(model: Any) -> None:
    kind, theirs, tokenizer, ours, row = model
    code = language(tokenizer, kind.codes[1])
    for text, target in (("a dog runs .", "ein Hund rennt"), (TEXTS[0], GERMAN[1])):
        source, said = ours.source_tokenizer.encode(text), ours.target_tokenizer.encode(target)
        begun = torch.tensor([[*lead(theirs, code), *(row[number] for number in said)]])
        with torch.no_grad():
            wanted = theirs(input_ids=torch.tensor([tokenizer(text).input_ids]), decoder_input_ids=begun).logits[0]
        wanted = wanted[-len(said) - 1 :, row]
        assert wanted.std() > 0.1
        torch.testing.assert_close(our_logits(ours, source, said), wanted, atol=kind.exact, rtol=0)
        log_p = wanted.log_softmax(-1)[torch.arange(len(said) + 1), [*said, EOS_ID]].sum()
        assert target_log_probs(ours.model, [source], [said])[0] == pytest.approx(log_p.item(), abs=20 * kind.exact)


@pytest.mark.few(2)
def test_greedy_output_is_theirs_of_200_lines(model: Any) -> None:
    kind, theirs, tokenizer, ours, row = model
    lines, code = drawn(200), language(tokenizer, kind.codes[1])
    ids = ours.source_tokenizer.encode_batch(lines)
    found = decode(ours.model, ids, DecodingConfig(beam=1, max_length=LONGEST, length_norm="none"))
    begins = lead(theirs, code)
    forced = {"forced_bos_token_id": code} if len(begins) == 2 else {"decoder_start_token_id": code}
    read = tokenizer(lines, return_tensors="pt", padding=True)
    with torch.no_grad():
        written = theirs.generate(
            **read, **forced, num_beams=1, do_sample=False, max_new_tokens=LONGEST + 3, suppress_tokens=[BEGIN, PAD]
        ).tolist()
    ended = 0
    for n_best, said in zip(found, written, strict=True):
        assert said[: len(begins)] == begins
        said = said[len(begins) :]
        wanted = said[: said.index(END)] if END in said else said
        ended += len(wanted) < LONGEST
        assert [row[number] for number in n_best[0].ids] == wanted[:LONGEST]
    assert 3 < ended < 195
    assert len({tuple(each[0].ids) for each in found}) > 15


def test_attention_is_theirs_under_their_tokens(model: Any) -> None:
    kind, theirs, tokenizer, ours, row = model
    source, target = "a dog runs", "ein Hund"
    found = trace_text(ours, source, target, DecodingConfig())
    said = [row[number] for number in ours.target_tokenizer.encode(target)]
    begun = torch.tensor([[*lead(theirs, language(tokenizer, kind.codes[1])), *said]])
    theirs.set_attn_implementation("eager")
    with torch.no_grad():
        read = torch.tensor([tokenizer(source).input_ids])
        wanted = theirs(input_ids=read, decoder_input_ids=begun, output_attentions=True)
    there = {"encoder": wanted.encoder_attentions, "decoder": wanted.decoder_attentions}
    there["cross"] = wanted.cross_attentions
    for each in found.attentions:
        own = torch.from_numpy(each.weights).double()
        torch.testing.assert_close(own, there[each.kind][each.layer - 1][0], atol=1e-5, rtol=0)
        axes = found.axes[each.kind]
        assert own.shape[1:] == (len(axes.queries), len(axes.keys)) == (len(axes.notes), len(axes.keys))
    ids = [*ours.source_tokenizer.encode(source), EOS_ID]
    shown = [make_token(ours.source_tokenizer, number).text for number in ids]
    keys = [each.text for each in found.axes["encoder"].keys]
    order = [*range(1, len(ids))] if ours.config.languages == "m2m100" else [*range(2, len(ids)), 1]
    assert keys == [shown[place] for place in order]
    assert found.axes["decoder"].keys[ours.model.prefix_length - 1].text == shown[0]


def test_a_dataset_says_the_languages_of_its_rows(model: Any, tmp_path: Path) -> None:
    ours = model[3]
    plain = load_model(ours.folder, "cpu", torch.float64)
    lines, targets = ["a dog runs", TEXTS[0]], [["ein Hund rennt", GERMAN[1]]]
    rows = [Direction("eng", "deu", 2)]
    found, wanted = (
        perplexity(loaded, lines, targets, reporter=NullReporter(), directions=said)[0]["perplexity"].score
        for loaded, said in ((plain, rows), (ours, []))
    )
    assert found == wanted
    assert plain.for_direction(rows[0]).source_tokenizer.encode("a") == ours.source_tokenizer.encode("a")


def test_other_languages_give_other_logits(model: Any) -> None:
    _, _, _, ours, _ = model
    other = load_model(ours.folder, "cpu", torch.float64).for_languages("eng", "deu")
    texts = [loaded.source_tokenizer.encode("a dog") for loaded in (ours, other)]
    assert (our_logits(ours, texts[0], [8]) - our_logits(ours, texts[1], [8])).abs().max() > 1e-2


def test_it_is_not_exported_and_says_which_part(model: Any, tmp_path: Path) -> None:
    ours = model[3]
    told = f'model.languages = "{ours.config.languages}"'
    with pytest.raises(RecipeError, match="no class of transformers holds this model"):
        to_huggingface(ours, tmp_path, ModelCard())
    assert told in (ctranslate2_unsupported_part(ours.config) or "")
    assert not list(tmp_path.iterdir())


def test_a_script_that_knows_of_one_language_is_not_written(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra `onnx`")
    pytest.importorskip("onnx", reason="needs the extra `onnx`")
    named = with_named_languages(train(TEXTS, TokenizerConfig(kind="bpe", vocab_size=60, min_frequency=1)))
    ours = published(tmp_path / "model", tokenizer=named)
    with pytest.raises(RecipeError, match="begin with two languages"):
        to_onnx(ours, tmp_path, "fp32")
    (folder := tmp_path / "theirs").mkdir()
    to_huggingface(ours, folder, ModelCard())
    assert 'tokenizer(["eng_Latndeu_LatnA text."]' in (folder / "README.md").read_text("utf-8")


def with_named_languages(plain: Tokenizer) -> Tokenizer:
    whole = tokenizers.Tokenizer.from_str(plain._backend.to_str())
    whole.add_special_tokens([tokenizers.AddedToken(each, special=True) for each in ("eng_Latn", "deu_Latn")])
    return Tokenizer(whole)


def test_an_encoder_alone_is_told_nothing() -> None:
    stack = {"layers": 1, "dim": 8, "heads": 2, "feed_forward_dim": 8}
    given = ModelConfig.model_validate({"encoder": stack, "decoder": stack, "languages": "m2m100"})
    assert encoder_config(given).languages == "source"


def changed(folder: Path, name: str, **changes: Any) -> None:
    file = folder / name
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | changes), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "file", "changes", "reason"),
    [
        ("mbart", "config.json", {"decoder_start_token_id": END}, "has the language behind a source, and"),
        ("nllb", "config.json", {"decoder_start_token_id": 120}, "has the language before a source, and"),
        ("nllb", "config.json", {"pad_token_id": 0}, "pad_token_id = 0 is not supported"),
        ("mbart", "config.json", {"normalize_before": False}, "normalize_before = False is not supported"),
        ("mbart-50", "config.json", {"max_position_embeddings": 40}, "has 50 rows, not 42"),
        ("m2m100", "tokenizer_config.json", {"language_codes": "mine"}, "language_codes = 'mine' is not known"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, file: str, changes: Any, reason: str, tmp_path: Path) -> None:
    (folder := tmp_path / "theirs").mkdir()
    KINDS[name].made(folder)
    changed(folder, file, **changes)
    with pytest.raises(DataError) as raised:
        taken(folder)
    assert reason in str(raised.value)


@pytest.mark.parametrize("name", ["nllb", "mbart", "mbart-50"])
def test_a_tokenizer_of_another_class_says_it_in_its_file(name: str, tmp_path: Path) -> None:
    (folder := tmp_path / "theirs").mkdir()
    KINDS[name].made(folder)
    told = taken(folder).config.languages
    changed(folder, "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    assert taken(folder).config.languages == told == ("mbart" if name == "mbart" else "m2m100")
    changed(folder, "tokenizer.json", post_processor=None)
    with pytest.raises(DataError, match="before or behind a source"):
        taken(folder)


def test_without_its_vocabulary_it_says_how_to_get_one(tmp_path: Path) -> None:
    (folder := tmp_path / "theirs").mkdir()
    m2m100(folder)
    (folder / "vocab.json").unlink()
    with pytest.raises(DataError, match=r"has no tokenizer\.json: load and save its tokenizer with transformers"):
        taken(folder)


def test_the_suffix_of_older_nllb_is_refused(tmp_path: Path) -> None:
    (folder := tmp_path / "theirs").mkdir()
    nllb(folder, legacy_behaviour=True)
    with pytest.raises(DataError, match="has the language behind a source"):
        taken(folder)
