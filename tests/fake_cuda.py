"""A CUDA device without one: its tensors lie in the computer's memory, and are told apart from the others.

Within `FakeCuda()` a tensor made on or moved to `cuda` says `cuda:0` when it is asked for its device, and so does what
is computed from it. The numbers are real ones, so that searches and whatever else depends on values run as they are.
As on a GPU, an operation on tensors of both devices raises, but for numbers (tensors of no dimension) and indices on
the CPU. torch's FakeTensorMode has these rules (`FakeTensor._find_common_device`) and no values.

`waits` counts where the program would wait for a GPU: values read (item, tolist, nonzero, boolean indices, ...) and
copies between the devices that are not `non_blocking`. What a copy to the CPU that is `non_blocking` brings is not
there until an event recorded after it has been waited for; `ahead` says how much a GPU had to do beyond it by then.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, Self

import pytest
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

CUDA, CPU = torch.device("cuda:0"), torch.device("cpu")
ROOT = Path(__file__).parents[1]
aten = torch.ops.aten
VALUES_READ = {aten._local_scalar_dense, aten.nonzero, aten.masked_select, aten._unique2, aten.bincount, aten.equal}
"""Operations whose result the host has to know, or whose result's size."""
INDEXING = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}


class DevicesMixed(RuntimeError):
    """What a GPU would refuse."""


class FakeCuda:
    """Within, there are tensors on `cuda`. `waits`: how often the program has waited, by what and where."""

    def __init__(self) -> None:
        self.waits: Counter[str] = Counter()
        self.num_operations, self.ahead = 0, list[int]()
        self.on_their_way: list[tuple[Tensor, Tensor]] = []
        self.in_backward = False  # and in no call of Python's: what is made is made by autograd itself
        self._storages: dict[int, StorageWeakRef] = {}  # a weak reference, so that no other gets the same address

    def __enter__(self) -> Self:
        self._entered = ExitStack()
        patch = self._entered.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(torch._C, "_group_tensors_by_device_and_dtype", self._grouped)
        patch.setattr(torch, "Generator", _Generator)
        patch.setattr(torch.cuda, "Event", lambda: _Event(self))
        self._entered.enter_context(_Operations(self))
        calls, run_backward = _Calls(self), torch.autograd._engine_run_backward

        def backward(losses: tuple[Tensor, ...], *args: Any, **kwargs: Any) -> Any:
            with calls:  # which the call that leads here has left: gradients may be computed by functions in Python
                self.in_backward = self.device_of(losses[0]).type == "cuda"
                return run_backward(losses, *args, **kwargs)

        patch.setattr(torch.autograd, "_engine_run_backward", backward)
        self._entered.enter_context(calls)
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.close()

    def device_of(self, tensor: Tensor) -> torch.device:
        """Where a tensor is taken to be."""
        return CUDA if tensor.untyped_storage()._cdata in self._storages else CPU

    def put(self, tensor: Tensor, device: torch.device) -> Tensor:
        """The same tensor, taken to be on this device, with all its views."""
        storage = tensor.untyped_storage()
        if device.type == "cuda":
            self._storages.setdefault(storage._cdata, StorageWeakRef(storage))
        else:
            self._storages.pop(storage._cdata, None)
        return tensor

    def wait(self, what: str) -> None:
        """Count a wait, by the innermost of the project's functions that are being called."""
        frame: Any = sys._getframe(1)
        while frame is not None and not _is_ours(frame.f_code.co_filename):
            frame = frame.f_back
        where = f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_qualname}" if frame else "a test"
        self.waits[f"{what} in {where}"] += 1

    def copied(self, tensor: Tensor, device: torch.device, dtype: torch.dtype | None, non_blocking: bool) -> Tensor:
        """A copy on the other device."""
        out = self.put(tensor.to(dtype=dtype or tensor.dtype, copy=True), device)
        if not non_blocking:
            self.wait("copy to the CPU" if device.type == "cpu" else "copy to the device")
        elif device.type == "cpu":
            self.on_their_way.append((out, out.clone()))
            out.fill_(-77)
        return out

    def _grouped(self, lists: list[list[Tensor | None]], with_indices: bool = False) -> dict[Any, Any]:
        """As torch's own, whose C++ sees all tensors on the CPU."""
        groups: dict[Any, Any] = {}
        for place, first in enumerate(lists[0]):
            assert first is not None
            group = groups.setdefault((self.device_of(first), first.dtype), ([[] for _ in lists], []))
            for own, given in zip(group[0], lists, strict=True):
                own.extend(given[place : place + 1])
            group[1].append(place)
        return groups


class _Generator(torch.Generator):
    """One that says it is on `cuda`, where that was asked for."""

    def __new__(cls, device: torch.device | str = "cpu") -> "_Generator":
        made = super().__new__(cls)
        made.place = torch.device(device)
        return made


class _Event:
    """Stands for `torch.cuda.Event`: what was on its way when it was recorded is there once it was waited for."""

    def __init__(self, fake: FakeCuda) -> None:
        self._fake, self._copies = fake, list[tuple[Tensor, Tensor]]()

    def record(self) -> None:
        self._after = self._fake.num_operations
        self._copies, self._fake.on_their_way = self._fake.on_their_way, []

    def synchronize(self) -> None:
        self._fake.wait("event")
        self._fake.ahead.append(self._fake.num_operations - self._after)
        for copy, values in self._copies:
            copy.copy_(values)


class _Operations(TorchDispatchMode):
    """Sees what kernels are given, in the backward pass too: checks their devices, and says where results are."""

    def __init__(self, fake: FakeCuda) -> None:
        super().__init__()
        self.fake = fake

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if _has_parts(func):
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        given = _tensors([*args, *kwargs.values()])
        on_device = [self.fake.device_of(tensor).type == "cuda" for tensor in given]
        if any(on_device):
            self._check(func, args, kwargs, given, on_device)
            self.fake.num_operations += 1
        out = func(*args, **kwargs)
        if any(on_device) or (self.fake.in_backward and not given):
            known = {tensor.untyped_storage()._cdata for tensor in given}
            for tensor in _tensors([out]):
                if tensor.untyped_storage()._cdata not in known:
                    self.fake.put(tensor, CUDA)
        return out

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # or torch loads its compiler

    def _check(self, func: Any, args: Any, kwargs: Any, given: list[Tensor], on_device: list[bool]) -> None:
        packet = func.overloadpacket
        if packet is aten.copy_:
            if not (all(on_device) or (args[2:] and args[2]) or kwargs.get("non_blocking")):
                self.fake.wait("copy to the device" if on_device[0] else "copy to the CPU")
            return
        if packet in INDEXING:
            self._count_indices(packet, args)
            given = [args[0], *args[2:3]]
            on_device = [self.fake.device_of(tensor).type == "cuda" for tensor in given]
        fused = packet.__name__.startswith("_fused_")
        if any(not there and (tensor.ndim or fused) for tensor, there in zip(given, on_device, strict=True)):
            places = [f"{tuple(tensor.shape)} on {self.fake.device_of(tensor)}" for tensor in given]
            raise DevicesMixed(f"{func}: {', '.join(places)}")
        if packet in VALUES_READ or (func is aten.repeat_interleave.Tensor and kwargs.get("output_size") is None):
            self.fake.wait(packet.__name__.replace("_local_scalar_dense", "item"))

    def _count_indices(self, packet: Any, args: Any) -> None:
        indices = _tensors(args[1])
        on_cpu = [self.fake.device_of(index).type == "cpu" for index in indices]
        masks = [index.dtype in (torch.bool, torch.uint8) for index in indices]
        if packet is not aten.index and masks == [True] and on_cpu == [False] and args[2].numel() == 1:
            return  # a number where one mask says so: a kernel that needs no list of places
        for here, mask in zip(on_cpu, masks, strict=True):
            if here or mask:
                self.fake.wait("index from the CPU" if here else "boolean index")


class _Calls(TorchFunctionMode):
    """Sees what Python calls: where tensors are to be, and questions that reach no kernel."""

    def __init__(self, fake: FakeCuda) -> None:
        super().__init__()
        self.fake, tensor = fake, Tensor
        self._answers: dict[Any, Callable[..., Any]] = {
            tensor.device.__get__: fake.device_of,
            tensor.is_cuda.__get__: lambda x: fake.device_of(x).type == "cuda",
            tensor.to: self._to,
            tensor.cpu: lambda x: self._to(x, CPU),
            tensor.new_tensor: lambda x, data: fake.put(x.new_tensor(data), fake.device_of(x)),
            tensor.tolist: self._tolist,
            tensor.numpy: self._only_on_cpu(tensor.numpy),
            tensor.__array__: self._only_on_cpu(tensor.__array__),
            torch.tensor: self._tensor,
            torch.as_tensor: self._as_tensor,
        }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        in_backward, self.fake.in_backward = self.fake.in_backward, False
        try:
            return self._answer(func, args, kwargs)
        finally:
            self.fake.in_backward = in_backward

    def _answer(self, func: Any, args: Any, kwargs: Any) -> Any:
        if (answer := self._answers.get(func)) is not None:
            return answer(*args, **kwargs)
        if kwargs.get("device") is None:
            return func(*args, **kwargs)
        device = torch.device(kwargs.pop("device"))
        if getattr(kwargs.get("generator"), "place", device).type != device.type:
            raise DevicesMixed(f"{func.__name__} on {device} by a generator of the other device")
        return self.fake.put(func(*args, **kwargs), device)

    def _to(self, tensor: Tensor, *args: Any, copy: bool = False, **kwargs: Any) -> Tensor:
        if isinstance(other := kwargs.pop("other", args[0] if args else None), Tensor):
            args, kwargs = args[1:], {"device": self.fake.device_of(other), "dtype": other.dtype, **kwargs}
        if args and isinstance(args[-1], bool):  # as in x.to(device, dtype, non_blocking)
            args, kwargs = args[:-1], {"non_blocking": args[-1], **kwargs}
        device, dtype, non_blocking, _ = torch._C._nn._parse_to(*args, **kwargs)
        if device is None or device.type == self.fake.device_of(tensor).type:
            return tensor.to(dtype=dtype or tensor.dtype, copy=copy)
        return self.fake.copied(tensor, device, dtype, non_blocking)

    def _tolist(self, tensor: Tensor) -> Any:
        if self.fake.device_of(tensor).type == "cuda":
            self.fake.wait("tolist")
        return tensor.tolist()

    def _only_on_cpu(self, func: Callable[..., Any]) -> Callable[..., Any]:
        def checked(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            if self.fake.device_of(tensor).type == "cuda":
                raise TypeError(f"{func.__name__} of a tensor on {CUDA}: copy it to the CPU first")
            return func(tensor, *args, **kwargs)

        return checked

    def _tensor(self, data: Any, *, device: Any = None, **kwargs: Any) -> Tensor:
        made = torch.tensor(data, **kwargs)
        if device is None or torch.device(device).type == "cpu":
            return made
        self.fake.wait("copy to the device")
        return self.fake.put(made, CUDA)

    def _as_tensor(self, data: Any, dtype: Any = None, device: Any = None) -> Tensor:
        made = torch.as_tensor(data, dtype=dtype)
        return made if device is None else self._to(made, device)


@cache
def _has_parts(func: Any) -> bool:
    """Whether an operation is written as others, which are looked at in its place."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")


def _tensors(values: Iterable[Any]) -> list[Tensor]:
    """The tensors among the arguments of an operation, or its results."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found


@cache
def _is_ours(file: str) -> bool:
    path = Path(file)
    return ROOT in path.parents and path.relative_to(ROOT).parts[0] in ("model", "pipeline", "data", "tfm")
