"""Texts by the compiled loop are those of the plain modules, whatever is beside them, and it takes no other models."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.rounding import assert_rounds_like
from tests.tiny_model import tiny_model
from tfm.data.errors import DataError
from tfm.model.config import StackConfig
from tfm.model.cpu_kernels import dispatch
from tfm.model.fused.text_generation import TokenSamplingSettings, make_compiled_generation_batch
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding import streaming
from tfm.pipeline.decoding.compiled_streaming import SPECIAL_IDS, generate_compiled_stream
from tfm.pipeline.decoding.search.hypothesis import NextPieces
from tfm.pipeline.decoding.search.sampling import draw_tokens
from tfm.pipeline.decoding.streaming import prefill
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.tokenizer.special import BOS_ID, EOS_ID

pytestmark = pytest.mark.slow  # the loops of whole searches are compiled

pytest.importorskip("tfm.model.cpu_kernels.library", reason="no numba (extra: fast)", exc_type=ImportError)

WIDE = StackConfig(layers=2, dim=32, heads=2, feed_forward_dim=48)
BASE: dict[str, Any] = {"architecture": "decoder_only", "task": "language_model", "decoder": WIDE, "tie": "none"}
MODELS: dict[str, dict[str, Any]] = {
    "rotary, GELU": {"positions": "rotary", "activation": "gelu"},
    "learned, GELU by tanh": {"positions": "learned", "activation": "gelu_tanh"},
    "sinusoids, ReLU, post-norm": {"norm": "post"},
    "no positions, one key head of 8": {
        "positions": "none",
        "decoder": WIDE.model_copy(update={"key_value_heads": 1, "key_dim": 8, "value_dim": 8, "heads": 4}),
    },
}
CPU, PROMPT = torch.device("cpu"), [7, 8, 9, 5]
SETTINGS: dict[str, dict[str, Any]] = {
    "likeliest": {"beam": 1},
    "drawn": {"strategy": "sample", "n_best": 5, "seed": 3},
    "at a temperature": {"strategy": "sample", "n_best": 9, "temperature": 0.6, "min_length": 3},
    "of the best": {"strategy": "sample", "n_best": 7, "temperature": 1.3, "top_k": 6},
    "of the most probable": {"strategy": "sample", "n_best": 7, "top_p": 0.8, "min_length": 2},
    "of both": {"strategy": "sample", "n_best": 7, "temperature": 2.0, "top_k": 9, "top_p": 0.9},
    "of all, best first": {"strategy": "sample", "n_best": 5, "top_p": 1.0},
    "of one": {"strategy": "sample", "n_best": 1, "top_k": 1, "temperature": 0.7},
}


def make_model(dtype: torch.dtype = torch.float32, **changes: Any) -> LoadedModel:
    loaded = tiny_model(dtype=dtype, **BASE | {"max_length": 40} | changes)
    with torch.no_grad():
        for parameter in loaded.model.parameters():
            if parameter.dim() == 1:  # biases begin as zeros and gains as ones
                parameter.add_(torch.linspace(-0.3, 0.4, len(parameter), dtype=dtype))
        loaded.model.output.weight[EOS_ID].mul_(3)  # so that texts end at different lengths
    return loaded


def written(model: object, config: DecodingConfig, *, compiled: bool, **how: Any) -> dict[int, list[tuple[int, float]]]:
    """The pieces of each text with their log-probabilities."""
    found: dict[int, list[tuple[int, float]]] = {}
    how = {"longest": 20, "context": 40, "continue_past_line_end": False} | how
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:
            patch.setattr(streaming, "generate_compiled_stream", lambda *_, **__: None)
        every = streaming.generate_stream(
            model, [PROMPT] * config.n_best, range(config.n_best), config, bans=None, device=CPU, **how
        )
        for each in every:
            assert isinstance(each, NextPieces)
            for text, piece, log_prob in zip(each.texts, each.pieces, each.log_probs, strict=True):
                found.setdefault(text, []).append((piece, log_prob))
    return found


def assert_same(found: dict[int, list[tuple[int, float]]], wanted: dict[int, list[tuple[int, float]]]) -> None:
    assert found.keys() == wanted.keys()
    for text, pieces in found.items():
        assert [piece for piece, _ in pieces] == [piece for piece, _ in wanted[text]]
        assert [each for _, each in pieces] == pytest.approx([each for _, each in wanted[text]], abs=2e-4)


@pytest.mark.parametrize("continue_past_line_end", [False, True])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.few(4)
def test_texts_are_those_of_the_plain_modules(settings: dict[str, Any], continue_past_line_end: bool) -> None:
    loaded, config = make_model(**MODELS["rotary, GELU"]), DecodingConfig(**settings)
    how = {"continue_past_line_end": True, "context": 12, "longest": 33} if continue_past_line_end else {}
    found = written(loaded.model, config, compiled=True, **how)
    assert_same(found, written(loaded.model, config, compiled=False, **how))
    lengths = {len(each) for each in found.values()}
    assert lengths == {33} if continue_past_line_end else len(found) == 1 or len(lengths) > 1


@pytest.mark.parametrize("limits", [(None, 0.9), (3, None), (7, 0.5), (50, 1.0), (None, 1e-9)], ids=str)
def test_pieces_are_drawn_from_the_best_as_by_plain_torch(limits: tuple[int | None, float | None]) -> None:
    """Ties and pieces that may not come included; each row against `draw_tokens`."""
    from tfm.model.cpu_kernels import text_generation

    torch.manual_seed(1)
    rows = torch.randn(200, 23).mul(2).round(decimals=0).log_softmax(-1)  # many equal values
    rows[:, 4] = -torch.inf
    uniform = torch.rand(200, dtype=torch.float64)
    uniform[:2] = torch.tensor([0.0, 1 - 2**-53])
    top_k, top_p = limits
    wanted = draw_tokens(rows, uniform, 0.7, top_k, top_p)
    choice, sums = TokenSamplingSettings(0.7, top_k, top_p), np.empty(23)
    shape = choice.num_best(23), 0.7, 1.0 if top_p is None else top_p
    found = [
        text_generation._sample_token_top_k_top_p(row.numpy(), number, *shape, sums)
        for row, number in zip(rows, uniform.tolist(), strict=True)
    ]
    assert found == wanted.tolist()


@pytest.mark.parametrize("longest", [1, 3])
def test_texts_end_at_their_limit(longest: int) -> None:
    model, config = make_model(**MODELS["rotary, GELU"]).model, DecodingConfig(strategy="sample", n_best=6)
    found = written(model, config, compiled=True, longest=longest)
    assert_same(found, written(model, config, compiled=False, longest=longest))
    assert max(map(len, found.values())) == longest + 1
    assert all(text[-1][0] == EOS_ID for text in found.values())


@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)
def test_log_probabilities_round_as_those_of_torch(changes: dict[str, Any]) -> None:
    pieces = [[BOS_ID, *PROMPT], [BOS_ID, 4, 4, 6, 8], [BOS_ID, 11, 5, 5, 5]]
    single, exact = make_model(**changes), make_model(torch.float64, **changes)
    with dispatch.use_compiled_kernels(True), torch.no_grad():
        texts = make_compiled_generation_batch(single.model, pieces, 20, SPECIAL_IDS)
    assert texts is not None
    new, found = texts.extend_texts(np.zeros((3, 4)), TokenSamplingSettings(top_k=1), shortest=9, longest=30)

    @torch.inference_mode()
    def plain(loaded: LoadedModel) -> torch.Tensor:
        model, rows = loaded.model, torch.tensor(pieces)
        state, result = prefill(model, rows), []
        last = rows[:, -1]
        for step in range(4):
            predict, state = model.step(last, state)
            last = torch.from_numpy(new[:, step].copy())
            result.append(predict(slice(None)).gather(1, last[:, None])[:, 0])
        return torch.stack(result, 1)

    assert_rounds_like(torch.from_numpy(found), plain(single), plain(exact))


def test_a_text_is_the_same_to_the_bit_beside_any_others() -> None:
    model = make_model(**MODELS["rotary, GELU"]).model
    one = written(model, DecodingConfig(strategy="sample", n_best=1, seed=4), compiled=True)
    some = written(model, DecodingConfig(strategy="sample", n_best=6, seed=4), compiled=True)
    many = written(model, DecodingConfig(strategy="sample", n_best=21, seed=4), compiled=True)
    assert one[0] == some[0] == many[0]
    assert {text: many[text] for text in some} == some


@pytest.mark.parametrize(
    ("changes", "settings"),
    [
        ({"decoder": WIDE.model_copy(update={"dim": 24})}, {}),
        ({"output_bias": True}, {}),
        ({"activation": "silu"}, {}),
        ({"positions": "alibi"}, {}),
        ({"mask": "strict"}, {}),
        ({"mask": "none"}, {}),
        ({"lookup": "hard"}, {}),
        ({"positions_join": "attention"}, {}),
        ({"normalization": "layer_std"}, {}),
        ({"feed_forward": "none"}, {}),
        ({"attention_projections": False}, {}),
        ({"values": "keys"}, {}),
        ({"output_projection": False}, {}),
        ({"residual": "none"}, {}),
        ({"mixing": "convolution", "convolution": {"width": 3}}, {}),
        ({"architecture": "recurrent"}, {}),
    ],
    ids=str,
)
def test_other_settings_and_models_are_left_to_the_plain_modules(
    changes: dict[str, Any], settings: dict[str, Any]
) -> None:
    how: dict[str, Any] = {"longest": 5, "context": 9, "continue_past_line_end": False}
    with torch.no_grad():
        assert generate_compiled_stream(make_model().model, [PROMPT], [0], DecodingConfig(), **how) is not None
        assert (
            generate_compiled_stream(make_model(**changes).model, [PROMPT], [0], DecodingConfig(**settings), **how)
            is None
        )


def test_nothing_beyond_the_model_s_tables_is_read() -> None:
    """The loop does not look whether a row is there."""
    model = make_model().model
    with torch.no_grad(), dispatch.use_compiled_kernels(True):
        assert make_compiled_generation_batch(model, [[BOS_ID]], 40, SPECIAL_IDS) is not None
        assert make_compiled_generation_batch(model, [[BOS_ID]], 41, SPECIAL_IDS) is None
        with pytest.raises(IndexError, match="piece 1000 of a vocabulary of"):
            make_compiled_generation_batch(model, [[BOS_ID, 1000]], 40, SPECIAL_IDS)


def test_weights_that_are_no_numbers_are_an_error() -> None:
    loaded = make_model()
    with torch.no_grad():
        loaded.model.norm.weight.fill_(torch.nan)
    with pytest.raises(DataError, match="no finite probabilities"):
        written(loaded.model, DecodingConfig(strategy="sample"), compiled=True)


def test_a_changed_weight_is_seen() -> None:
    loaded, config = make_model(**MODELS["rotary, GELU"]), DecodingConfig(beam=1)
    before = written(loaded.model, config, compiled=True)
    with torch.no_grad():
        loaded.model.layers[1].feed_forward.inner.weight.mul_(-2)
    after = written(loaded.model, config, compiled=True)
    assert_same(after, written(loaded.model, config, compiled=False))
    assert before != after


def test_texts_of_several_prompts_are_those_of_each_alone_to_the_bit() -> None:
    loaded, config = make_model(**MODELS["rotary, GELU"]), DecodingConfig(strategy="sample")
    how: dict[str, Any] = {"longest": 20, "context": 40, "continue_past_line_end": False}
    prompts = [PROMPT, [*PROMPT[:-1], 9], [*PROMPT[:-1], 8], PROMPT]

    def texts_of(some: list[list[int]]) -> list[list[tuple[int, float]]]:
        found: list[list[tuple[int, float]]] = [[] for _ in range(2 * len(some))]
        with torch.no_grad():
            texts = [each for each in some for _ in range(2)]
            stream = generate_compiled_stream(loaded.model, texts, [0, 1] * len(some), config, **how)
            assert stream is not None
            for each in stream:
                for text, piece, log_prob in zip(each.texts, each.pieces, each.log_probs, strict=True):
                    found[text].append((piece, log_prob))
        return found

    together = texts_of(prompts)
    assert together == [text for prompt in prompts for text in texts_of([prompt])]
    assert together[:2] == together[-2:]
    assert together[0] != together[2]


@pytest.mark.parametrize("longest", [1, 7, 8, 9, 30])
@pytest.mark.parametrize("continue_past_line_end", [False, True])
def test_texts_of_any_length_are_those_of_the_plain_modules(longest: int, continue_past_line_end: bool) -> None:
    """The cache has room for what is read, and no more."""
    loaded, config = make_model(**MODELS["rotary, GELU"]), DecodingConfig(strategy="sample", n_best=3)
    with torch.no_grad():
        loaded.model.output.weight[EOS_ID].mul_(-0.1)  # so that texts reach it
    how = {"longest": longest, "context": 33, "continue_past_line_end": continue_past_line_end}
    found = written(loaded.model, config, compiled=True, **how)
    assert_same(found, written(loaded.model, config, compiled=False, **how))
    assert max(len(each) for each in found.values()) >= longest
