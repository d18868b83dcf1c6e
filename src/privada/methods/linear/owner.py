"""How a noisy descent is answered: a step at a time, exact sums on the grid, then noise.

**One record, one contribution.** What is computed for a record depends on that record alone. Dot products
are summed coordinate by coordinate in one fixed order, and all rows of a pass go through the same compiled
loop, whose path depends on the number of features alone. So neither a record's place in a batch nor its
neighbours can move its last bit. Sums are sums of integers, the same in every order.

**One pass** (`add_pulls`, for one output). A row is read once for its score and its contribution. NumPy
needs two products, ``Z @ v`` and ``Z.T @ ψ``, hence two reads of Z. Here the contribution of a row is added
while the score of the next one is summed, and rows are fetched from memory ahead of their turn. Rows are
single precision; contributions are whole grid steps, added as 32-bit integers and carried over to 64 bits
before they could overflow, so neither threads nor batches can change a sum.

**Norm of a single-precision record.** Its pull is at most the bound over the length of its row, and the row
is shrunk by 2^-20 before it is rounded. What follows (the row, its pull and their product are rounded once
each, by at most 2^-24) cannot bring the contribution beyond the bound again, and truncation toward zero
shortens it. A pull that is not finite adds nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any, Self

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from privada._arrays import FloatArray, IntArray
from privada._threads import count_processors, run_each
from privada.methods.linear.questions.descent import LinearDescent
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows

AHEAD = 12  # rows between a fetch and its use: the latency of memory, in rows of some hundred features
LINE = 16  # single precision numbers in a line of the cache
FEWEST = 1000  # rows worth a thread
MOST_CARRY = 4096
_LONGEST, _HIGHEST = 1e18, 1e30  # of a row and of a pull in steps: their products stay finite
_SHRINK = 1 - 2.0**-20
_ROOM = 2**31 - 1
_INSIDE = 1 - 2.0**-40


def answer_descent(question: LinearDescent, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Release the noisy sum at the current point; it leads to the next point."""
    # coordinates, offsets and labels do not change from step to step, so they are computed once
    parts = rows.prepared(partial(prepare, question))
    V, velocity = question.start()
    released = {}
    for name in question.names():
        released[name] = draw(name, parts.total(partial(_sum_pulls, question, V)))
        V, velocity = question.go_on(V, velocity, released[name])
    return released


def prepare(question: LinearDescent, batch: Batch) -> tuple[Any, FloatArray, FloatArray]:
    """Coordinates, offsets and labels of a batch, each record by itself."""
    X, y = labelled(batch)
    Z = question.columns(X)
    if question.transform is not None:
        Z = mapped(Z, question.transform, np.zeros(question.coordinates), np.inf)
    offsets = np.zeros((len(X), question.outputs))
    if question.intercepts is not None:
        offsets += question.intercepts
    if question.models is not None and question.model_weights is not None:
        predictions = question.models.predict(X)
        offsets += scored(predictions, question.model_weights, np.zeros(question.outputs))
    if question.loss == "softmax":
        return Z, offsets, y
    singles = Singles.of(Z, bound=question.bound, per_step=_per_step(question))
    return singles, offsets[:, 0], y / question.unit if question.loss == "squared" else y


def _sum_pulls(question: LinearDescent, V: FloatArray, part: tuple[Any, FloatArray, FloatArray]) -> IntArray:
    """What the records of a batch contribute at V, in grid steps."""
    rows, offsets, y = part
    sums = np.zeros(V.shape, dtype=np.int64)
    threshold = np.inf if question.threshold is None else float(question.threshold)
    if question.loss == "softmax":
        bound = float(question.bound)
        add_softmax(sums, rows, offsets, y, V, threshold, bound, _per_step(question))
    else:
        v = V[:, 0].astype(np.float32)
        add_pulls(sums[:, 0], rows, offsets, y, v, loss=question.loss, threshold=threshold)
    return sums


def _per_step(question: LinearDescent) -> float:
    return 1 / question.plan.lattice("gradient_0").grid.step


def labelled(batch: Batch) -> tuple[FloatArray, FloatArray]:
    """Features and labels as the kernels want them."""
    return np.ascontiguousarray(batch.X), np.ascontiguousarray(batch.labels, dtype=np.float64)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _norm(z: FloatArray) -> float:  # pragma: no cover - compiled
    """Length of one record, without overflow."""
    largest = 0.0
    for j in range(z.shape[0]):
        largest = max(largest, abs(z[j]))
    if largest == 0.0:
        return 0.0
    total = 0.0
    for j in range(z.shape[0]):
        part = z[j] / largest
        total += part * part
    return largest * math.sqrt(total)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _finite(z: FloatArray) -> bool:  # pragma: no cover - compiled
    """Whether all numbers of one record are."""
    largest = 0.0
    for j in range(z.shape[0]):
        largest = max(largest, abs(z[j])) if abs(z[j]) < np.inf else np.inf
    return largest < np.inf


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def mapped(
    X: FloatArray, transform: FloatArray, shift: FloatArray, radius: float
) -> FloatArray:  # pragma: no cover - compiled
    """``x P + shift`` of every row, clipped to the ball; a row that overflows is 0."""
    n, d = X.shape
    k = transform.shape[1]
    Z = np.empty((n, k))
    for i in range(n):
        for j in range(k):
            Z[i, j] = shift[j]
        for a in range(d):
            x = X[i, a]
            if x != 0.0:
                for j in range(k):
                    Z[i, j] += x * transform[a, j]
        if not _finite(Z[i]):
            Z[i] = 0.0
        norm = _norm(Z[i])
        if norm > radius * _INSIDE:  # a record that is not finite is 0 by now
            factor = radius * _INSIDE / norm
            for j in range(k):
                Z[i, j] *= factor
    return Z


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def scored(
    X: FloatArray, weights: FloatArray, intercepts: FloatArray
) -> FloatArray:  # pragma: no cover - compiled
    """``x W + b`` of every row."""
    n, d = X.shape
    outputs = weights.shape[1]
    scores = np.empty((n, outputs))
    for i in range(n):
        for o in range(outputs):
            total = intercepts[o]
            for a in range(d):
                total += X[i, a] * weights[a, o]
            scores[i, o] = total
    return scores


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def squared_pull(score: float, y: float, threshold: float) -> float:  # noqa: ARG001 # pragma: no cover
    """ψ of one record: its residual, not yet bounded; the threshold is in the bound."""
    return score - y


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def logistic_pull(score: float, y: float, threshold: float) -> float:  # pragma: no cover - compiled
    """ψ of one record of two classes."""
    signed = score if y == 1.0 else -score
    loss = math.log1p(math.exp(-abs(signed))) + max(0.0, -signed)
    push = -math.expm1(-loss)
    weight = 1.0 if loss <= threshold else math.sqrt(threshold / loss)
    return -weight * push if y == 1.0 else weight * push


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_softmax(
    sums: npt.NDArray[np.int64],
    Z: FloatArray,
    base: FloatArray,
    y: FloatArray,
    V: FloatArray,
    threshold: float,
    bound: float,
    per_step: float,
) -> None:  # pragma: no cover - compiled
    """Add ``z ⊗ ψ`` of every record of several classes, shortened to the bound, in whole grid steps.

    A pull that is not a number (scores that overflow) adds nothing: what a record adds has norm at most
    the bound whatever V is. Steps are truncated toward zero.
    """
    k, outputs = V.shape
    scores = np.empty(outputs)
    for i in range(Z.shape[0]):
        for o in range(outputs):
            total = base[i, o]
            for j in range(k):
                total += Z[i, j] * V[j, o]
            scores[o] = total
        # from scores to the record's pull, in place
        most = scores[0]
        for o in range(1, outputs):
            most = max(most, scores[o])
        total = 0.0
        for o in range(outputs):
            total += math.exp(scores[o] - most)
        code = int(y[i])
        loss = math.log(total) + most - scores[code]
        weight = 1.0 if loss <= threshold else math.sqrt(threshold / loss)
        for o in range(outputs):
            p = math.exp(scores[o] - most) / total
            scores[o] = weight * (p - 1.0 if o == code else p)
        length = _norm(Z[i]) * _norm(scores)
        if not (_finite(Z[i]) and _finite(scores) and length < np.inf):
            continue
        factor = per_step if length <= bound * _INSIDE else per_step * (bound * _INSIDE / length)
        for o in range(outputs):
            pull = scores[o] * factor
            for j in range(k):
                sums[j, o] += np.int64(Z[i, j] * pull)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_weighted(
    sums: npt.NDArray[np.int64], Z: FloatArray, push: FloatArray, per_step: float
) -> None:  # pragma: no cover - compiled
    """Add ``push_i z_i`` of every record in whole grid steps, truncated toward zero.

    A push that is not finite adds nothing.
    """
    for i in range(Z.shape[0]):
        pull = push[i] * per_step
        if not abs(pull) < np.inf:
            continue
        for j in range(Z.shape[1]):
            sums[j] += np.int64(Z[i, j] * pull)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_outer(
    sums: npt.NDArray[np.int64],
    Z: FloatArray,
    push: FloatArray,
    factor: FloatArray,
    bound: float,
    per_step: float,
) -> None:  # pragma: no cover - compiled
    """Add ``z ⊗ push`` of every record, shortened to the bound, times its factor, in whole grid steps.

    A record that is not finite, or whose factor is not in [0, 1], adds nothing. Steps are truncated toward
    zero.
    """
    for i in range(Z.shape[0]):
        if not (np.abs(push[i]).sum() < np.inf and np.abs(Z[i]).sum() < np.inf and 0.0 <= factor[i] <= 1.0):
            continue
        length = _norm(Z[i]) * _norm(push[i])
        scale = factor[i] * per_step
        if length > bound * _INSIDE:
            scale *= bound * _INSIDE / length
        for o in range(push.shape[1]):
            pull = push[i, o] * scale
            for j in range(Z.shape[1]):
                sums[j, o] += np.int64(Z[i, j] * pull)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_pairs(
    sums: npt.NDArray[np.int64], Z: FloatArray, e: FloatArray, per_step: float
) -> None:  # pragma: no cover - compiled
    """Add the outer products of (z, e), on and above the diagonal, in whole steps truncated toward zero."""
    k = Z.shape[1]
    row = np.empty(k + 1)
    for i in range(Z.shape[0]):
        for a in range(k):
            row[a] = Z[i, a]
        row[k] = e[i]
        for a in range(k + 1):
            if row[a] != 0.0:
                for b in range(a, k + 1):
                    sums[a, b] += np.int64(row[a] * row[b] * per_step)


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


PULLS = {"squared": squared_pull, "logistic": logistic_pull}


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
