"""Small models of transformers that are an encoder alone, with random weights and real tokenizers, as folders."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tiny_model import TEXTS

transformers: Any = pytest.importorskip("transformers", reason="needs the extra `dev`")
import tokenizers  # noqa: E402
from tokenizers import models, normalizers, pre_tokenizers, trainers  # noqa: E402

SCRIPTS = (
    *TEXTS,
    "Übermut tut selten GUT , naïve Café-Besitzer São Paulo",
    "東京都は日本の首都です。 北京 hello",
    "Привет, мир! Ёлка й",
    "שלום עולם مرحبا بالعالم",
    "नमस्ते दुनिया स्नो",
    "ελληνικά ΣΊΣΥΦΟΣ ς",
    "안녕하세요 세계",
    "ﬁne ½ ² e\u0301 Z\u0301oe 1,234.5 don't #tag @x --",
    "𝔘nicode 😀 👩\u200d👩\u200d👧 zero\u200bwidth soft\u00adhyphen",
)
"""Of these vocabularies are learned, so that most of their letters are known, but those of the last one."""
ODD = (
    "",
    "  two  spaces \t tab ",
    "\u00a0no-break\u3000wide",
    "a\x00b\x07c \ufffd d",
    "ẞ İstanbul ǅ ŉ",
    "unknown ᚠᚢᚦ 🜁",
    "x" * 120,
    "a ##s ##dog 're 'LL",
)
CONTROL = ("a [MASK] b", "[CLS] x [SEP]", "<s> dog </s>", "the <mask> <pad><unk>", "[unused0] [PAD]")
SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 300,
    "type_vocab_size": 2,
}
NAMES = ["glad", "not so glad", "<s>", "LABEL_3", "Ärger"]
TAG_NAMES = ["O", "B-PER", "I-PER", "<unk>", "B-ÖRT"]


def lines_of(count: int) -> list[str]:
    """Lines of words of all scripts, in which upper case and control tokens come up."""
    draw, words = random.Random(7), " ".join((*SCRIPTS, *CONTROL)).split()
    return [" ".join(draw.choices([*words, "The", "DOG"], k=draw.randint(1, 12))) for _ in range(count)]


def word_pieces(*, lower: bool, size: int = 400) -> Any:
    """BERT's tokenizer, learned here; some of its pieces are none that a text can have, as in the published one."""
    whole = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    whole.normalizer = normalizers.BertNormalizer(lowercase=lower)
    whole.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    control = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=control, show_progress=False)
    whole.train_from_iterator(SCRIPTS[:-1], trainer)
    return transformers.BertTokenizer(vocab=whole.get_vocab(), do_lower_case=lower)


def byte_pairs(size: int = 420) -> Any:
    """RoBERTa's tokenizer, learned here; its mask is the last piece."""
    whole = tokenizers.Tokenizer(models.BPE())
    whole.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    whole.train_from_iterator(SCRIPTS, trainer)
    model = json.loads(whole.to_str())["model"]
    vocab = {**model["vocab"], "<mask>": len(model["vocab"])}
    return transformers.RobertaTokenizer(vocab=vocab, merges=[tuple(pair) for pair in model["merges"]])


def made(folder: Path, name: str, **changes: Any) -> tuple[Any, Any]:
    """A model of this class and its tokenizer, in a folder. changes: of its config.

    No weight is 0 or 1, and each is a multiple of 1/1024, so that sums of them are exact in fp32.
    """
    transformers.utils.logging.disable_progress_bar()
    is_bert = "Roberta" not in name
    tokenizer = word_pieces(lower=changes.pop("lower", True)) if is_bert else byte_pairs()
    class_of_config = getattr(transformers, name.partition("For")[0].removesuffix("Model") + "Config")
    names = TAG_NAMES if "Token" in name else NAMES
    if "Classification" in name:
        changes = {"id2label": dict(enumerate(names)), "label2id": {each: i for i, each in enumerate(names)}, **changes}
    roles = {"pad_token_id": tokenizer.pad_token_id}
    config = class_of_config(vocab_size=len(tokenizer), **(SMALL | roles | changes))
    model = getattr(transformers, name)(config)
    torch.manual_seed(4)
    with torch.no_grad():
        for parameter in model.parameters():
            drawn = parameter + torch.randn_like(parameter) * (0.2 if parameter.dim() == 1 else 0.6)
            parameter.copy_((drawn * 1024).round() / 1024)
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


def their_logits(model: Any, tokenizer: Any, texts: list[str]) -> Any:
    """Logits of texts, topped up with padding, and which places are text."""
    read = tokenizer(texts, return_tensors="pt", padding=True, truncation=True, split_special_tokens=True)
    with torch.no_grad():
        return model(**read).logits, read["attention_mask"].bool(), read["input_ids"]
