"""One gradient in one pass: a row is read once for its score and its contribution, on two threads.

NumPy needs two products, ``Z @ v`` and ``Z.T @ ψ``, hence two reads of Z. Here the contribution of a row is
added while the score of the next one is summed, and rows are fetched from memory ahead of their turn. Rows
are single precision; contributions are whole grid steps, added as 32-bit integers and carried over to 64
bits before they could overflow, so neither threads nor batches can change a sum.

**One record, one contribution.** All rows go through the same compiled loop, whose path depends on the
number of features alone: a record's contribution is the same at every place of every batch.

**Norm.** `single` shrinks a row by 2^-20 before it rounds; what follows (the row, its pull and their product
are rounded once each, by at most 2^-24) cannot bring the contribution beyond ``c r`` again, and truncation
toward zero shortens it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from privada.methods.reweighting._kernels import logistic_pull, squared_pull

Singles = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
THREADS = 2
AHEAD = 12  # rows between a fetch and its use: the latency of memory, in rows of some hundred features
LINE = 16  # single precision numbers in a line of the cache
FEWEST = 2000  # rows worth a second thread
PULLS = {"squared": squared_pull, "logistic": logistic_pull}
_SHRINK = 1 - 2.0**-20
_ROOM = 2**31 - 1


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def _fetch(typing: Any, array: Any, row: Any, column: Any) -> Any:  # pragma: no cover - compiled
    """Ask the processor for a line of an array; changes nothing."""
    del typing, row, column

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        held = context.make_array(kind)(context, builder, args[0])
        place = cgutils.get_item_pointer(context, builder, kind, held, args[1:], wraparound=False)
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        call = builder.module.declare_intrinsic("llvm.prefetch", [byte], shape)
        builder.call(call, [builder.bitcast(place, byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), codegen


@cache
def _kernel(loss: str) -> Any:
    """The compiled pass for one loss: a branch on the loss inside it would cost a third of its time."""
    pull_of = PULLS[loss]

    @numba.njit(nogil=True, fastmath={"reassoc", "nsz"}, cache=True)  # type: ignore[untyped-decorator, unused-ignore]
    def part(
        sums: npt.NDArray[np.int64],
        Z: Singles,
        base: Floats,
        y: Floats,
        v: Singles,
        threshold: float,
        per_step: float,
        carry: int,
    ) -> None:  # pragma: no cover - compiled
        n, k = Z.shape
        block = np.zeros(k, dtype=np.int32)
        last, pull = Z[0], np.float32(0.0)
        for start in range(0, n, carry):
            for i in range(start, min(n, start + carry)):
                row, dot = Z[i], np.float32(0.0)
                for j in range(0, k, LINE):
                    _fetch(Z, min(i + AHEAD, n - 1), j)
                for j in range(k):
                    dot += row[j] * v[j]
                    block[j] += np.int32(last[j] * pull)
                last, pull = row, np.float32(pull_of(base[i] + dot, y[i], threshold) * per_step)
            for j in range(k):
                sums[j] += block[j]
                block[j] = 0
        for j in range(k):
            sums[j] += np.int32(last[j] * pull)

    return part


def single(Z: Floats) -> Singles:
    """Rows in single precision, none longer than it was."""
    return np.ascontiguousarray(Z * _SHRINK, dtype=np.float32)


def add_pulls(
    sums: npt.NDArray[np.int64],
    Z: Singles,
    base: Floats,
    y: Floats,
    v: Singles,
    *,
    loss: str,
    threshold: float,
    per_step: float,
    largest: float,
) -> None:
    """Add ``z ψ`` of every record to ``sums`` in whole grid steps; ``largest`` bounds one record's, in steps.

    >>> Z, v, zero = single(np.eye(3)), np.zeros(3, dtype=np.float32), np.zeros(3)
    >>> sums = np.zeros(3, dtype=np.int64)
    >>> add_pulls(sums, Z, zero, zero + 2, v, loss="squared", threshold=1.0, per_step=100.0, largest=100.0)
    >>> sums.tolist()                                        # 100, shortened and truncated
    [-99, -99, -99]
    """
    carry = max(1, min(4096, int(_ROOM // (largest + 1)) - 1))
    part, width = _kernel(loss), Z.shape[1]
    cuts = [len(Z) * thread // THREADS for thread in range(THREADS + 1)]
    totals = np.zeros((THREADS, max(width, 64)), dtype=np.int64)

    def work(at: slice, thread: int) -> None:
        part(totals[thread, :width], Z[at], base[at], y[at], v, threshold, per_step, carry)

    if len(Z) >= FEWEST:
        spans = [slice(*span) for span in pairwise(cuts)]
        others = [_pool().submit(work, spans[thread], thread) for thread in range(1, THREADS)]
        work(spans[0], 0)
        for other in others:
            other.result()
    elif len(Z):
        work(slice(None), 0)
    sums += totals[:, :width].sum(axis=0)


@cache
def _pool() -> ThreadPoolExecutor:
    """The other threads, kept from call to call."""
    return ThreadPoolExecutor(max_workers=THREADS - 1)


__all__ = ["add_pulls", "single"]
