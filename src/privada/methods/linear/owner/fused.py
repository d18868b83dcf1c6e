"""One gradient in one pass: a row is read once for its score and its contribution.

NumPy needs two products, ``Z @ v`` and ``Z.T @ ψ``, hence two reads of Z. Here the contribution of a row is
added while the score of the next one is summed, and rows are fetched from memory ahead of their turn. Rows
are single precision; contributions are whole grid steps, added as 32-bit integers and carried over to 64
bits before they could overflow, so neither threads nor batches can change a sum.

**One record, one contribution.** All rows go through the same compiled loop, whose path depends on the
number of features alone: a record's contribution is the same at every place of every batch.

**Norm.** A record's pull is at most the bound over the length of its row, and the row is shrunk by 2^-20
before it is rounded; what follows (the row, its pull and their product are rounded once each, by at most
2^-24) cannot bring the contribution beyond the bound again, and truncation toward zero shortens it. A pull
that is not finite adds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Self

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from privada._arrays import FloatArray
from privada._threads import count_processors, run_each
from privada.methods.linear.owner.kernels import logistic_pull, squared_pull

PULLS = {"squared": squared_pull, "logistic": logistic_pull}
AHEAD = 12  # rows between a fetch and its use: the latency of memory, in rows of some hundred features
LINE = 16  # single precision numbers in a line of the cache
FEWEST = 1000  # rows worth a thread
MOST_CARRY = 4096
_LONGEST, _HIGHEST = 1e18, 1e30  # of a row and of a pull in steps: their products stay finite
_SHRINK = 1 - 2.0**-20
_ROOM = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Singles:
    """Rows in single precision, and what their pulls may be.

    Attributes
    ----------
    rows : float32 array of shape (n, k)
        Slightly shortened. A row longer than 10^18 is 0: such a record adds nothing.
    caps : array of shape (n,)
        Largest pull of each record.
    per_step : float
        Grid steps in 1.
    carry : int
        Records whose contributions 32 bits can hold.
    """

    rows: npt.NDArray[np.float32]
    caps: FloatArray
    per_step: float
    carry: int

    @classmethod
    def of(cls, Z: FloatArray, *, bound: float, per_step: float) -> Self:
        """Rows whose contributions are to have norm at most ``bound``."""
        with np.errstate(over="ignore"):
            norms = np.linalg.norm(Z, axis=1)
        usable = (norms > 0) & (norms < _LONGEST)
        caps = np.minimum(bound / np.where(usable, norms, 1.0), _HIGHEST / per_step) * usable
        rows = np.where(usable[:, None], Z, 0.0) * _SHRINK
        carry = max(1, min(MOST_CARRY, int(_ROOM // (bound * per_step + 1)) - 1))
        return cls(np.ascontiguousarray(rows, dtype=np.float32), caps, per_step, carry)


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def _fetch(typing: Any, array: Any, row: Any, column: Any) -> Any:  # pragma: no cover - compiled
    """Ask the processor for a line of an array; changes nothing."""
    del typing, row, column

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        array = context.make_array(kind)(context, builder, args[0])
        place = cgutils.get_item_pointer(context, builder, kind, array, args[1:], wraparound=False)
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
        Z: npt.NDArray[np.float32],
        caps: FloatArray,
        base: FloatArray,
        y: FloatArray,
        v: npt.NDArray[np.float32],
        threshold: float,
        per_step: float,
        carry: int,
    ) -> None:  # pragma: no cover - compiled
        n, k = Z.shape
        block = np.zeros(k, dtype=np.int32)
        last, steps = Z[0], np.float32(0.0)
        for start in range(0, n, carry):
            for i in range(start, min(n, start + carry)):
                row, dot = Z[i], np.float32(0.0)
                for j in range(0, k, LINE):
                    _fetch(Z, min(i + AHEAD, n - 1), j)
                for j in range(k):
                    dot += row[j] * v[j]
                    block[j] += np.int32(last[j] * steps)
                pull = pull_of(base[i] + dot, y[i], threshold)
                pull = min(caps[i], max(-caps[i], pull)) if abs(pull) < np.inf else 0.0
                last, steps = row, np.float32(pull * per_step)
            for j in range(k):
                sums[j] += block[j]
                block[j] = 0
        for j in range(k):
            sums[j] += np.int32(last[j] * steps)

    return part


def add_pulls(
    sums: npt.NDArray[np.int64],
    singles: Singles,
    base: FloatArray,
    y: FloatArray,
    v: npt.NDArray[np.float32],
    *,
    loss: str,
    threshold: float,
) -> None:
    """Add ``z ψ`` of every record to ``sums``, in whole grid steps.

    >>> rows, zero = Singles.of(np.eye(3), bound=1.0, per_step=100.0), np.zeros(3)
    >>> sums = np.zeros(3, dtype=np.int64)
    >>> add_pulls(sums, rows, zero, zero + 2, zero.astype(np.float32), loss="squared", threshold=1.0)
    >>> sums.tolist()                                        # 100, shortened and truncated
    [-99, -99, -99]
    """
    n, k = singles.rows.shape
    # one part of the rows for each thread that is worth it
    threads = max(1, min(count_processors(), n // FEWEST)) if n else 0
    cuts = [n * thread // max(threads, 1) for thread in range(threads + 1)]
    spans = [slice(*span) for span in pairwise(cuts)]
    part, totals = _kernel(loss), np.zeros((len(spans), max(k, 64)), dtype=np.int64)

    def work(item: tuple[int, slice]) -> None:
        place, at = item
        rows = singles.rows[at], singles.caps[at], base[at], y[at]
        part(totals[place, :k], *rows, v, threshold, singles.per_step, singles.carry)

    run_each(work, enumerate(spans))
    sums += totals[:, :k].sum(axis=0)


__all__ = ["Singles", "add_pulls"]
