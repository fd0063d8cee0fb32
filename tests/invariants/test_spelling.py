"""What a user asks a model to write is written letter by letter, or refused: prefixes, prompts, targets, phrases."""

import random
import re

import pytest

from tests.tiny_model import TEXTS, tiny_model
from tfm.pipeline.api.model import Model
from tfm.pipeline.attention_page.reading import trace_text
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.constraints.phrases import forbidden_pieces, forced_pieces
from tfm.pipeline.decoding.constraints.spellings import is_word_character
from tfm.pipeline.errors import DataError
from tfm.pipeline.inference.generation.generator import TextGenerator
from tfm.pipeline.inference.generation.prompt_encoder import PromptEncoder
from tfm.pipeline.inference.translation import translate_lines
from tfm.pipeline.runtime.progress import NullReporter
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import UNK_ID
from tfm.tokenizer.train import train

KINDS = ("bpe", "unigram", "wordpiece", "word", "char", "byte")
UNKNOWN = "the Ж sea"
MAX_LETTERS = 12
"""Of a phrase: of longer ones not all spellings are looked for."""
SHORT = DecodingConfig(beam=2, max_length=4)


def tokenizer_of(kind):
    try:
        size = 400 if kind == "byte" else 60
        return train(TEXTS, TokenizerConfig.model_validate({"kind": kind, "vocab_size": size, "min_frequency": 1}))
    except ValueError as error:
        pytest.skip(f"no such kind: {error}")


def spells(tokenizer, text):
    return tokenizer.decode(tokenizer.encode(text)).strip() == text


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_to_be_written_is_written_or_refused(kind):
    tokenizer = tokenizer_of(kind)
    loaded = tiny_model(tokenizer=tokenizer)
    writer = TextGenerator(
        PromptEncoder(tiny_model(tokenizer=tokenizer, task="language_model", architecture="decoder_only")),
        SHORT,
        NullReporter(),
    )
    ways = {
        "a prefix": lambda text: (
            next(translate_lines(loaded, ["a dog"], SHORT, reporter=NullReporter(), prefixes=[text]))[0].text
        ),
        "the target": lambda text: trace_text(loaded, "a dog", text, SHORT).target,
        "the prompt": lambda text: writer.decode_encoded_prompt(text) + writer.generate_texts(text)[0].text,
    }
    for text in ("the sea", UNKNOWN):
        for what, write in ways.items():
            if spells(tokenizer, text):
                assert write(text).strip().startswith(text)
            else:
                with pytest.raises(DataError, match=f"{what} holds .*Ж.*cannot spell: remove it"):
                    write(text)


def test_a_prompt_in_python_is_refused_too():
    model = Model(tiny_model(task="language_model", architecture="decoder_only"), NullReporter())
    with pytest.raises(DataError, match='the prompt holds "Ж"'):
        model.generate(UNKNOWN)


CORPORA = {
    "latin": [*TEXTS, "the cat, the dog; and (the sea)!", "concat the cats' dog-cat ..."],
    "han": ["我看猫。猫看狗,我看海。", "狗看我。海很冷!", "我和猫看海。"],
    "devanagari": ["घर में कुत्ता है ।", "घरों में बिल्ली , कुत्ता और घर है ।"],
}


def stands_in(text, phrase):
    """Whether a text has a phrase, as whole words where it is of words with spaces around them."""
    for found in re.finditer(f"(?={re.escape(phrase)})", text):
        before, behind = text[: found.start()][-1:], text[found.start() + len(phrase) :][:1]
        goes_on = [is_word_character(phrase[0]) and before and is_word_character(before)]
        goes_on += [is_word_character(phrase[-1]) and behind and is_word_character(behind)]
        if not any(goes_on):
            return True
    return False


def phrases_of(texts, rng):
    """Words, pairs of words and punctuation of some texts."""
    found = []
    for text in texts:
        words = text.split()
        if words:
            first = rng.randrange(len(words))
            found += [words[first], " ".join(words[first : first + 2]), *re.findall(r"[^\w\s]", text)[:1]]
    return [phrase for phrase in dict.fromkeys(found) if "\ufffd" not in phrase and len(phrase) <= MAX_LETTERS]


def check_phrases(kind, script, seed, most):
    """Forbid, and force, phrases of what a model says without being asked."""
    texts, rng = CORPORA[script], random.Random(seed)
    size = 400 if kind == "byte" else 70
    settings = {"kind": kind, "min_frequency": 1, "vocab_size": size}
    loaded = tiny_model(tokenizer=train(texts, TokenizerConfig.model_validate(settings)))
    model = Model(loaded, NullReporter())
    said = model.translate(texts, beam=2, max_length=10)
    for phrase in rng.sample(known := phrases_of([*said, *texts], rng), min(most, len(known))):
        for text in model.translate(texts, beam=2, max_length=10, forbidden=[phrase]):
            assert not stands_in(text, phrase), f"{phrase!r} is forbidden"
        if UNK_ID in loaded.target_tokenizer.encode(phrase):
            with pytest.raises(DataError, match="cannot be spelled"):
                model.translate(texts, beam=4, max_length=12, forced=[phrase])
            continue
        for text in model.translate(texts, beam=4, max_length=12, forced=[phrase]):
            assert loaded.target_tokenizer.normalize(phrase) in text, f"{phrase!r} is forced"


@pytest.mark.few(3)
@pytest.mark.parametrize("script", CORPORA)
@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_a_forbidden_phrase_never_comes_up_and_a_forced_one_always_does(kind, script):
    check_phrases(kind, script, 1, 3)


@pytest.mark.slow
@pytest.mark.parametrize("script", CORPORA)
@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_pieces_spells_what_is_forbidden(kind, script):
    for seed in range(3):
        check_phrases(kind, script, seed, 12)


@pytest.mark.parametrize("phrase", [".", ",", "(", "。"])
def test_punctuation_is_cut_as_a_text_has_it(phrase):
    texts = ["the sea. the dog, asleep (the cat)", "我看猫。"]
    tokenizer = train(texts, TokenizerConfig(kind="bpe", vocab_size=60, min_frequency=1))
    inside = tokenizer.encode(f"the sea{phrase}")
    (pieces,) = forced_pieces(tokenizer, [phrase])
    if phrase != "(":
        assert tuple(inside[-len(pieces) :]) == pieces
    assert pieces in forbidden_pieces(tokenizer, [phrase])
