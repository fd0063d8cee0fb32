"""A text that spells a control token is text, also to a tokenizer that learned from texts with such tokens."""

from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from tfm.data.foreign_tokenizers.loading import load_foreign_tokenizer
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID

OURS, BERT = ("<pad>", "<unk>", "<s>", "</s>"), ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
KINDS: dict[str, tuple[Any, Any]] = {
    "BPE": (models.BPE, trainers.BpeTrainer),
    "WordPiece": (models.WordPiece, trainers.WordPieceTrainer),
    "WordLevel": (models.WordLevel, trainers.WordLevelTrainer),
    "Unigram": (models.Unigram, trainers.UnigramTrainer),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", [OURS, BERT, (*OURS[1:], OURS[0])])
def test_no_text_has_a_control_token(names: tuple[str, ...], kind: str, tmp_path: Path) -> None:
    """Many texts are learned from with the tokens around each line, and a model finds these in texts, as ids 0 to 3."""
    model, trainer = KINDS[kind]
    pad, unk, begin, end = BERT if names == BERT else OURS
    tokens = {"unk_token": unk} if kind == "Unigram" else {}
    theirs = Tokenizer(model() if kind == "Unigram" else model(unk_token=unk))
    theirs.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    lines = [f"{begin} the dog runs {end} {pad}"] * 50 + ["a cat sat"] * 30
    theirs.train_from_iterator(lines, trainer(vocab_size=60, special_tokens=[*names], show_progress=False, **tokens))
    theirs.save(str(tmp_path / "tokenizer.json"))
    ours = load_foreign_tokenizer(TokenizerConfig(file=str(tmp_path))).tokenizer
    ids = ours.original_ids or range(ours.vocab_size)
    theirs.encode_special_tokens = True
    for line in ("the dog sat", "a cat runs", "dog cat"):
        assert [ids[number] for number in ours.encode(line)] == theirs.encode(line).ids
    for token in names:
        for text in (token, f"the {token} dog", f"a{token}b"):
            assert not {PAD_ID, BOS_ID, EOS_ID} & {*ours.encode(text)}, text
