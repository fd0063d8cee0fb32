"""Words are the corpus', never the tokenizer's: as many tags as words, whatever the words, tokenizer and normal form.

And for ordinary text the ids of a sentence are those of its text, so that encoders learn and are used alike.
"""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.dataset.examples import encode_rows
from tfm.data.dataset.split import Split
from tfm.data.dataset.store import load_split, write_split
from tfm.model.build import build
from tfm.model.config import CanineConfig, DropoutConfig, ModelConfig, StackConfig
from tfm.pipeline.inference.labelling import label_texts
from tfm.pipeline.inference.source_problems import SourceProblems
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.tasks.tagging import Tagging
from tfm.pipeline.tasks.task import TaskContext
from tfm.pipeline.training_config import TrainingConfig
from tfm.tokenizer.config import Kind, Normalization, TokenizerConfig
from tfm.tokenizer.labels import split_words
from tfm.tokenizer.normalization import WHITE_SPACE
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import LabelTrainer, train

STRANGE = (
    "´",
    "a´b",
    "ﷺ",
    "cat-日本",
    "soft\u00adhyphen",
    "\u200b",
    "ﬁ",
    "½",
    "ำ",
    "한국",
    "שלום",
    "नमस्ते",
    "\ufeff",
    "İ",
    "🙂",
    "##",
    "</s>",
)
WORDS = st.sampled_from((*STRANGE, "the", "cat", "Dog", "sees", "dogs.")) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=WHITE_SPACE), min_size=1, max_size=6
)
SENTENCES = st.lists(st.lists(WORDS, min_size=1, max_size=7), min_size=1, max_size=4)
STACK = StackConfig(layers=1, dim=8, heads=2, feed_forward_dim=8)
CONFIG = ModelConfig(
    architecture="encoder_only", task="tagging", encoder=STACK, max_length=400, dropout=DropoutConfig(residual=0)
)
TEXTS = ["the cat sees a Dog", "dogs see the cat .", "cat-dog soft hyphen"] * 3


def tagger(kind: Kind, form: Normalization, *, lowercase: bool = False, max_length: int = 400) -> LoadedModel:
    text = TokenizerConfig(kind=kind, normalization=form, lowercase=lowercase, vocab_size=300, min_frequency=1)
    source, names = train(TEXTS, text), LabelTrainer("tags")
    names.add("X Y")
    canine = CanineConfig(hashes=2, buckets=40, window=3, rate=2) if kind == "codepoint" else None
    target, config = names.learn(), CONFIG.model_copy(update={"max_length": max_length, "canine": canine})
    model = build(config, source_vocab=source.vocab_size, target_vocab=target.vocab_size, seed=1).double().eval()
    return LoadedModel(model, source, target, config, Path())


TAGGERS = {
    (kind, form): tagger(kind, form, lowercase=form == "nfkd")
    for kind in get_args(Kind)
    for form in ("none", "nfkc", "nfkd")
}


def split_of(sentences: list[list[str]], source: Tokenizer, target: Tokenizer, folder: Path) -> Split:
    """The sentences, all words with the tag X, as `tfm preprocess` writes and training reads them."""
    pairs = [(" ".join(words), " ".join(["X"] * len(words))) for words in sentences]
    with write_split(folder, texts=False, words=True) as writer:
        for chunk in encode_rows(pairs, source, target):
            sides = ((side.ids, side.lengths) for side in (chunk.source, chunk.target))
            writer.write(*sides, np.ones(len(chunk)), words=chunk.source.words)
    return load_split(folder)


@pytest.mark.parametrize("which", TAGGERS, ids="-".join)
@settings(max_examples=15)
@given(sentences=SENTENCES)
@pytest.mark.few(10)
def test_each_word_has_one_tag(which: tuple[Kind, Normalization], sentences: list[list[str]]) -> None:
    found = [
        best for (best,) in label_texts(TAGGERS[which], [" ".join(words) for words in sentences], SourceProblems())
    ]
    assert [count for _, _, count in found] == [len(words) for words in sentences]
    assert [len(text.split(" ")) for text, _, _ in found] == [len(words) for words in sentences]


@pytest.mark.parametrize("which", TAGGERS, ids="-".join)
@settings(max_examples=8)
@given(sentences=SENTENCES)
@pytest.mark.few(8)
def test_the_loss_is_over_the_tags_of_all_words_and_no_others(
    which: tuple[Kind, Normalization], sentences: list[list[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    loaded = TAGGERS[which]
    split = split_of(sentences, loaded.source_tokenizer, loaded.target_tokenizer, tmp_path_factory.mktemp("split"))
    context = TaskContext(TrainingConfig(), CONFIG, loaded.source_tokenizer, loaded.target_tokenizer, 64)
    task = Tagging.from_context(context)
    assert task.num_words(split).tolist() == [len(words) for words in sentences]
    batch = task.batch(split, np.arange(len(split))[::-1])
    num_words = sum(map(len, sentences))
    with torch.no_grad():
        counts, loss = task.evaluate(loaded.model, batch), task.loss(loaded.model, batch)
        alone = [task.evaluate(loaded.model, task.batch(split, np.array([row]))) for row in range(len(split))]
        given_tags = [labels.ids for each in task.predict(loaded.model, batch, 1) for labels in each]
    assert counts.count == loss.count == num_words
    torch.testing.assert_close(counts.nll, torch.stack([each.nll for each in alone]).sum(), rtol=0, atol=1e-9)
    assert [len(ids) for ids in given_tags] == [len(words) for words in sentences[::-1]]


@pytest.mark.parametrize("which", TAGGERS, ids="-".join)
def test_the_ids_of_ordinary_text_are_those_of_the_whole_text(which: tuple[Kind, Normalization]) -> None:
    tokenizer = TAGGERS[which].source_tokenizer
    for text in [*TEXTS, "  the  dog\tsees\u00a0cats ", "Ångström ﬁne 한국", "a"]:
        words = tokenizer.encode_words([text])[0]
        assert len(words) == len(split_words(text)) == len(text.split())
        assert [number for ids in words for number in ids] == tokenizer.encode(text)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_words_past_the_cut_have_no_tag_and_are_counted(kind: Kind) -> None:
    loaded, cuts = tagger(kind, "nfkc", max_length=9), SourceProblems()
    lines = ["the cat", "the cat sees a Dog " * 4, "", "dogs"]
    found = [count for ((_, _, count),) in label_texts(loaded, lines, cuts)]
    pieces = loaded.source_tokenizer.encode_words(lines)
    starts = [[sum(map(len, words[:place])) for place in range(len(words))] for words in pieces]
    assert found == [sum(start < 8 for start in of_line) for of_line in starts]
    long = sum(sum(map(len, words)) > 8 for words in pieces)
    assert (cuts.lines, cuts.cut, cuts.words) == (4, long, sum(map(len, pieces)) - sum(found))
    assert f"{long} of 4 sources" in cuts.warnings(8)[0]
    assert SourceProblems().warnings(8) == []
