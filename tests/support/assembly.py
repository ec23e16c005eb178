"""Inline assembly of the kernels in plain torch: PTX, an instruction at a time, for all threads at once.

A register is an int32 tensor of bits with an element for each time that the assembly runs in a thread. `mma` is what
lanes of a warp do together, so it needs to know them: they are the axes of 8 and 4 in a tile (W, 8, 4, N), and in a
tile (B, 8 / B, N) its first two axes and places 4 * lane of the last.
"""

import re
from collections.abc import Callable
from typing import Any

import torch

BITS = {"s32": torch.int32, "f32": torch.float32}
_NO_NUMBER = 0x7FC00000
SHARED = torch.full((1 << 16,), _NO_NUMBER, dtype=torch.int32)
"""Words of shared memory that assembly sets aside for itself."""
PLACES: dict[str, int] = {}
SIZES: dict[str, int] = {}
"""Where in it each name begins, and how much it has, in bytes."""


def begin_program() -> None:
    """Shared memory is a program's own."""
    if PLACES:
        PLACES.clear()
        SHARED.fill_(_NO_NUMBER)


def run(text: str, constraints: str, given: list[Any], dtype: Any, pack: int) -> Any:
    """The outputs, in the shape of the inputs. `pack` elements of each input and output belong to a run: neighbours
    along the last axis, or if they have 16 bits and three axes, along the second."""
    dtypes = dtype if isinstance(dtype, tuple) else (dtype,)
    given = torch.broadcast_tensors(*given) if given else []
    outputs = constraints.count("=")
    axis = 1 if given and given[0].ndim == 3 and given[0].element_size() == 2 else -1
    registers = {f"${i}": torch.zeros((), dtype=torch.int32) for i in range(outputs)}
    inputs = [register for one in given for register in _taken(one, pack, axis)]
    registers |= {f"${outputs + i}": register for i, register in enumerate(inputs)}
    for name, operands in _instructions(text):
        _carry_out(name, operands, registers)
    shape = inputs[0].shape if inputs else ()
    found = [registers[f"${i}"].expand(shape) for i in range(outputs)]
    each = outputs // len(dtypes)
    made = [_given(found[i * each : (i + 1) * each], kind, pack, axis) for i, kind in enumerate(dtypes)]
    return made if isinstance(dtype, tuple) else made[0]


def _taken(tile: Any, pack: int, axis: int) -> list[Any]:
    """Registers of a tile: one element each, two of 16 bits, or four of 8."""
    if pack == 1:
        return [_bits(tile)]
    parts = tile.unflatten(axis, (-1, pack)).movedim(axis if axis < 0 else axis + 1, 0)
    if tile.element_size() == 4:
        return [_bits(part) for part in parts]
    if tile.element_size() == 1:
        first, second, third, fourth = (part.to(torch.int32) & 255 for part in parts)
        return [first | second << 8 | third << 16 | fourth << 24]
    words = [part.contiguous().view(torch.int16).to(torch.int32) & 0xFFFF for part in parts]
    return [low | high << 16 for low, high in zip(words[::2], words[1::2], strict=True)]


def _given(registers: list[Any], dtype: Any, pack: int, axis: int) -> Any:
    """The reverse."""
    if dtype.itemsize == 2:
        registers = [half for one in registers for half in (one & 0xFFFF, one >> 16 & 0xFFFF)]
    views = [one.to(torch.int16) if dtype.itemsize == 2 else one for one in registers]
    parts = [one.contiguous().view(dtype) for one in views]
    if pack == 1:
        return parts[0]
    return torch.stack(parts, -1).flatten(-2) if axis < 0 else torch.stack(parts, axis + 1).flatten(axis, axis + 1)


def _bits(tile: Any) -> Any:
    return tile.contiguous().view(torch.int32) if tile.is_floating_point() else tile.to(torch.int32)


def _instructions(text: str) -> list[tuple[str, list[Any]]]:
    """Names and operands: a register's name, a number's text, an address in brackets, or names in braces."""
    found = []
    for line in re.sub(r"\s+", " ", text.strip().removeprefix("{").removesuffix("}")).split(";"):
        name, _, rest = line.strip().partition(" ")
        if name == ".shared":
            _set_aside(rest)
        elif name and not name.startswith("."):
            operands = re.findall(r"\{[^}]*\}|\[[^]]*\]|[^,\s]+", rest)
            found.append((name, [re.findall(r"[^{},\s]+", one) if one[0] == "{" else one for one in operands]))
    return found


def _set_aside(declaration: str) -> None:
    """`.align 16 .b8 name[bytes]`"""
    name, size = re.findall(r"(\w+)\[(\d+)\]", declaration)[0]
    PLACES.setdefault(name, sum(SIZES[other] for other in PLACES))
    SIZES[name] = -(-int(size) // 128) * 128


def _carry_out(name: str, operands: list[Any], registers: dict[str, Any]) -> None:
    target, *sources = operands
    targets = target if isinstance(target, list) else [target]
    if name.startswith("st.shared"):
        begin = _address(target, registers)
        values = sources[0] if isinstance(sources[0], list) else sources
        for place, value in enumerate(values):
            at, bits = torch.broadcast_tensors(begin + place, _value(value, registers))
            SHARED[at.flatten()] = bits.flatten()
        return
    if name.startswith("ld.shared"):
        begin = _address(sources[0], registers)
        results = [SHARED[begin + place] for place in range(len(targets))]
    elif name.startswith("mma"):
        results = _mma(name, *([_value(one, registers) for one in group] for group in sources))
    elif name == "mov.b32" and isinstance(target, list):
        whole = _value(sources[0], registers)
        results = [whole & 0xFFFF, whole >> 16 & 0xFFFF]
    else:
        results = [COMPUTES[_plain(name)](*(_value(one, registers) for one in sources))]
    registers.update(zip(targets, results, strict=True))


def _address(operand: str, registers: dict[str, Any]) -> Any:
    """In words, of `[register + bytes]`."""
    register, _, further = operand.strip("[]").partition(" + ")
    return (_value(register, registers).long() + int(further or 0)) // 4


def _plain(name: str) -> str:
    return name.replace(".rn.f32", ".f32").replace(".lo.u32", ".lo").replace(".lo.s32", ".lo")


def _value(operand: str, registers: dict[str, Any]) -> Any:
    if operand in registers:
        return registers[operand]
    number = PLACES[operand] if operand in PLACES else int(operand.replace("0f", "0x"), 0)
    return torch.tensor(number - (1 << 32) if number >= 1 << 31 else number, dtype=torch.int32)


def _floats(compute: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *registers: compute(*(one.view(torch.float32) for one in registers)).view(torch.int32)


def _permuted(one: Any, other: Any, selector: Any) -> Any:
    """Each byte of the result is one of eight."""
    parts = [whole >> 8 * place & 255 for whole in (one, other) for place in range(4)]
    chosen = [int(selector) >> 4 * place & 7 for place in range(4)]
    return sum((parts[which] << 8 * place for place, which in enumerate(chosen)), torch.zeros((), dtype=torch.int32))


def _bytes(word: Any) -> Any:
    """(.., 4) signed."""
    return torch.stack([(word >> shift & 255 ^ 128) - 128 for shift in (0, 8, 16, 24)], -1)


def _halves(word: Any, dtype: Any) -> Any:
    """(.., 2) float32 of two numbers of 16 bits."""
    return torch.stack([(word >> shift & 0xFFFF).to(torch.int16).view(dtype).float() for shift in (0, 16)], -1)


def _paired(dtype: Any) -> Callable[[Any, Any], Any]:
    def pair(high: Any, low: Any) -> Any:
        high, low = (
            one.view(torch.float32).to(dtype).view(torch.int16).to(torch.int32) & 0xFFFF for one in (high, low)
        )
        return low | high << 16

    return pair


def _of_8_bits(codes: Any) -> Any:
    """Two float16 in a word of two numbers of e4m3."""
    low, high = ((codes >> shift & 255).to(torch.uint8).view(torch.float8_e4m3fn).to(torch.float32) for shift in (0, 8))
    return _paired(torch.float16)(high.view(torch.int32), low.view(torch.int32))


def _to_8_bits(high: Any, low: Any) -> Any:
    """The reverse, from float32; larger numbers become the largest."""
    parts = (one.view(torch.float32).clamp(-448, 448).to(torch.float8_e4m3fn) for one in (high, low))
    first, second = (one.view(torch.uint8).to(torch.int32) for one in parts)
    return second | first << 8


def _fused(one: Any, two: Any, three: Any, dtype: Any) -> Any:
    low, high = (_halves(one, dtype) * _halves(two, dtype) + _halves(three, dtype)).unbind(-1)
    return _paired(dtype)(high.contiguous().view(torch.int32), low.contiguous().view(torch.int32))


COMPUTES: dict[str, Callable[..., Any]] = {
    "mov.b32": lambda one: one,
    "mov.u32": lambda one: one,
    "shl.b32": lambda one, by: one << by,
    "shr.b32": lambda one, by: one >> by & (1 << 32 - int(by)) - 1,
    "and.b32": torch.bitwise_and,
    "xor.b32": torch.bitwise_xor,
    "add.u32": torch.add,
    "mad.lo": lambda one, two, three: one * two + three,
    "lop3.b32": lambda one, two, three, table: _by_table(one, two, three, int(table)),
    "prmt.b32": _permuted,
    "dp4a.s32.s32": lambda one, two, total: (_bytes(one) * _bytes(two)).sum(-1).to(torch.int32) + total,
    "add.f32": _floats(torch.add),
    "sub.f32": _floats(torch.sub),
    "mul.f32": _floats(torch.mul),
    "fma.rn.bf16x2": lambda one, two, three: _fused(one, two, three, torch.bfloat16),
    "cvt.f32.f16": lambda one: _halves(one, torch.float16)[..., 0].contiguous().view(torch.int32),
    "cvt.rn.f16x2.f32": _paired(torch.float16),
    "cvt.rn.bf16x2.f32": _paired(torch.bfloat16),
    "cvt.rn.f16x2.e4m3x2": _of_8_bits,
    "cvt.rn.satfinite.e4m3x2.f32": _to_8_bits,
}
"""Instruction, without how it rounds to float32 -> what it makes of bits."""


def _by_table(one: Any, two: Any, three: Any, table: int) -> Any:
    """Bit for bit, what the table says of three bits."""
    found = torch.zeros_like(one)
    for case in (case for case in range(8) if table >> case & 1):
        bits = (whole if case >> place & 1 else ~whole for whole, place in ((one, 2), (two, 1), (three, 0)))
        first, second, third = bits
        found = found | first & second & third
    return found


def _lanes(register: Any) -> Any:
    """(.., 8, 4): lanes of a warp."""
    if register.ndim == 4:
        return register.permute(0, 3, 1, 2)
    return register.reshape(8, -1, 4).permute(1, 0, 2)


def _of_lanes(lanes: Any, shape: Any) -> Any:
    return lanes.permute(0, 2, 3, 1) if len(shape) == 4 else lanes.permute(1, 0, 2).reshape(shape)


def _mma(name: str, rows: list[Any], columns: list[Any], total: list[Any]) -> list[Any]:
    """(16, K) times (K, 8) in the lanes' registers: lane 4 g + p has rows g and g + 8, of K two or four numbers from p
    on in each half, column g of the other operand, and columns 2 p and 2 p + 1 of the sum."""
    *_, result, kind, _, _ = name.split(".")
    shape = torch.broadcast_shapes(*(one.shape for one in (*rows, *columns)))

    def numbers(register: Any) -> Any:  # (.., 8, K / 2)
        lanes = _lanes(register.expand(shape))
        if kind == "s8":
            return _bytes(lanes).double().flatten(-2)
        return _halves(lanes, {"f16": torch.float16, "bf16": torch.bfloat16}[kind]).double().flatten(-2)

    made = BITS[result]
    a, b = [numbers(one) for one in rows], [numbers(one) for one in columns]
    left = torch.cat([torch.cat([a[0], a[2]], -1), torch.cat([a[1], a[3]], -1)], -2)
    product = left @ torch.cat(b, -1).transpose(-1, -2)  # (.., 16, 8)
    held = [_lanes(one.expand(shape)).contiguous().view(made) for one in total]
    sums = torch.cat([torch.stack(held[:2], -1).flatten(-2), torch.stack(held[2:], -1).flatten(-2)], -2)
    whole = (product + sums.double()).to(made).unflatten(-1, (4, 2))
    parts = (whole[..., half * 8 : half * 8 + 8, :, side] for half in (0, 1) for side in (0, 1))
    return [_of_lanes(part.contiguous().view(torch.int32), shape) for part in parts]
