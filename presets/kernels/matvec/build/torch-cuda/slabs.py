"""Products whose rows wait in shared memory, for matrices of a few megabytes.

A kernel that is launched early holds its weights in registers until its vector is ready, so the next one finds no
registers and cannot begin. Rows in shared memory leave them free: several products may be under way at once. Written in
Gluon, Triton's lower level, since Triton itself copies into shared memory only in loops.
"""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .parts import Fused, activated, per_row, wide
from .settings import SLAB_COLUMNS, Settings


@gluon.jit
def _weights(at, OFFSET: gl.constexpr):
    """The weights of a norm, float32."""
    found = wide(gl.load(at))
    if OFFSET != 0:  # the sum with 0 takes an instruction too
        found += OFFSET
    return found


@gluon.jit
def tokendyno_slab_product(
    given,
    addition,
    N,
    eps,
    K: gl.constexpr,
    FUSED: gl.constexpr,
    ADDED: gl.constexpr,
    ROWS: gl.constexpr,
    CHUNK: gl.constexpr,
    num_warps: gl.constexpr,
):
    """As `products.tokendyno_block_product`. Each warp has ROWS rows, or pairs of them, and no other warp's are needed.

    ADDED  the vector is old + norm(x), with the weights `added` of that norm, as `rows.tokendyno_rows_norm` computes
           it: here by every warp, which takes less time than a kernel of its own. The first program writes it to `sum`
    CHUNK  columns that a warp reads at once, a divisor of K
    """
    x, norm, shift, w, bias, residual, out = given
    added, old, sum = addition
    tile: gl.constexpr = gl.BlockedLayout([ROWS, 1, CHUNK // 32], [1, 1, 32], [1, num_warps, 1], [2, 1, 0])
    of_rows: gl.constexpr = gl.SliceLayout(2, tile)
    CHUNKS: gl.constexpr = K // CHUNK
    if FUSED.EARLY:
        gdc_launch_dependents()
    slab = gl.allocate_shared_memory(
        w.dtype.element_ty,
        [(2 if FUSED.GATED else 1) * CHUNKS, ROWS, num_warps, CHUNK],
        gl.SwizzledSharedLayout(1, 1, 1, [2, 1, 0]),
    )
    lines = gl.arange(0, ROWS, gl.SliceLayout(1, of_rows))[:, None] * num_warps
    rows = gl.program_id(0) * (ROWS * num_warps) + lines + gl.arange(0, num_warps, gl.SliceLayout(0, of_rows))[None, :]
    inside = rows < N
    columns = gl.arange(0, CHUNK, gl.SliceLayout(0, gl.SliceLayout(1, tile)))
    at = w + rows.to(gl.int64)[:, :, None] * K + columns[None, None, :]
    more = at + gl.to_tensor(N).to(gl.int64) * K
    for c in gl.static_range(CHUNKS):
        async_copy.async_copy_global_to_shared(
            slab.index(c), at + c * CHUNK, inside[:, :, None], eviction_policy="evict_first"
        )
        if FUSED.GATED:
            async_copy.async_copy_global_to_shared(
                slab.index(CHUNKS + c), more + c * CHUNK, inside[:, :, None], eviction_policy="evict_first"
            )
    async_copy.commit_group()
    learned = ()
    if FUSED.NORM:
        for c in gl.static_range(CHUNKS):
            learned += (_weights(norm + c * CHUNK + columns, FUSED.OFFSET),)
    if FUSED.CENTRED:
        shifts = ()
        for c in gl.static_range(CHUNKS):
            shifts += (gl.load(shift + c * CHUNK + columns),)
    if ADDED:
        of_added = ()
        for c in gl.static_range(CHUNKS):
            of_added += (_weights(added + c * CHUNK + columns, FUSED.OFFSET),)
    if FUSED.EARLY:
        gdc_wait()
    if FUSED.RESIDUAL:
        added = gl.load(residual + rows, mask=inside, other=0.0).to(gl.float32)
    vectors = ()
    for c in gl.static_range(CHUNKS):  # all of it is asked for before the first is used
        vectors += (gl.load(x + c * CHUNK + columns),)
    if ADDED:
        olds = ()
        for c in gl.static_range(CHUNKS):
            olds += (gl.load(old + c * CHUNK + columns),)
        power = gl.zeros([CHUNK], gl.float32, gl.SliceLayout(0, gl.SliceLayout(1, tile)))
        for c in gl.static_range(CHUNKS):
            power += wide(vectors[c]) * wide(vectors[c])
        shrink_added = gl.rsqrt(gl.sum(power, 0) / K + eps)
        sums = ()
        for c in gl.static_range(CHUNKS):
            normed = wide((wide(vectors[c]) * shrink_added * of_added[c]).to(out.dtype.element_ty))
            sums += ((wide(olds[c]) + normed).to(out.dtype.element_ty),)
            gl.store(sum + c * CHUNK + columns, sums[c], mask=columns < gl.where(gl.program_id(0) == 0, CHUNK, 0))
        vectors = sums
    if FUSED.CENTRED:
        plain = gl.zeros([CHUNK], gl.float32, gl.SliceLayout(0, gl.SliceLayout(1, tile)))
        for c in gl.static_range(CHUNKS):
            plain += wide(vectors[c])
        mean = gl.sum(plain, 0) / K
        spread = gl.zeros([CHUNK], gl.float32, gl.SliceLayout(0, gl.SliceLayout(1, tile)))
        for c in gl.static_range(CHUNKS):
            spread += (wide(vectors[c]) - mean) * (wide(vectors[c]) - mean)
        steep = gl.rsqrt(gl.sum(spread, 0) / K + eps)
    async_copy.wait_group(0)
    for c in gl.static_range(CHUNKS):
        vector = wide(vectors[c])
        if FUSED.CENTRED:
            vector = (vector - mean) * steep * learned[c] + wide(shifts[c])
        elif FUSED.NORM:
            if c == 0:  # a sum that begins with zeros takes an instruction more
                squares = vector * vector
            else:
                squares += vector * vector
            vector *= learned[c]
        product = wide(slab.index(c).load(tile)) * vector[None, None, :]
        if c == 0:
            total = product
        else:
            total += product
        if FUSED.GATED:
            product = wide(slab.index(CHUNKS + c).load(tile)) * vector[None, None, :]
            if c == 0:
                second = product
            else:
                second += product
    result = gl.sum(total, 2)
    other = result
    if FUSED.GATED:
        other = gl.sum(second, 2)
    if FUSED.NORM and not FUSED.CENTRED:
        shrink = gl.rsqrt(gl.sum(squares, 0) / K + eps)
        result *= shrink
        other *= shrink
    if FUSED.BIAS:
        constant, other_constant = per_row(bias, rows, inside, N, FUSED)
        result += constant
        other += other_constant
    result = activated(result, other, FUSED)
    if FUSED.RESIDUAL:
        result = result * FUSED.GAIN + added
    gl.store(out + rows, result.to(out.dtype.element_ty), mask=inside)


Added = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Of a vector that is a sum: the weights of the norm of what is added, what it is added to, and where the sum goes."""


def launch(
    x: torch.Tensor, w: torch.Tensor, out: torch.Tensor, fused: Fused, how: Settings, added: Added | None = None
) -> None:
    """`how`: ROWS and num_warps. w: dense; `ValueError` where its columns do not divide."""
    rows, columns = w.shape[0] // (2 if fused.gated else 1), w.shape[1]
    if columns % SLAB_COLUMNS:
        raise ValueError(f"A slab has a multiple of {SLAB_COLUMNS} columns, not {columns}.")
    chunk = 2 * SLAB_COLUMNS if w.element_size() == 2 and columns % (2 * SLAB_COLUMNS) == 0 else SLAB_COLUMNS
    tokendyno_slab_product[(triton.cdiv(rows, how["ROWS"] * how["num_warps"]),)](
        (x, *fused.tensors(x, "norm", "shift"), w, *fused.tensors(x, "bias", "residual"), out),
        added or (x, x, out),
        rows,
        fused.eps,
        K=columns,
        CHUNK=chunk,
        ADDED=added is not None,
        **fused.constants(),
        **how,
    )
