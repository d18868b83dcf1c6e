"""The nearest of many public centres: fast, and bit for bit the result of the exact rule.

The rule of ``cells`` is: the centre whose squared distance, summed in float64 in
coordinate order, is least, the first one on ties. It depends on the record
alone (hazard 10 of privacy.md, section 0), but applying it to 5,000 centres is slow.
Here single precision rules out nearly all centres, with a margin that makes
the elimination certain, and the exact rule decides among the rest.

*Why it is exact.* Shift and scale so that every centre has ``|c| <= 1`` (a power
of two, no rounding). Let ``u = 2^-24``, ``r = |x|`` and ``w_j`` the single-precision
value of ``|c_j|² - 2 c_j·x``, which orders centres as the squared distance ``D_j``
does. Inputs, products and sums round at most d + 3 times each term, in any order and with
or without fused multiplications, so ``|w_j - (|c_j|² - 2 c_j·x)| <= (d + 5) u (1 + 2r)``.
The exact rule's own sums are off by a factor ``1 ± (d + 3) 2^-53``, so its choice
j* has ``D_j* <= D_i + (d + 4) 2^-51 (1 + r)²`` for every i. Together

    ``w_j* <= w_i + 2 (d + 6) u (1 + 2r) + (d + 4) 2^-51 (1 + r)²``.

Centres stand in groups; if the second least group minimum is above the least by more than
that margin, j* is in the group of the least and the exact rule runs over that group;
else it runs over all centres.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray, IntArray
from privada._threads import in_parts

FEW_CENTERS = 64  # below, the exact rule alone is as fast
MOST_FEATURES = 1000  # within the rounding analysis above
SCALES = (1e-100, 1e100)  # of the centres' spread: within float64 when squared
CHUNK_ROWS = 8192


class NearestSearch:
    """The nearest of public centres, the first on ties.

    Parameters
    ----------
    centers : array of shape (centers, features)

    Examples
    --------
    >>> search = NearestSearch(np.arange(100.0)[:, None])
    >>> search.assign(np.array([[41.5], [41.6], [1e3]])).tolist()
    [41, 42, 99]
    """

    def __init__(self, centers: FloatArray) -> None:
        self.centers = centers

    def assign(self, X: FloatArray) -> IntArray:
        """Centre of each row: a function of that row alone, whatever the batch and the machine."""
        from privada.methods.cells.questions import nearest_kernel as kernel

        rows = np.ascontiguousarray(X, dtype=np.float64)
        found = np.empty(len(rows), dtype=np.int64)
        search = kernel.assign if self.quick else kernel.assign_exactly
        prepared = self.prepared if self.quick else ()

        def work(part: slice) -> None:
            search(rows[part], self.centers, *prepared, found[part])

        in_parts(work, len(rows), CHUNK_ROWS)
        return found

    @cached_property
    def _spread(self) -> float:
        with np.errstate(all="ignore"):  # centres may be as far as floats go
            shifted = self.centers - self.centers.mean(axis=0)
            return float(np.abs(shifted).max() * np.sqrt(self.centers.shape[1]))

    @cached_property
    def quick(self) -> bool:
        """Whether the analysis above holds and is worth it."""
        fits = self.centers.shape[1] <= MOST_FEATURES and SCALES[0] < self._spread < SCALES[1]
        return fits and len(self.centers) >= FEW_CENTERS

    @cached_property
    def prepared(
        self,
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], FloatArray, FloatArray, float]:
        """Twice the centres and their squared norms in single precision; groups, origin and scale.

        ``groups[g, k]`` has coordinate k of all centres of a group, exactly.

        Rows are filled up to whole chunks of coordinates, centres to an even number of groups
        by ones that are farther than any.
        """
        from privada.methods.cells.questions import nearest_kernel as kernel

        n, d = self.centers.shape
        origin = self.centers.mean(axis=0)
        scale = 2.0 ** -np.ceil(np.log2(self._spread))
        shifted = (self.centers - origin) * scale
        height, width = _up(n, 2 * kernel.GROUP), _up(d, kernel.CHUNK)
        doubled = np.zeros((height, width), dtype=np.float32)
        doubled[:n, :d] = 2 * shifted
        norms = np.full(height, kernel.LARGEST_FLOAT32, dtype=np.float32)
        norms[:n] = np.sum(shifted**2, axis=1)
        groups = np.zeros((height, d))
        groups[:n] = self.centers
        groups = np.ascontiguousarray(groups.reshape(-1, kernel.GROUP, d).swapaxes(1, 2))
        return doubled, norms, groups, origin, float(scale)


def _up(number: int, step: int) -> int:
    return -(-number // step) * step


__all__ = ["NearestSearch"]
