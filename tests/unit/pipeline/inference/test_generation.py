"""What a language model writes after a prompt, and how probable it finds what others wrote."""

import math
from dataclasses import dataclass
from os.path import commonprefix

import pytest
import tokenizers
import torch
from tokenizers import decoders, models

from tests.invariants.test_decoding import HashModel, decoder_only
from tests.tiny_model import tiny_model
from tfm.data.errors import DataError
from tfm.model.layout import Layout
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding import decode as decoding
from tfm.pipeline.decoding.constraints.lexical import BannedPieces
from tfm.pipeline.decoding.constraints.phrases import PhraseConstraints
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.decoding.search.hypothesis import NextPieces
from tfm.pipeline.decoding.streaming import PromptedStepper, generate_stream, prefill, truncate_context
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.inference.generation.continuations import score_continuations
from tfm.pipeline.inference.generation.generator import PromptError, TextGenerator
from tfm.pipeline.inference.generation.prompt_encoder import PromptEncoder
from tfm.pipeline.model_io.ensemble import Ensemble
from tfm.pipeline.runtime.progress import NullReporter
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID
from tfm.tokenizer.tokenizer import Tokenizer

CPU = torch.device("cpu")
SAMPLE = DecodingConfig(strategy="sample", n_best=3, seed=4)
PROMPT = [7, 8, 9]


class HashText(HashModel):
    """The same without a source: what comes next follows from all that was read, and that is counted."""

    @dataclass
    class State(HashModel.State):
        num_read: int = 0

        def select(self, rows):
            return HashText.State(self.hashes[rows], self.num_read)

    most_read = 0

    def empty_state(self, batch, device):
        return HashText.State(torch.full((batch,), 77))

    def start(self, source, layout):
        state = self.empty_state(layout.batch, source.device)
        for tokens in layout.pad(source).T:
            _, state = self.step(tokens, state)
        return state

    def step(self, tokens, state):
        predict, after = super().step(tokens, state)
        self.most_read = max(self.most_read, state.num_read + 1)
        return predict, HashText.State(after.hashes, state.num_read + 1)


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch):
    monkeypatch.setattr(decoding, "num_workers", lambda *_: 0)


@pytest.fixture(scope="module")
def lines():
    """A language model of lines."""
    return tiny_model(architecture="decoder_only", task="language_model", dtype=torch.float64, max_length=24)


@pytest.fixture(scope="module")
def running():
    """A language model of running text, in windows of 12 pieces."""
    loaded = tiny_model(architecture="decoder_only", task="language_model", dtype=torch.float64, block=12)
    with torch.no_grad():
        loaded.model.output.weight[EOS_ID].mul_(3)
    return loaded


def written(model, prompt, config, *, longest=12, context=64, continue_past_line_end=False, bans=None):
    """The pieces of each text, and the sums of their log-probabilities."""
    pieces, sums = [[] for _ in range(config.n_best)], [0.0] * config.n_best
    settings = {
        "longest": longest,
        "context": context,
        "continue_past_line_end": continue_past_line_end,
        "bans": bans,
        "device": CPU,
    }
    for some in generate_stream(model, [prompt] * config.n_best, range(config.n_best), config, **settings):
        for text, piece, log_prob in zip(some.texts, some.pieces, some.log_probs, strict=True):
            pieces[text].append(piece)
            sums[text] += log_prob
    return pieces, sums


@pytest.mark.parametrize("make", [HashText, decoder_only])
@pytest.mark.parametrize("prompt", [[], PROMPT])
def test_to_read_is_to_begin_and_step(make, prompt):
    model, pieces = make(), torch.tensor([[BOS_ID, *prompt]] * 2)
    with torch.inference_mode():
        state, other = prefill(model, pieces), model.empty_state(2, CPU)
        for tokens in pieces.T[:-1]:
            _, other = model.step(tokens, other)
        for tokens in (pieces[:, -1], torch.tensor([5, 6])):
            (predict, state), (also, other) = model.step(tokens, state), model.step(tokens, other)
            torch.testing.assert_close(predict(slice(None)), also(slice(None)), atol=1e-12, rtol=0)


@pytest.mark.parametrize("make", [HashText, decoder_only, lambda: Ensemble([decoder_only(1), decoder_only(2)])])
@pytest.mark.parametrize("prompt", [[], PROMPT])
@pytest.mark.parametrize("config", [SAMPLE, DecodingConfig(beam=1)], ids=["sample", "greedy"])
@pytest.mark.few(6)
def test_what_is_written_is_what_decoding_finds(make, prompt, config):
    model = make()
    config = config.model_copy(update={"max_length": 30, "no_repeat_ngram": 2, "min_length": 3, "length_norm": "none"})
    pieces, sums = written(model, prompt, config, longest=30, bans=BannedPieces.from_config(2, prompt=prompt))
    (found,) = decode(
        PromptedStepper(model, [prompt]), [[BOS_ID, *prompt]], config, phrases=PhraseConstraints(prompt=prompt)
    )
    wanted = sorted(zip(sums, pieces, strict=True), reverse=True)
    assert [[*each.ids, EOS_ID] for each in found] == [each for _, each in wanted]
    assert [each.log_prob for each in found] == pytest.approx([each for each, _ in wanted], abs=1e-9)
    if isinstance(model, HashText) and config.n_best > 1:
        assert len({len(each) for each in pieces}) > 1, "all texts are of one length"


def test_a_beam_finds_the_best_after_the_prompt():
    model = HashText(12, sharpness=3)
    config = DecodingConfig(beam=600, max_length=2, length_norm="none")
    ((best,),) = decode(PromptedStepper(model, [PROMPT]), [[BOS_ID]], config)

    def log_prob(ids):
        state, total = prefill(model, torch.tensor([[BOS_ID, *PROMPT]])), 0.0
        for token, after in zip((PROMPT[-1], *ids), (*ids, EOS_ID), strict=True):
            predict, state = model.step(torch.tensor([token]), state)
            total += predict(slice(None))[0, after].item()
        return total

    free = [1, *range(4, 12)]
    space = [(), *((one,) for one in free), *((one, two) for one in free for two in free)]
    assert best.ids == max(space, key=log_prob)
    assert best.log_prob == pytest.approx(log_prob(best.ids), abs=1e-9)


@pytest.mark.parametrize("prompt", [[], PROMPT, [4, 5, 6, 7] * 4])
@pytest.mark.parametrize("context", [2, 3, 10])
def test_beyond_what_it_reads_a_text_goes_on_from_its_last_half(prompt, context):
    model = HashText(30, sharpness=5)
    config = SAMPLE.model_copy(update={"temperature": 0.0, "n_best": 1})
    (pieces,), (total,) = written(model, prompt, config, longest=30, context=context, continue_past_line_end=True)
    assert len(pieces) == 30
    assert EOS_ID in pieces or context < 10, "the law says nothing of ends"
    assert model.most_read == context or not prompt
    text, sums = list(prompt), 0.0
    num_shown = len(text) + 1
    if num_shown > context:
        num_shown = 1 + context // 2
    for piece in pieces:
        shown = torch.tensor([[BOS_ID, *text[len(text) - num_shown + 1 :]]])
        predict, _ = model.step(shown[:, -1], prefill(model, shown))
        (log_probs,) = predict(slice(None))
        log_probs[[PAD_ID, BOS_ID]] = -math.inf
        assert piece == log_probs.argmax().item()
        sums += log_probs[piece].item()
        text.append(piece)
        num_shown = num_shown + 1 if num_shown < context else 1 + context // 2
    assert total == pytest.approx(sums, abs=1e-9)


def test_what_is_shown_leaves_room():
    pieces = torch.tensor([[BOS_ID, *range(10, 20)]])
    assert truncate_context(pieces, 11) is pieces
    assert truncate_context(pieces, 10).tolist() == [[BOS_ID, *range(15, 20)]]


def test_a_text_does_not_depend_on_those_beside_it():
    model = decoder_only(3)
    pieces, _ = written(model, PROMPT, SAMPLE, longest=20, context=9, continue_past_line_end=True)
    for number in (1, 2):
        fewer, _ = written(model, PROMPT, SAMPLE.model_copy(update={"n_best": number}), longest=20, context=9,
                           continue_past_line_end=True)  # fmt: skip
        assert fewer == pieces[:number]
    other, _ = written(
        model, PROMPT, SAMPLE.model_copy(update={"seed": 5}), longest=20, context=9, continue_past_line_end=True
    )
    assert other != pieces


def test_a_text_ends_where_bans_leave_nothing():
    pieces, _ = written(
        HashText(7), [4], SAMPLE, longest=30, continue_past_line_end=True, bans=BannedPieces.from_config(1, prompt=[4])
    )
    assert all(sorted(each) == [1, EOS_ID, 5, 6] for each in pieces)


def test_a_broken_model_is_an_error():
    with pytest.raises(DataError, match="no finite probabilities"):
        written(HashText(sharpness=math.nan), PROMPT, SAMPLE)


def test_texts_follow_the_prompt(lines):
    reader = PromptEncoder(lines)
    texts = TextGenerator(reader, SAMPLE.model_copy(update={"max_length": 9}), NullReporter()).generate_texts("a dog")
    assert [each.score for each in texts] == sorted((each.score for each in texts), reverse=True)
    for each in texts:
        ids = reader.encode("a dog" + each.text)
        assert reader.decode(ids) == "a dog" + each.text
        assert each.score == pytest.approx(each.log_prob / each.num_tokens)
    (best,) = TextGenerator(
        reader, DecodingConfig(beam=3, forced=("snow",), max_length=9), NullReporter()
    ).generate_texts("a dog")
    assert " snow" in best.text
    (same,) = TextGenerator(reader, DecodingConfig(beam=1, max_length=9), NullReporter()).generate_texts("a dog")
    cold = SAMPLE.model_copy(update={"temperature": 0.0, "n_best": 1, "max_length": 9})
    assert TextGenerator(reader, cold, NullReporter()).generate_texts("a dog") == [same]


@pytest.mark.parametrize("which", ["lines", "running"])
@pytest.mark.parametrize("prompt", ["", "two dogs", "the sea\nis"])
def test_what_is_streamed_is_the_text(which, prompt, request):
    reader = PromptEncoder(request.getfixturevalue(which))
    config = SAMPLE.model_copy(update={"n_best": 1, "max_length": 18})
    writer = TextGenerator(reader, config, NullReporter())
    parts, (text,) = list(writer.stream(prompt)), writer.generate_texts(prompt)
    assert "".join(parts) == writer.decode_encoded_prompt(prompt) + text.text
    assert len(parts) > 3
    if which == "running":
        assert text.num_tokens == 18
        assert "\n" in text.text or prompt != "two dogs"


@pytest.mark.parametrize("spelled", [b"\xc3\xa9", b"\xc3\xa9\xe2", b"\xe2\x82\xac", b"\xf0\x9f"])
@pytest.mark.parametrize("last", [["b"], []])
def test_a_character_in_bytes_is_streamed_when_it_is_known(lines, monkeypatch, spelled, last):
    """One byte too few or too many makes what came before it something else."""
    names = ["<pad>", "<unk>", "<s>", "</s>", "a", "b", *(f"<0x{byte:02X}>" for byte in range(256))]
    made = tokenizers.Tokenizer(models.BPE({name: number for number, name in enumerate(names)}, [], byte_fallback=True))
    made.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    reader = PromptEncoder(lines)
    reader.tokenizer = Tokenizer.from_json(made.to_str())
    ids = [names.index(name) for name in ("a", *(f"<0x{byte:02X}>" for byte in spelled), *last)]
    writer = TextGenerator(reader, SAMPLE.model_copy(update={"n_best": 1}), NullReporter())
    monkeypatch.setattr(
        writer, "_sample_pieces", lambda *_: (NextPieces([0], [each], [0.0]) for each in (*ids, EOS_ID))
    )
    assert "".join(writer.stream("")) == reader.decode(ids)
    reader.continue_past_line_end = True  # where a text may stop anywhere
    monkeypatch.setattr(writer, "_sample_pieces", lambda *_: (NextPieces([0], [each], [0.0]) for each in ids))
    assert "".join(writer.stream("")) == reader.decode(ids)


def test_running_text_goes_on_through_the_ends_of_lines(running, lines):
    assert PromptEncoder(running).continue_past_line_end
    assert not PromptEncoder(lines).continue_past_line_end
    assert PromptEncoder(running).context == 12
    reader = PromptEncoder(running)
    ids = reader.encode("a dog\n\nthe sea")
    assert ids.count(EOS_ID) == 2
    assert reader.decode(ids) == "a dog\n\nthe sea"
    with pytest.raises(RecipeError, match="continues past line ends"):
        TextGenerator(reader, DecodingConfig(beam=2), NullReporter())
    TextGenerator(
        PromptEncoder(running, continue_past_line_end=False), DecodingConfig(beam=2), NullReporter()
    ).generate_texts("a dog")


def test_a_text_as_long_as_the_model_reads_is_told(lines):
    heard = []

    class Heard(NullReporter):
        def warn(self, text):
            heard.append(text)

    long = "a dog runs through the snow"
    config = SAMPLE.model_copy(update={"min_length": 50, "max_length": 50})
    room = 23 - len(PromptEncoder(lines).encode(long))
    for each in TextGenerator(PromptEncoder(lines), config, Heard()).generate_texts(long):
        assert each.num_tokens == room + 1
    assert heard == [
        f"output cut after {room} tokens: with the prompt ({23 - room} tokens) it reached the model's maximum length"
    ]
    list(TextGenerator(PromptEncoder(lines), config.model_copy(update={"n_best": 1}), Heard()).stream(long))
    assert len(heard) == 2
    with pytest.raises(DataError, match=r"the prompt has .* pieces, and the model reads 23 with what follows"):
        TextGenerator(PromptEncoder(lines), config, NullReporter()).generate_texts(" ".join([long] * 4))


def test_forced_words_need_room(lines):
    config = DecodingConfig(beam=2, max_length=1, forced=("snow", "the sea is cold"))
    (best,) = TextGenerator(PromptEncoder(lines), config, NullReporter()).generate_texts("a dog")
    assert " snow" in best.text
    assert " the sea is cold" in best.text
    with pytest.raises(DataError, match=r"there is no room for the .* pieces of the forced words after the prompt"):
        TextGenerator(PromptEncoder(lines), config, NullReporter()).generate_texts(
            "a dog runs through the snow ." + " sea" * 5
        )


def test_a_model_that_has_learned_something_else_is_refused():
    with pytest.raises(DataError, match="for translation, and is not a language model: use `tfm translate`"):
        PromptEncoder(tiny_model())
    masked = {"architecture": "encoder_only", "task": "masked_language_model"}
    with pytest.raises(DataError, match=r"not a language model: use `tfm translate MODEL TEXT` with \[MASK\]"):
        PromptEncoder(tiny_model(**masked))


@pytest.mark.parametrize(("prompt", "merges"), [("a dog", False), ("a do", True)])
@pytest.mark.parametrize("which", ["lines", "running"])
def test_scores_of_continuations_are_sums_of_steps(which, prompt, merges, request):
    """Steps behind what prompt and all choices have in common, so that the choices are told apart by nothing else."""
    loaded = request.getfixturevalue(which)
    reader, choices = PromptEncoder(loaded), [" the sea", " and a cat", "g", " cold"]
    found = score_continuations(loaded, prompt, choices)
    assert [each.log_prob for each in found] == sorted((each.log_prob for each in found), reverse=True)
    assert {each.text for each in found} == set(choices)
    starts = [len(commonprefix((reader.encode(prompt), reader.encode(prompt + each)))) for each in choices]  # noqa: RUF071
    assert (len({*starts}) > 1) == merges
    start = min(starts)
    for each in found:
        whole = reader.encode(prompt + each.text)
        tokens = torch.tensor([BOS_ID, *whole])
        with torch.inference_mode():
            layout = Layout.from_lengths(torch.tensor([len(whole)]))
            log_probs = loaded.model.log_probs(loaded.model.hidden_states(tokens[:-1], layout))
        steps = log_probs[torch.arange(len(whole)), tokens[1:]][start:]
        assert each.log_prob == pytest.approx(steps.sum().item(), abs=1e-9)
        assert each.num_tokens == len(steps)
        assert each.log_prob_per_token == pytest.approx(steps.mean().item(), abs=1e-9)
    few, many = (score_continuations(loaded, prompt, choices[:2] * number)[0] for number in (1, 40))
    assert (few.text, few.num_tokens) == (many.text, many.num_tokens)
    assert few.log_prob == pytest.approx(many.log_prob, abs=1e-9)


def test_of_long_running_text_the_beginning_is_left_out(running, lines):
    long = "the sea is cold ! a dog runs through the snow"
    found = score_continuations(running, long, [" .", " by the sea"])
    ids = [PromptEncoder(running).encode(long + each) for each in (" .", " by the sea")]
    excess = max(map(len, ids)) - 12
    assert excess > 0
    for each in found:
        whole = PromptEncoder(running).encode(long + each.text)[excess:]
        tokens = torch.tensor([BOS_ID, *whole])
        with torch.inference_mode():
            read_all = running.model.hidden_states(tokens[:-1], Layout.from_lengths(torch.tensor([len(whole)])))
            log_probs = running.model.log_probs(read_all)[torch.arange(len(whole)), tokens[1:]]
        assert each.log_prob == pytest.approx(log_probs[-each.num_tokens :].sum().item(), abs=1e-9)
    with pytest.raises(DataError, match="shorten them"):
        score_continuations(lines, long * 2, [" ."])
    with pytest.raises(DataError, match="shorten them"):
        score_continuations(running, "a", [long])
    with pytest.raises(DataError, match="adds no piece"):
        score_continuations(lines, "a dog", [""])
    assert score_continuations(lines, "a dog", []) == []


PROMPTS = ["a dog", "", "the sea", "a dog runs", "a cat", "the sea", "snow", "two dogs\nthe sea"]
"""Prompts of several lengths; some lengths come more than once."""


@pytest.mark.parametrize("which", ["lines", "running"])
@pytest.mark.parametrize(
    "settings",
    [
        {"strategy": "sample", "n_best": 3, "batch_sentences": 7},
        {"strategy": "sample", "no_repeat_ngram": 2},
        {"strategy": "sample", "batch_sentences": 1, "n_best": 2},
        {"beam": 1, "min_length": 2},
        {"beam": 3, "n_best": 2},
        {"beam": 4, "batch_sentences": 2},
        {"beam": 2, "no_repeat_ngram": 2},
    ],
    ids=str,
)
@pytest.mark.few(4)
def test_texts_beside_others_are_those_after_a_prompt_alone(which, settings, request, monkeypatch):
    reader = PromptEncoder(request.getfixturevalue(which), continue_past_line_end=False if "beam" in settings else None)
    writer = TextGenerator(reader, DecodingConfig(max_length=8, **settings), NullReporter())
    alone = [writer.generate_texts(each) for each in PROMPTS]
    calls, searches, sample, search = [], [], writer._writer.sample, writer._writer.search
    monkeypatch.setattr(writer._writer, "sample", lambda prompts, *_: calls.append(len(prompts)) or sample(prompts, *_))
    monkeypatch.setattr(
        writer._writer, "search", lambda prompts, *_: searches.append(len(prompts)) or search(prompts, *_)
    )
    beside = list(writer.generate_batch(PROMPTS))
    assert [[(each.text, each.num_tokens) for each in texts] for texts in beside] == [
        [(each.text, each.num_tokens) for each in texts] for texts in alone
    ]
    for texts, wanted in zip(beside, alone, strict=True):
        assert [each.log_prob for each in texts] == pytest.approx([each.log_prob for each in wanted], abs=1e-9)
    lengths = [len(reader.encode(each)) for each in PROMPTS]
    most_alike = max(map(lengths.count, lengths))
    assert bool(searches) is writer.searches
    if writer.searches:
        assert sorted(searches[: len({*lengths})]) == sorted(map(lengths.count, {*lengths}))
    else:
        num_texts = settings.get("n_best", 1)
        assert sum(calls) == len(PROMPTS) * num_texts
        most = settings.get("batch_sentences", 64)
        assert max(calls) == min(max(most - most % num_texts, 1), most_alike * num_texts)
        assert most_alike > 2, "the prompts are all of other lengths"


def test_the_texts_before_a_prompt_that_is_too_long_are_given(lines):
    writer = TextGenerator(PromptEncoder(lines), DecodingConfig(beam=1, max_length=3), NullReporter())
    texts = writer.generate_batch(["a dog", "the sea", "a dog runs through the snow " * 5, "snow"])
    for prompt in ("a dog", "the sea"):
        assert next(texts)[0].text == writer.generate_texts(prompt)[0].text
    with pytest.raises(PromptError, match="the prompt has") as raised:
        next(texts)
    assert raised.value.row == 2
    searched = TextGenerator(PromptEncoder(lines), DecodingConfig(beam=2, max_length=3), NullReporter())
    with pytest.raises(PromptError, match="the prompt has"):
        list(searched.generate_batch(["a dog", "a dog runs through the snow " * 5]))
