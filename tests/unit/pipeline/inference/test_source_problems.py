"""Sources of unknown pieces are warned of, with their share, whoever translates."""

import numpy as np
import pytest

from tests.tiny_model import TEXTS, numpy_of, tiny_model
from tfm.pipeline.api.model import Model
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.shortlist import NO_PIECE, Shortlist
from tfm.pipeline.inference.numpy_translation import NumpyModel, translate_stream
from tfm.pipeline.inference.source_problems import SourceProblems
from tfm.pipeline.inference.translation import translate_lines
from tfm.pipeline.runtime.progress import NullReporter
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.train import train

HANGUL = "한국어 문장 ."
SHORT = DecodingConfig(beam=1, max_length=3)


class Listening(NullReporter):
    def __init__(self):
        self.warnings = []

    def warn(self, text):
        self.warnings.append(text)


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece", "word", "char"])
@pytest.mark.parametrize("task", ["translation", "classification"])
def test_a_source_in_another_script_is_warned_of(kind, task):
    tokenizer = train(TEXTS, TokenizerConfig.model_validate({"kind": kind, "vocab_size": 60, "min_frequency": 1}))
    said = Listening()
    encoder = {"architecture": "encoder_only"} if task == "classification" else {}
    model = Model(tiny_model(tokenizer=tokenizer, task=task, **encoder), said)
    ask = model.classify if task == "classification" else model.translate
    ask(list(TEXTS))
    assert said.warnings == []
    ask([*TEXTS, HANGUL])
    assert len(said.warnings) == 1
    assert said.warnings[0].startswith("1 of 4 sources consists by half or more of what the model's vocabulary")
    ids = tokenizer.encode_batch([*TEXTS, HANGUL])
    share = 100 * sum(each.count(tokenizer.encode("문")[-1]) for each in ids) / sum(map(len, ids))
    assert f"({share:.1f} % of all pieces are unknown)" in said.warnings[0]


def test_the_path_without_torch_warns_of_it_too():
    loaded, said = tiny_model(), Listening()
    small = NumpyModel(numpy_of(loaded), loaded.source_tokenizer, loaded.target_tokenizer)
    list(translate_stream(lambda: small, lambda: loaded, [HANGUL, "a dog"], SHORT, reporter=said))
    assert [text.partition(" by half")[0] for text in said.warnings] == ["1 of 2 sources consists"]


@pytest.mark.parametrize("is_small", [False, True])
def test_a_shortlist_of_the_other_direction_is_warned_of(is_small):
    """Its pieces of the source, of one vocabulary with those of the target, have no links."""
    loaded, vocab = tiny_model(), tiny_model().source_tokenizer.vocab_size
    always = np.arange(vocab, dtype=np.int32)
    ids = sorted({piece for source in loaded.source_tokenizer.encode_batch(list(TEXTS)) for piece in source})
    lines = list(TEXTS) * 2
    for unlinked, is_warned in (([], False), (ids[: len(ids) // 10], False), (ids, True)):
        table = np.full((vocab, 1), 5, np.int32)
        table[unlinked] = NO_PIECE
        shortlist, said = Shortlist(table, always, vocab), Listening()
        if is_small:
            tokenizers = loaded.source_tokenizer, loaded.target_tokenizer
            small = NumpyModel(numpy_of(loaded), *tokenizers, shortlist=shortlist)
            list(translate_stream(lambda: small, lambda: loaded, lines, SHORT, reporter=said))  # noqa: B023
        else:
            list(translate_lines(loaded, lines, SHORT, reporter=said, shortlist=shortlist))
        assert [text.partition(" of the sources' pieces have no link")[0] for text in said.warnings] == (
            ["100 %"] if is_warned else []
        )
    few = Listening()
    list(translate_lines(loaded, ["a dog"], SHORT, reporter=few, shortlist=shortlist))
    assert few.warnings == []


def test_a_line_of_letters_without_pieces_is_unknown_and_an_empty_one_is_not():
    tokenizer, problems, said = tiny_model().source_tokenizer, SourceProblems(), Listening()
    problems.count_too_long([False, False])
    problems.count_unknown_pieces(tokenizer, ["한국어", " "], [[], []])
    problems.warn(said, 95)
    assert said.warnings[0].startswith("1 of 2 sources consists")
