"""What the names of Triton's and Gluon's languages do to the tiles of one program, in plain torch on a CPU.

A tile is a tensor, a pointer is a flat tensor with offsets, shared memory is a tensor. Layouts say which thread has a
number and never which number it is, so they are ignored. What a kernel must not rely on is no number here: shared
memory before it is written, and what a mask leaves out without a value instead.
"""

from types import ModuleType, SimpleNamespace
from typing import Any

import torch

EIGHT_BIT_FLOATS = (torch.float8_e4m3fn, torch.float8_e5m2)
PROGRAM: list[tuple[int, ...]] = [(0, 0, 0), (1, 1, 1)]
"""Ids of the program that runs, and how many there are, along each axis of the grid."""


class Pointer:
    """Addresses within a tensor: `at` (any shape) counts elements of `flat` (N,)."""

    def __init__(self, flat: Any, at: Any = 0) -> None:
        self.flat, self.at = flat, torch.as_tensor(at)

    @property
    def dtype(self) -> Any:
        return SimpleNamespace(element_ty=self.flat.dtype)

    def __add__(self, by: Any) -> "Pointer":
        return Pointer(self.flat, self.at + by)

    def __sub__(self, by: Any) -> "Pointer":
        return Pointer(self.flat, self.at - by)

    def __getitem__(self, key: Any) -> "Pointer":
        return Pointer(self.flat, self.at[key])

    def to(self, dtype: object) -> "Pointer":
        """An address as a number, which only assembly takes."""
        return self

    def view(self, dtype: Any) -> "Pointer":
        return Pointer(self.flat.view(dtype), self.at * self.flat.element_size() // dtype.itemsize)

    def places(self, mask: Any, *others: Any) -> tuple[Any, ...]:
        """Offsets and mask in one shape, with `others`; IndexError for an access past the tensor."""
        mask = torch.as_tensor(True if mask is None else mask)
        at, mask, *others_too = torch.broadcast_tensors(self.at, mask, *map(torch.as_tensor, others))
        beyond = mask & ((at < 0) | (at >= self.flat.numel()))
        if bool(beyond.any()):
            raise IndexError(f"{int(beyond.sum())} accesses past {self.flat.numel()} elements: {at[beyond][:4]}")
        return at, mask, *others_too


def unknown(dtype: Any) -> float | int:
    """What stands where a kernel may expect nothing."""
    return float("nan") if dtype.is_floating_point else 77


def load(pointer: Pointer, mask: Any = None, other: Any = None, **_: Any) -> Any:
    at, mask = pointer.places(mask)
    dtype = pointer.flat.dtype
    codes = pointer.flat.view(torch.uint8) if dtype in EIGHT_BIT_FLOATS else pointer.flat
    found = codes[torch.where(mask, at, 0)].view(dtype)
    if bool(mask.all()):
        return found
    return torch.where(mask, found, torch.as_tensor(unknown(dtype) if other is None else other).to(dtype))


def store(pointer: Pointer, value: Any, mask: Any = None, **_: Any) -> None:
    at, mask, value = pointer.places(mask, value)
    value = value[mask].to(pointer.flat.dtype)
    if value.dtype in EIGHT_BIT_FLOATS:
        pointer.flat.view(torch.uint8)[at[mask]] = value.view(torch.uint8)
    else:
        pointer.flat[at[mask]] = value


def atomic_add(pointer: Pointer, value: Any, **_: Any) -> Any:
    old = load(pointer).clone()
    store(pointer, old + value)
    return old


class Shared:
    """Shared memory. Programs run one after the other, so whatever is copied has arrived."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def store(self, value: Any) -> None:
        self.tensor.copy_(value.expand(self.tensor.shape))

    def load(self, layout: object = None) -> Any:
        return self.tensor.clone()

    def index(self, place: Any) -> "Shared":
        return Shared(self.tensor[int(place)])

    def slice(self, start: int, length: int, dim: int = 0) -> "Shared":
        return Shared(self.tensor.narrow(dim, start, length))

    def permute(self, order: list[int]) -> "Shared":
        return Shared(self.tensor.permute(*order))


def allocate(dtype: Any, shape: list[int], layout: object, value: Any = None) -> Shared:
    shared = Shared(torch.full(tuple(shape), unknown(dtype), dtype=torch.float32).to(dtype))
    if value is not None:
        shared.store(value)
    return shared


def copy_to_shared(shared: Shared, pointer: Pointer, mask: Any = None, **_: Any) -> None:
    """As cp.async, which writes zeros where it is masked."""
    shared.store(load(pointer, mask, 0))


def where(condition: Any, one: Any, two: Any) -> Any:
    if isinstance(one, Pointer):
        return Pointer(one.flat, torch.where(condition, one.at, two.at))
    return torch.where(torch.as_tensor(condition), one, two)


def reduced(kind: str, tile: Any, axis: int | None) -> Any:
    found = getattr(tile, kind)(*(() if axis is None else (axis,)))
    return found[0] if isinstance(found, tuple) else found  # the largest, and where they are


def inline(text: str, constraints: str, given: list[Any], dtype: Any, is_pure: bool, pack: int) -> Any:
    """What the assembly of kernels for dense rows does: it reads memory, or widens bfloat16 wherever that lies in a
    register. Packed weights and 8-bit caches have more of it, and run on a GPU alone."""
    if "prefetch" in text:
        return torch.zeros((), dtype=torch.int32)
    if "ld.global" in text:
        return load(given[0]).view(dtype)
    assert "0xffff0000" in text, text
    return given[0].to(torch.float32)


def folded(tiles: tuple[Any, ...], axis: int, combine: Any) -> tuple[Any, ...]:
    """Several tiles along an axis, by a function of two of each."""
    parts = list(zip(*(tile.unbind(axis) for tile in tiles), strict=True))
    found = parts[0]
    for part in parts[1:]:
        found = combine(*found, *part)
    return found


def multiplied(one: Any, two: Any, total: Any = 0, **_: Any) -> Any:
    """As tensor cores: products of numbers in few bits, sums in float32."""
    return one.float() @ two.float() + total


def of_torch(name: str) -> Any:
    """A function of torch that takes Python's numbers too."""
    return lambda *given: getattr(torch, name)(*map(torch.as_tensor, given))


class Whole(int):
    """A number that a kernel's module names, and its host code reads as `value`."""

    value = property(int)


class Real(float):
    """The same."""

    value = property(float)


def named(value: Any) -> Any:
    return Whole(value) if isinstance(value, int) else Real(value)


class Layout:
    """Of any kind, made from anything."""

    def __init__(self, *_: object, **__: object) -> None:
        pass


def language(name: str) -> ModuleType:
    """A module that stands for `triton.language` and for `triton.experimental.gluon.language`."""
    module, none = ModuleType(name), lambda *_: None
    dtypes = ("float32", "bfloat16", "float16", "int64", "int32", "int16", "int8", "uint8")
    layouts = ("Blocked", "Slice", "SwizzledShared", "DotOperand", "DistributedLinear", "NVMMADistributed")
    vars(module).update(
        {dtype: getattr(torch, dtype) for dtype in dtypes},
        **{f"{layout}Layout": Layout for layout in layouts},
        **{one: of_torch(one) for one in ("maximum", "minimum", "exp", "rsqrt", "abs")},
        int1=torch.bool,
        float8e4nv=torch.float8_e4m3fn,
        constexpr=named,
        reduce=folded,
        pointer_type=lambda dtype: dtype,
        to_tensor=torch.as_tensor,
        cast=lambda value, dtype: torch.as_tensor(value).to(dtype),
        program_id=lambda axis: torch.tensor(PROGRAM[0][axis]),
        num_programs=lambda axis: PROGRAM[1][axis],
        arange=lambda begin, end, layout=None: torch.arange(begin, end),
        full=lambda shape, value, dtype, layout=None: torch.full(tuple(shape), value, dtype=dtype),
        zeros=lambda shape, dtype, layout=None: torch.zeros(tuple(shape), dtype=dtype),
        zeros_like=torch.zeros_like,
        load=load,
        store=store,
        atomic_add=atomic_add,
        allocate_shared_memory=allocate,
        where=where,
        sum=lambda tile, axis=None: reduced("sum", tile, axis),
        max=lambda tile, axis=None: reduced("max", tile, axis),
        cdiv=lambda one, two: -(-one // two),
        static_range=range,
        dot=multiplied,
        inline_asm_elementwise=inline,
        range=lambda *given, num_stages=None: range(*map(int, given)),
        broadcast=torch.broadcast_tensors,
        reshape=lambda tile, shape: tile.reshape(*shape),
        permute=lambda tile, order: tile.permute(*order),
        trans=lambda tile: tile.T,
        expand_dims=torch.unsqueeze,
        split=lambda tile: tile.unbind(-1),
        join=lambda one, two: torch.stack([one, two], -1),
        convert_layout=lambda tile, layout, **_: tile,
        debug_barrier=none,
        thread_barrier=none,
    )
    return module
