"""Which code decodes which model: as docs/decoding/loops.md says; a part without a row goes by the plain modules."""

import copy
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.plain_model import STACK as PLAIN_STACK
from tests.plain_model import network
from tests.tiny_model import STACK, tiny_model
from tfm.model.attention.multi_head import CrossAttention
from tfm.model.cpu_kernels import dispatch
from tfm.model.fused.decoder_step import fuse_if_supported
from tfm.model.fused.greedy_search import make_greedy_search
from tfm.model.numpy_inference.weights import is_supported
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID

pytest.importorskip("tfm.model.cpu_kernels.library", reason="no numba (extra: fast)", exc_type=ImportError)

ROOT = Path(__file__).parents[4]
SPECIAL = (PAD_ID, BOS_ID, EOS_ID)
SSRU = {"decoder": PLAIN_STACK.model_copy(update={"mixing": "recurrent"}), "recurrent": {"cell": "ssru"}}
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "decoding" / "loops.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\|.*(\| (yes|no) ){4}\|", line)
]


@pytest.fixture(autouse=True)
def _no_compiled_search() -> None:
    """Which code decodes is asked here without compiling it: the fixture of this name in conftest.py is replaced."""


@pytest.fixture(autouse=True)
def _compiled_without_gradients() -> Iterator[None]:
    with torch.no_grad(), dispatch.use_compiled_kernels(True):
        yield


@pytest.mark.parametrize(("keys", "plain", "step", "search", "in_numpy"), ROWS, ids=[row[0] for row in ROWS])
@pytest.mark.few(23)
def test_the_table_of_docs_says_which_code_decodes(
    keys: str, plain: str, step: str, search: str, in_numpy: str
) -> None:
    changes: dict[str, Any] = tomllib.loads("\n".join(re.findall(r"`(.+?)`", keys)))
    for stack in ("encoder", "decoder"):
        changes[stack] = STACK.model_dump() | changes.get(stack, {})
    loaded = tiny_model(**changes)
    model: Any = loaded.model
    found = [True, fuse_if_supported(model) is not model, make_greedy_search(model, SPECIAL) is not None]
    assert [*found, is_supported(loaded.config)] == [each == "yes" for each in (plain, step, search, in_numpy)]


@pytest.mark.parametrize("changes", [{}, SSRU], ids=["attention", "ssru"])
@pytest.mark.few(1)
def test_a_part_without_a_row_is_left_to_the_plain_modules(changes: dict[str, Any]) -> None:
    """The first module of each class in each part of a model that all loops know, of a class that inherits all."""
    whole, checked = network(**changes), set()
    for name, part in whole.named_modules():
        stack = name.split(".")[0]
        if (stack, type(part)) in checked:
            continue
        checked.add((stack, type(part)))
        model: Any = copy.deepcopy(whole)
        changed = model.get_submodule(name)
        changed.__class__ = type("NewPart", (type(part),), {})
        assert make_greedy_search(model, SPECIAL) is None, name
        assert (fuse_if_supported(model) is model) == (stack in ("", "decoder", "decoder_norm")), name
    assert ("decoder", CrossAttention) in checked
    assert len(checked) > 25


@pytest.mark.parametrize("changes", [{}, SSRU], ids=["attention", "ssru"])
def test_a_part_that_is_added_is_left_to_the_plain_modules(changes: dict[str, Any]) -> None:
    for name in ("decoder.1", "decoder.0.attention", "decoder.0.feed_forward"):
        model: Any = network(**changes)
        model.get_submodule(name).add_module("another", nn.Tanh())
        assert fuse_if_supported(model) is model
        assert make_greedy_search(model, SPECIAL) is None
