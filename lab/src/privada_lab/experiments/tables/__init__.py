"""``privada reproduce tables``: every default beside trivial baselines, on ordinary tables.

*Pairs*: `privada_lab.datasets.tables`. Half of them are for development, half for final figures alone;
figures are of the final half unless ``--half development`` is given, but a quick look is at the
development half.

*Settings.* Reweighting has the labelled public side and the private target; marginals the same without public
labels; transport has the private side as its labelled source and the public side as its target, without
labels: half of the public side, at most 3,000 rows, is then held out to test. Estimators are called as a
new user would call them: the encoded table, public bounds and classes, epsilon and delta, nothing else
(`MarginalRegressor` takes no delta: it is asked for pure epsilon, which is more than its rivals keep).

*Guarantees*: replace-one row, epsilon in 0.5, 1, 2, 4, delta = min(1e-5, 1/(10 n)), for everybody. Noise
comes from the operating system; data, splits and public randomness from the split's number.

*Errors*: mean squared error of predictions held to the label's public range, or the share of wrong classes
(with the balanced error beside it). A regret is our mean error over the splits over the mean error of the
best rival that sees no more than the method does and keeps the same guarantee, or spends nothing; models in
the clear are shown and not ranked.

*Results* are kept, one JSON object per line, in ``results.jsonl`` of the folder given by ``--out``: a run
that was stopped continues where it was, and prints the figures of the results so far. Remove the lines of a
contender that has changed since by hand: ``grep -v '"ReweightedRegressor"'``.
"""

from __future__ import annotations

from privada_lab.experiments.tables.contenders import CONTENDERS, Case, Contender
from privada_lab.experiments.tables.headline import run
from privada_lab.experiments.tables.results import Record, Results

__all__ = ["CONTENDERS", "Case", "Contender", "Record", "Results", "run"]
