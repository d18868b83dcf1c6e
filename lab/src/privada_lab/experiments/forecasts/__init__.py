"""``privada reproduce forecasts``: what ``privada forecast`` said beside what came, for every method.

*Sets.* scikit-learn's three tables and eight generated ones; with ``--data``, instead of scikit-learn's, the
ordinary tables of ``privada reproduce tables``: the final half unless ``--half development`` is given. A
quick look has scikit-learn's and three generated ones. Methods that adapt a model are called as there
(`privada_lab.experiments.tables`). The others get the same rows:

==============  ========================================================================================
cells           counts by class (or of rows) in 12 public cells; how many rows were counted wrongly
clustering      12 of 300 public rows, in 6 directions; the cost over that of choosing by them alone
evaluation      a linear model of the public rows; half the width of its interval
summarization   60 public rows of three owners for the private side; the distance over a random choice's
==============  ========================================================================================

*Guarantees*: epsilon in 0.5, 1, 2 and 4 (0.5 and 4 in a quick look); delta = 1/(10 n) where a method takes
one; replace-one, but add/remove for cells, clustering and evaluation. The number of rows is announced to all.

A band is to hold four outcomes of five. The splits of a table mostly lie in its band or outside it together,
so coverage is uncertain by more than the number of outcomes says.
"""

from __future__ import annotations

from privada_lab.experiments.forecasts.headline import run
from privada_lab.experiments.forecasts.trials import Trial

__all__ = ["Trial", "run"]
