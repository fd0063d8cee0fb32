"""On 200 lines of the built-in corpus an imported model has the ids, logits and greedy output of transformers.

Where outputs differ, that is shown to be a near tie: the two pieces that differ first are as probable there, but for
rounding.
"""

from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.huggingface_models import our_logits
from tests.unit.pipeline.model_io.huggingface import test_import
from tests.unit.pipeline.model_io.huggingface.test_import import MADE, rows_of, taken
from tfm.data.corpus_config import CorpusConfig
from tfm.data.synthetic.registry import generate
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.inference.generation.generator import TextGenerator
from tfm.pipeline.inference.generation.prompt_encoder import PromptEncoder
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.progress import NullReporter
from tfm.tokenizer.foreign.sentencepiece import FILLER_PREFIX
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID

transformers: Any = pytest.importorskip("transformers", reason="needs the extra `dev`")
NUM_LINES, NUM_PIECES = 200, 10
LONGEST = 34  # characters, so that no line has more pieces than the models have positions
TIES = 2
STRONGER = {"encoder_attn.out_proj": 6, "decoder.layers.0.self_attn.out_proj": 5, "q_proj": 4}
"""Random weights times these, so that what is written depends on what is read."""
Lines = list[tuple[str, str]]


@pytest.fixture(scope="module")
def lines() -> Lines:
    """Pairs of short sentences, no two alike, and some more than are compared."""
    corpus = CorpusConfig(format="generated", path="grammar", split="test", size=4000)
    short = dict(pair for pair in generate(corpus) if max(map(len, pair)) <= LONGEST)
    return list(short.items())[: NUM_LINES + 40]


def turned_otherwise(**rope: Any) -> Callable[[Path], Any]:
    """A Llama whose positions turn in another way."""

    def made(folder: Path) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            plain = transformers.LlamaConfig
            patch.setattr(transformers, "LlamaConfig", lambda **keys: plain(**keys, rope_parameters=rope))
            return MADE["llama"](folder)

    return made


SLOWED = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
KINDS = {
    **MADE,
    "llama 3": turned_otherwise(rope_type="default", rope_theta=500.0),
    "llama, linear": turned_otherwise(rope_type="linear", rope_theta=10_000.0, factor=2.0),
    "llama 3.1": turned_otherwise(rope_type="llama3", rope_theta=500.0, factor=8.0, **SLOWED),
}


@pytest.fixture(params=KINDS)
def pair(
    request: pytest.FixtureRequest, lines: Lines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[LoadedModel, Any, Any, list[int]]:
    """Our model, theirs, its tokenizer, and by our id the row there; tokenizers have learned from the lines."""
    transformers.utils.logging.disable_progress_bar()
    monkeypatch.setattr(test_import, "TEXTS", tuple(english for english, _ in lines))
    monkeypatch.setattr(test_import, "GERMAN", tuple(german for _, german in lines))
    (folder := tmp_path / "theirs").mkdir()
    model, tokenizer = KINDS[request.param](folder)
    if model.config.is_encoder_decoder:
        with torch.no_grad():
            for name, weight in model.named_parameters():
                weight.mul_(next((factor for part, factor in STRONGER.items() if part in name), 1))
        model.save_pretrained(folder)
    ours = taken(folder)
    return ours, model, tokenizer, rows_of(folder, ours, model)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_200_lines_are_what_transformers_makes_of_them(
    pair: tuple[LoadedModel, Any, Any, list[int]], lines: Lines
) -> None:
    ours, model, tokenizer, row = pair
    known = {ours.source_tokenizer.piece(number) for number in range(len(row))}
    # a letter that only the target's SentencePiece model has is unknown here; there it depends on those beside it
    elsewhere = {ours.source_tokenizer.piece(number).removeprefix(FILLER_PREFIX) for number in range(len(row))} - known
    lines = [each for each in lines if not {*each[0]} & elsewhere][:NUM_LINES]
    assert len(lines) == NUM_LINES
    sources = ours.source_tokenizer.encode_batch([english for english, _ in lines])
    there = tokenizer([english for english, _ in lines], add_special_tokens=False).input_ids
    assert [[row[number] for number in ids] for ids in sources] == there
    is_pair = model.config.is_encoder_decoder
    targets = ours.target_tokenizer.encode_batch([german for _, german in lines]) if is_pair else sources
    prompts = sources if is_pair else [ids[: len(ids) // 2] for ids in sources]
    found = translations(ours, prompts) if is_pair else continuations(ours, prompts)
    wanted = greedy(model, [[row[number] for number in ids] for ids in prompts], row)
    assert len({tuple(each) for each in found}) > 20
    ties = [
        (line, *near_tie(ours, model, row, prompt, mine, theirs))
        for line, (prompt, mine, theirs) in enumerate(zip(prompts, found, wanted, strict=True))
        if [row[number] for number in mine] != theirs
    ]
    for line, *figures in ties:
        print(f"line {line}: at {figures[0]} two pieces whose logits differ by {figures[1]:.1e}")
    assert len(ties) <= TIES
    check_logits(ours, model, row, list(zip(sources, targets, strict=True)))


def check_logits(ours: LoadedModel, model: Any, row: list[int], pairs: list[tuple[list[int], list[int]]]) -> None:
    """Both compute the same logits, within 1e-4; in float64, where that holds on every CPU."""
    ours.model.double()
    model.double()
    size = len(row)
    named = [number for number in range(size) if number > BOS_ID or row[number] not in row[number + 1 :]]
    for source, target in pairs:
        found = our_logits(ours, source, target)[:, named]
        wanted = logits_there(model, [row[n] for n in source], [row[n] for n in target])
        assert wanted.std() > 0.1
        torch.testing.assert_close(found, wanted[:, [row[n] for n in named]], atol=1e-4, rtol=0)


def logits_there(model: Any, source: list[int], target: list[int]) -> Tensor:
    config = model.config
    with torch.no_grad():
        if config.is_encoder_decoder:
            read, begin = torch.tensor([[*source, config.eos_token_id]]), config.decoder_start_token_id
            return model(read, decoder_input_ids=torch.tensor([[begin, *target]])).logits[0]  # type: ignore[no-any-return]
        return model(torch.tensor([[config.bos_token_id, *target]])).logits[0]  # type: ignore[no-any-return]


def translations(ours: LoadedModel, sources: list[list[int]]) -> list[list[int]]:
    """Our greedy translations, with the end token where one ends."""
    found = decode(ours.model, sources, DecodingConfig(beam=1, max_length=NUM_PIECES))
    return [[*one.ids, EOS_ID][:NUM_PIECES] for (one,) in found]


def continuations(ours: LoadedModel, prompts: list[list[int]]) -> list[list[int]]:
    """The same of a language model, each prompt given as a text."""
    config = DecodingConfig(strategy="sample", temperature=0, max_length=NUM_PIECES)
    writer, found = TextGenerator(PromptEncoder(ours), config, NullReporter()), []
    for ids in prompts:
        (hypothesis,) = writer._generate_hypotheses([ids], [0])
        found.append([*hypothesis.ids, EOS_ID][:NUM_PIECES])
    return found


def greedy(model: Any, prompts: list[list[int]], row: list[int]) -> list[list[int]]:
    """Theirs; prompts of one length at once, so that nothing is padded."""
    config, found = model.config, dict[int, list[int]]()
    never = [number for number in {row[PAD_ID], row[BOS_ID]} if number != config.eos_token_id]
    options = {"num_beams": 1, "do_sample": False, "max_new_tokens": NUM_PIECES + 1, "bad_words_ids": None}
    for _, those in groupby(sorted(range(len(prompts)), key=lambda n: len(prompts[n])), key=lambda n: len(prompts[n])):
        numbers = [*those]
        given = [
            [*prompts[n], config.eos_token_id] if config.is_encoder_decoder else [config.bos_token_id, *prompts[n]]
            for n in numbers
        ]
        read = torch.tensor(given)
        options |= {"suppress_tokens": never or None, "pad_token_id": config.eos_token_id}
        written = model.generate(read, attention_mask=torch.ones_like(read), **options)
        for number, ids in zip(numbers, written.tolist(), strict=True):
            found[number] = until_the_end(ids[1 if config.is_encoder_decoder else read.shape[1] :], config.eos_token_id)
    return [found[number] for number in range(len(prompts))]


def until_the_end(ids: list[int], end: int) -> list[int]:
    """The ids up to the end token; what is forced at the limit is left out."""
    return (ids[: ids.index(end) + 1] if end in ids else ids)[:NUM_PIECES]


def near_tie(
    ours: LoadedModel, model: Any, row: list[int], prompt: list[int], mine: list[int], theirs: list[int]
) -> tuple[int, float]:
    """Where two outputs differ first, and how far apart the logits of the two pieces are there, in float64."""
    own = [row[number] for number in mine]
    place = next(n for n, (one, other) in enumerate(zip(own, theirs, strict=False)) if one != other)
    before = own[:place] if model.config.is_encoder_decoder else [*(row[n] for n in prompt), *own[:place]]
    logits = logits_there(model.double(), [row[n] for n in prompt], before)[-1]
    model.float()
    apart = float((logits[own[place]] - logits[theirs[place]]).abs())
    assert apart < 1e-5, f"{prompt}: pieces {own[place]} and {theirs[place]} differ by {apart:.1e}, which is no tie"
    return place, apart
