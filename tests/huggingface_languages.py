"""Small models of many languages as transformers makes them, with random weights and real kinds of tokenizers."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch

from tests.tiny_model import TEXTS
from tfm.pipeline.model_io.huggingface.importing import import_model
from tfm.pipeline.model_io.huggingface.weights import deinterleaving_permutation
from tfm.pipeline.model_io.loaded_model import LoadedModel, load_model
from tfm.pipeline.runtime.progress import NullReporter

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


def taken(folder: Path) -> LoadedModel:
    import_model(folder, folder.with_name("ours"), command=["tfm", "import"], reporter=NullReporter())
    return load_model(folder.with_name("ours"), "cpu", torch.float64)


def rows_of(ours: LoadedModel, theirs: Any) -> list[int]:
    """By our id the row there, told by the table of the input, whose rows all differ."""
    table, own = theirs.get_input_embeddings().weight.detach(), ours.model.target_embedding.table.weight.detach()
    own = own[:, deinterleaving_permutation(own.shape[1])]
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


def made(kind: str, folder: Path) -> Any:
    """Kind, model and tokenizer there, and ours asked for German from English, with the rows of its ids there."""
    (place := folder / "theirs").mkdir()
    theirs, tokenizer = KINDS[kind].made(place)
    ours = taken(place)
    return KINDS[kind], theirs, tokenizer, ours.for_languages("deu", "eng"), rows_of(ours, theirs)
