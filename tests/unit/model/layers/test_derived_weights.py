"""What is made of weights is made anew when they have changed, however that came about, and not before."""

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from tfm.model.layers.derived_weights import DerivedWeights, invalidate_derived_weights


class Derived:
    """The sum of a module's weights, derived, and how often it was made."""

    def __init__(self, module: nn.Module) -> None:
        self.module, self.kept, self.times = module, DerivedWeights[float](), 0

    def sum(self, *settings: object) -> float:
        return self.kept.get_or_make(list(self.module.parameters()), self._make, *settings)

    def _make(self) -> float:
        self.times += 1
        return self.exact()

    def exact(self) -> float:
        return sum(float(each.detach().double().sum()) for each in self.module.parameters())


def _in_place(module: Any) -> None:
    with torch.no_grad():
        module.bias.add_(1.0)


def _in_inference_mode(module: Any) -> None:
    with torch.inference_mode():
        module.weight.mul_(-2.0)


def _averaged(module: Any) -> None:
    with torch.no_grad():
        torch._foreach_lerp_(list(module.parameters()), [torch.ones_like(each) for each in module.parameters()], 0.5)


def _step(make: Callable[..., torch.optim.Optimizer], **settings: Any) -> Callable[[Any], None]:
    def change(module: Any) -> None:
        module(torch.ones(2, 16)).sum().backward()
        make(module.parameters(), lr=0.1, **settings).step()

    return change


def _loaded(module: Any) -> None:
    module.load_state_dict({name: each + 1 for name, each in module.state_dict().items()})


def _assigned(module: Any) -> None:
    module.load_state_dict({name: each + 1 for name, each in module.state_dict().items()}, assign=True)


def _another(module: Any) -> None:
    module.weight = nn.Parameter(module.weight.detach() + 1)


def _other_data(module: Any) -> None:
    module.weight.data = module.weight.detach() + 1


def _rounded(module: Any) -> None:
    module.to(torch.bfloat16)


def _said(module: Any) -> None:
    module.weight.data.mul_(3)
    invalidate_derived_weights()


CHANGES = {
    "in place": _in_place,
    "in inference mode": _in_inference_mode,
    "a moving average": _averaged,
    "SGD": _step(torch.optim.SGD),
    "AdamW, one tensor after the other": _step(torch.optim.AdamW, foreach=False),
    "AdamW, all tensors at once": _step(torch.optim.AdamW, foreach=True),
    "AdamW, fused": _step(torch.optim.AdamW, fused=True),
    "SGD, fused": _step(torch.optim.SGD, fused=True),
    "load_state_dict": _loaded,
    "load_state_dict, assigned": _assigned,
    "another parameter": _another,
    "other data": _other_data,
    "another type": _rounded,
    "unseen by torch, but said": _said,
}


@pytest.mark.few(5)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_of_weights_is_noticed(change: Callable[[Any], None]) -> None:
    derived = Derived(nn.Linear(16, 16))
    before = derived.sum()
    change(derived.module)
    assert derived.sum() == derived.exact() != before
    assert derived.times == 2


@pytest.mark.parametrize("length", [1, 16, 300, 100_000])
def test_other_weights_at_an_address_that_was_freed_are_noticed(length: int) -> None:
    module = nn.Linear(length, 1, bias=False)
    derived = Derived(module)
    for _ in range(20):
        assert derived.sum() == derived.exact()
        for _ in range(2):  # the second would come to lie where the first weights were
            module.weight.data = torch.randn(1, length)


def test_steps_of_an_optimizer_of_other_weights_change_nothing() -> None:
    derived, other = Derived(nn.Linear(16, 16)), nn.Linear(16, 16)
    derived.sum()
    _step(torch.optim.AdamW, fused=True)(other)
    derived.sum()
    assert derived.times == 1
    assert not any(vars(parameter) for parameter in other.parameters()), "and they keep no count"


def test_what_is_derived_is_kept_while_nothing_changes() -> None:
    derived = Derived(nn.Linear(16, 16))
    for _ in range(3):
        assert derived.sum() == derived.exact()
        derived.module(torch.randn(2, 16)).sum().backward()
        derived.module.zero_grad()
    assert derived.times == 1
    for _ in range(2):
        derived.sum(torch.bfloat16, 3)
    assert derived.times == 2
    derived.sum(torch.bfloat16, 4)
    assert derived.times == 3


def test_of_weights_that_count_no_versions_it_is_always_made_anew() -> None:
    with torch.inference_mode():
        derived = Derived(nn.Linear(16, 16, bias=False))
        for factor in (2.0, 3.0):
            derived.module.get_parameter("weight").mul_(factor)
            assert derived.sum() == derived.exact()
    assert derived.times == 2


def test_an_error_leaves_nothing_half_made() -> None:
    kept, weight = DerivedWeights[int](), torch.zeros(3)
    assert kept.get_or_make([weight], lambda: 1) == 1
    weight.add_(1)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            kept.get_or_make([weight], lambda: 1 // 0)
    assert kept.get_or_make([weight], lambda: 2) == 2


@pytest.mark.slow
def test_what_is_forgotten_is_freed_and_made_anew() -> None:
    kept, weight = DerivedWeights[torch.Tensor](), torch.zeros(3)
    made = weakref.ref(kept.get_or_make([weight], lambda: weight + 1))
    gc.collect()
    assert made() is not None
    kept.clear()
    gc.collect()
    assert made() is None
    assert torch.equal(kept.get_or_make([weight], lambda: weight + 2), weight + 2)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda kept: pickle.loads(pickle.dumps(kept))])
def test_a_copy_begins_with_nothing(copied: Callable[[Any], Any]) -> None:
    kept, weight = DerivedWeights[Any](), torch.zeros(3)
    assert kept.get_or_make([weight], lambda: lambda: 1)() == 1  # what can be neither copied nor pickled
    other = copied(kept)
    assert other.get_or_make([weight], lambda: 2) == 2
    assert kept.get_or_make([weight], lambda: 3)() == 1
