"""Models of many languages made by transformers, with real kinds of tokenizers, compute here what they do there."""

import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.cli.user import tfm
from tests.huggingface_models import our_logits
from tests.tiny_model import TEXTS
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.decoding.teacher_forcing import forced_log_probs
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.model_io.export import not_written
from tfm.pipeline.model_io.huggingface.card import Card
from tfm.pipeline.model_io.huggingface.export import to_huggingface
from tfm.pipeline.model_io.huggingface.importing import import_model
from tfm.pipeline.model_io.huggingface.weights import halves_apart
from tfm.pipeline.model_io.loaded_model import LoadedModel, load_model
from tfm.pipeline.runtime.progress import Quiet
from tfm.tokenizer.special import EOS_ID, UNK_ID

transformers: Any = pytest.importorskip("transformers", reason="needs the extra `dev`")
GERMAN = ("ein Hund rennt durch den Schnee .", "zwei Hunde und eine Katze am Meer !", "Übermut tut selten gut ß")
LINES = [*TEXTS, *GERMAN, "  a  Dog runs", "ﬁne x", "שלום", "a\tb\u3000c", "Z\u0301oe 1234"]
SIZES = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 2, "dropout": 0.0}
SIZES |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 24, "decoder_ffn_dim": 20, "max_position_embeddings": 48}
BEGIN, PAD, END = 0, 1, 2  # there
LONGEST = 12
ENDS = {"M2M100": 10.0, "MBart": 5.0}


@dataclass(frozen=True)
class Kind:
    """made: folder -> a model there and its tokenizer. codes: there, from and into. exact: how near float64 comes."""

    made: Callable[[Path], Any]
    codes: tuple[str, str]
    exact: float


def sentencepiece(folder: Path, kind: str) -> list[tuple[str, float]]:
    """Train a model; its pieces with their scores."""
    trainer: Any = pytest.importorskip("sentencepiece", reason="needs the extra `dev`")
    made = BytesIO()
    trainer.SentencePieceTrainer.train(
        sentence_iterator=iter((*TEXTS, *GERMAN) * 5),
        model_writer=made,
        vocab_size=90,
        hard_vocab_limit=False,
        model_type=kind,
        minloglevel=2,
    )
    (folder / "pieces.model").write_bytes(made.getvalue())
    read = trainer.SentencePieceProcessor(model_proto=made.getvalue())
    return [(read.id_to_piece(number), read.get_score(number)) for number in range(3, read.get_piece_size())]


def model_of(config: Any, tokenizer: Any, folder: Path) -> Any:
    """A model with weights that are neither 0 nor 1, saved with its tokenizer."""
    torch.manual_seed(4)
    name = "MBart" if config.model_type == "mbart" else "M2M100"
    model = getattr(transformers, f"{name}ForConditionalGeneration")(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * (0.3 if parameter.dim() == 1 else 1.0))
        model.get_input_embeddings().weight[:, 0] = 0.0
        model.get_input_embeddings().weight[END, 0] = 1.0  # so that hypotheses end, some sooner and some later
        model.model.decoder.layer_norm.bias[0] = ENDS[name]
    if name == "MBart":
        model.final_logits_bias.normal_()
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model.double().eval(), tokenizer


def settings(size: int, **changes: Any) -> dict[str, Any]:
    special = {"bos_token_id": BEGIN, "pad_token_id": PAD, "eos_token_id": END, "decoder_start_token_id": END}
    return {"vocab_size": size, **SIZES, **special, "scale_embedding": True, **changes}


def nllb(folder: Path, **changes: Any) -> Any:
    """BPE of `tokenizers`, and a few of its languages."""
    import tokenizers
    from tokenizers import models, pre_tokenizers, trainers

    whole = tokenizers.Tokenizer(models.BPE(unk_token="<unk>"))
    whole.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    whole.train_from_iterator([*TEXTS, *GERMAN], trainers.BpeTrainer(vocab_size=110, special_tokens=special))
    learned = json.loads(whole.to_str())["model"]
    codes = ["deu_Latn", "eng_Latn", "zho_Hans", "zho_Hant"]
    tokenizer = transformers.NllbTokenizer(
        vocab=learned["vocab"], merges=[tuple(each) for each in learned["merges"]], additional_special_tokens=codes,
        src_lang="eng_Latn", **changes,
    )  # fmt: skip
    return model_of(transformers.M2M100Config(**settings(len(tokenizer) + 3)), tokenizer, folder)


def m2m100(folder: Path) -> Any:
    """SentencePiece of kind BPE, numbered by vocab.json; the languages follow, and words that are made up."""
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *(piece for piece, _ in sentencepiece(folder, "bpe"))]
    (folder / "numbers.json").write_text(json.dumps({piece: number for number, piece in enumerate(pieces)}), "utf-8")
    tokenizer = transformers.M2M100Tokenizer(str(folder / "numbers.json"), str(folder / "pieces.model"), src_lang="en")
    (folder / "numbers.json").unlink()
    return model_of(transformers.M2M100Config(**settings(len(pieces) + 108)), tokenizer, folder)


def mbart(folder: Path, name: str = "MBartTokenizer") -> Any:
    """Unigram in tokenizer.json, with the languages and a mask behind its pieces; begins with the language alone."""
    codes = getattr(transformers.models, name.removesuffix("Tokenizer").lower())
    codes = getattr(codes, f"tokenization_{name.removesuffix('Tokenizer').lower()}").FAIRSEQ_LANGUAGE_CODES
    special = [(each, 0.0) for each in ("<s>", "<pad>", "</s>", "<unk>")]
    vocab = [*special, *sentencepiece(folder, "unigram"), *((code, 0.0) for code in codes), ("<mask>", 0.0)]
    tokenizer = getattr(transformers, name)(vocab=vocab, src_lang="en_XX")
    start = tokenizer.convert_tokens_to_ids("de_DE") if name == "MBartTokenizer" else END
    return model_of(
        transformers.MBartConfig(**settings(len(tokenizer), decoder_start_token_id=start)), tokenizer, folder
    )


def mbart50(folder: Path) -> Any:
    return mbart(folder, "MBart50Tokenizer")


KINDS = {
    "nllb": Kind(nllb, ("eng_Latn", "deu_Latn"), 1e-5),  # sinusoids are computed in single precision there
    "m2m100": Kind(m2m100, ("en", "de"), 1e-5),
    "mbart": Kind(mbart, ("en_XX", "de_DE"), 1e-9),
    "mbart-50": Kind(mbart50, ("en_XX", "de_DE"), 1e-9),
}


EACH = [pytest.param(kind, marks=[] if kind == "nllb" else pytest.mark.slow) for kind in KINDS]
"""Of longer tests one kind is in the quick suite."""


def taken(folder: Path) -> LoadedModel:
    import_model(folder, folder.with_name("ours"), command=["tfm", "import"], reporter=Quiet())
    return load_model(folder.with_name("ours"), "cpu", torch.float64)


def rows_of(ours: LoadedModel, theirs: Any) -> list[int]:
    """By our id the row there, told by the table of the input, whose rows all differ."""
    table, own = theirs.get_input_embeddings().weight.detach(), ours.model.target_embedding.table.weight.detach()
    own = own[:, halves_apart(own.shape[1])]
    return [int((table - each).abs().sum(1).argmin()) for each in own]


def language(tokenizer: Any, code: str) -> int:
    token = f"__{code}__" if len(code) == 2 else code
    return int(tokenizer.convert_tokens_to_ids(token))


def lead(theirs: Any, code: int) -> list[int]:
    """What a target begins with there."""
    return [END, code] if theirs.config.decoder_start_token_id == END else [code]


def drawn(number: int) -> list[str]:
    draw, words = random.Random(number), sorted({word for text in (*TEXTS, *GERMAN) for word in text.split()})
    return [" ".join(draw.choice(words) for _ in range(draw.randint(1, 9))) for _ in range(number)]


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Kind, model and tokenizer there, and ours asked for German from English, with the rows of its ids there."""
    (folder := tmp_path_factory.mktemp("told") / "theirs").mkdir()
    kind = KINDS[request.param]
    theirs, tokenizer = kind.made(folder)
    ours = taken(folder)
    return kind, theirs, tokenizer, ours.towards("deu", "eng"), rows_of(ours, theirs)


def test_every_piece_has_its_row(model: Any) -> None:
    _, theirs, _, ours, row = model
    assert sorted(row) == list(range(theirs.config.vocab_size))
    assert ours.target_tokenizer.vocab_size == theirs.config.vocab_size
    assert row[:4] == [PAD, 3, BEGIN, END]


def test_a_source_is_read_as_theirs(model: Any) -> None:
    kind, _, tokenizer, ours, row = model
    for text in LINES:
        ids = torch.tensor([*ours.source_tokenizer.encode(text), EOS_ID])
        told = ours.model.told(ids, ours.model.source_layout(ids, torch.tensor([len(ids)])))
        assert [row[number] for number in told.source.tolist()] == tokenizer(text).input_ids, text
        assert row[told.lead[0, -1]] == language(tokenizer, kind.codes[1])


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
        assert forced_log_probs(ours.model, [source], [said])[0] == pytest.approx(log_p.item(), abs=20 * kind.exact)


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


def test_other_languages_give_other_logits(model: Any) -> None:
    _, _, _, ours, _ = model
    other = load_model(ours.folder, "cpu", torch.float64).towards("eng", "deu")
    texts = [loaded.source_tokenizer.encode("a dog") for loaded in (ours, other)]
    assert (our_logits(ours, texts[0], [8]) - our_logits(ours, texts[1], [8])).abs().max() > 1e-2


def test_it_is_not_exported_and_says_which_part(model: Any, tmp_path: Path) -> None:
    ours = model[3]
    told = f'model.languages = "{ours.config.languages}"'
    with pytest.raises(RecipeError, match="no class of transformers holds this model"):
        to_huggingface(ours, tmp_path, Card())
    assert told in (not_written(ours.config) or "")
    assert not list(tmp_path.iterdir())


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


def perplexity_there(model: Any, sources: list[str], targets: list[str]) -> float:
    """exp of the mean cross-entropy of the targets' pieces and end tokens, after what a target begins with."""
    kind, theirs, tokenizer, ours, row = model
    code, total, count = language(tokenizer, kind.codes[1]), 0.0, 0
    for source, target in zip(sources, targets, strict=True):
        said = [row[number] for number in ours.target_tokenizer.encode(target)]
        begun = torch.tensor([[*lead(theirs, code), *said]])
        with torch.no_grad():
            logits = theirs(input_ids=torch.tensor([tokenizer(source).input_ids]), decoder_input_ids=begun).logits[0]
        log_p = logits[-len(said) - 1 :].log_softmax(-1)
        total += sum(float(log_p[place, piece]) for place, piece in enumerate([*said, END]))
        count += len(said) + 1
    return math.exp(-total / count)


@pytest.mark.parametrize("model", EACH, indirect=True)
def test_from_the_command_line(model: Any, tmp_path: Path) -> None:
    kind, _, tokenizer, ours, row = model
    sources, targets = ["a dog runs .", TEXTS[0], TEXTS[1]], [GERMAN[0], GERMAN[1], "ein Hund"]
    for name, lines in (("en", sources), ("de", targets)):
        (tmp_path / f"text.{name}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    told = ("--to", "deu", "--from", kind.codes[0], "--device", "cpu")
    beam = ("--beam", "1", "--max-length", str(LONGEST))
    said = tfm("translate", ours.folder, tmp_path / "text.en", *told, *beam)
    assert said.code == 0, said.err
    ids = ours.source_tokenizer.encode_batch(sources)
    found = decode(ours.model, ids, DecodingConfig(beam=1, max_length=LONGEST))
    control = {*ours.source_tokenizer.languages.values(), UNK_ID}  # M2M100's tokenizer spells them
    written = [[row[number] for number in each[0].ids if number not in control] for each in found]
    spelled = [tokenizer.decode(each, skip_special_tokens=True).strip() for each in written]
    assert [each.strip() for each in said.out.splitlines()] == spelled

    files = ("--source", tmp_path / "text.en", "--reference", tmp_path / "text.de")
    scored = tfm("evaluate", "--model", ours.folder, *files, *told, "--metric", "perplexity", "--json")
    assert scored.code == 0, scored.err
    score = json.loads(scored.out)["metrics"]["perplexity"]["score"]
    assert score == pytest.approx(perplexity_there(model, sources, targets), rel=1e-4)

    read = tfm("attend", ours.folder, "a dog", "--target", "ein Hund", *told, "--json")
    assert read.code == 0, read.err
    code = ours.target_tokenizer.piece(ours.source_tokenizer.encode("a")[0])
    shown = json.dumps(json.loads(read.out)).count(json.dumps(code)[1:-1])
    assert shown

    for args, reason in ((("--to", "deu"), "--from"), (("--from", "eng"), "--to"), ((), "--to")):
        refused = tfm("translate", ours.folder, tmp_path / "text.en", *args, "--device", "cpu")
        assert refused.code == 65
        assert f"say which, {reason}" in " ".join(refused.err.split())


@pytest.mark.parametrize("model", EACH, indirect=True)
def test_fine_tuning_has_the_languages_in_its_sources_or_is_refused(model: Any, tmp_path: Path) -> None:
    ours = model[3]
    for name, text in (("en", "a dog runs\n"), ("de", "ein Hund rennt\n")):
        (tmp_path / f"text.{name}").write_text(text * 40, "utf-8")
    pair = (tmp_path / "text.en", tmp_path / "text.de")
    files = [word for split in ("train", "valid", "test") for word in (f"--{split}", *pair)]
    files += ["--tokenizer", ours.folder, "--max-length", "30"]
    start = ("--init-from", ours.folder, "--device", "cpu", "--max-steps", "12")

    plain = tfm("preprocess", *files, "--out", tmp_path / "plain")
    assert plain.code == 0, plain.err
    refused = tfm("train", "--data", tmp_path / "plain", *start, "--out", tmp_path / "refused")
    assert refused.code == 2, refused.err
    assert "say which languages each corpus has" in " ".join(refused.err.split())

    told = tfm("preprocess", *files, "--from", "eng", "--to", "deu", "--out", tmp_path / "told")
    assert told.code == 0, told.err
    trained = tfm(
        *("train", "--data", tmp_path / "told", *start, "--out", tmp_path / "run"),
        *("--set", "training.schedule.peak=0.01", "--set", "training.schedule.warmup_steps=1"),
    )
    assert trained.code == 0, trained.err
    after = load_model(tmp_path / "run" / "model", "cpu", torch.float64).towards("deu", "eng")
    source, target = after.source_tokenizer.encode("a dog runs"), after.target_tokenizer.encode("ein Hund rennt")
    before, now = (forced_log_probs(each.model, [source], [target])[0] for each in (ours, after))
    assert now > before + 0.5
