"""Tiny tokenizers as `tokenizers` and `transformers` train and keep those that people publish."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from tests.ten_scripts import lines_of

LINES = lines_of(800, seed=1)
ALPHABET = pre_tokenizers.ByteLevel.alphabet()


def bert() -> tokenizers.Tokenizer:
    """WordPiece, lower-cased, [PAD] 0 to [MASK] 4."""
    whole = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    whole.normalizer, whole.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    whole.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    whole.train_from_iterator(
        LINES, trainers.WordPieceTrainer(vocab_size=500, special_tokens=special, show_progress=False)
    )
    whole.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return whole


def gpt2() -> tokenizers.Tokenizer:
    """BPE of bytes, with one token for all roles, behind all pieces."""
    whole = tokenizers.Tokenizer(models.BPE())
    whole.pre_tokenizer, whole.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    whole.train_from_iterator(
        LINES, trainers.BpeTrainer(vocab_size=600, initial_alphabet=ALPHABET, show_progress=False)
    )
    whole.add_special_tokens(["<|endoftext|>"])
    return whole


def t5() -> tokenizers.Tokenizer:
    """Unigram, <pad> 0, </s> 1, <unk> 2, sentinels behind."""
    whole = tokenizers.Tokenizer(models.Unigram())
    whole.normalizer, whole.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
    whole.decoder = decoders.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=600, special_tokens=special, unk_token="<unk>", show_progress=False)
    whole.train_from_iterator(LINES, trainer)
    whole.add_special_tokens(["<extra_id_0>"])
    whole.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return whole


def llama() -> tokenizers.Tokenizer:
    """BPE with bytes for unknown letters, <unk> 0, <s> 1, </s> 2."""
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    whole = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    whole.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    joined = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    whole.decoder = decoders.Sequence(joined)
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=special, limit_alphabet=150, show_progress=False)
    whole.train_from_iterator(LINES, trainer)
    document = json.loads(whole.to_str())
    document["added_tokens"] = document["added_tokens"][:3]
    return tokenizers.Tokenizer.from_str(json.dumps(document))


def words() -> tokenizers.Tokenizer:
    """Whole words; gaps between ids, and a token that is found in texts."""
    vocab = {word: 10 + 2 * number for number, word in enumerate(sorted({w for line in LINES for w in line.split()}))}
    whole = tokenizers.Tokenizer(models.WordLevel({"[unknown]": 0, **vocab}, unk_token="[unknown]"))
    whole.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return whole


KINDS: Mapping[str, Callable[[], tokenizers.Tokenizer]] = {
    "bert": bert,
    "gpt2": gpt2,
    "t5": t5,
    "llama": llama,
    "words": words,
}


def document_of(whole: tokenizers.Tokenizer) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(whole.to_str())
    return found


def legacy(document: dict[str, Any]) -> dict[str, Any]:
    """The same as `tokenizers` 0.8 wrote it: no type of the model, merges as texts, Metaspace with a prefix."""
    model = {key: value for key, value in document["model"].items() if key != "type"}
    if "merges" in model:
        model["merges"] = [" ".join(each) for each in model["merges"]]
    before = document["pre_tokenizer"]
    if before and before["type"] == "Metaspace":
        before = {"type": "Metaspace", "replacement": "▁", "str_rep": "▁", "add_prefix_space": True}
    return {**document, "model": model, "pre_tokenizer": before}


def write(folder: Path, document: Mapping[str, Any], **beside: object) -> Path:
    """tokenizer.json in a folder, and JSON files beside it, by their names without .json."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {"tokenizer": document, **beside}.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder / "tokenizer.json"
