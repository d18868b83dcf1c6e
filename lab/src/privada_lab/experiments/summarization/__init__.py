"""``privada reproduce summarization``: how well a summary matches a private validation set.

The guarantees are true ones: (1.4, 0.01) for the validation set and (0.5, 1e-4) for every owner, both
replace-one. Releases of one study serve every size p, which is post-processing. *Greedy* sees everything and
matches the exact random-feature mean; *printed* is Algorithm 3 with the paper's parameters. Constants (shares
of an owner's budget, background, groups of the denoising) were set by argument and on draws of the same
images with seeds from 100 on; the figures use seeds below.
"""

from __future__ import annotations

from privada_lab.experiments.summarization.headline import run
from privada_lab.experiments.summarization.market import Market
from privada_lab.experiments.summarization.scores import Scores

__all__ = ["Market", "Scores", "run"]
