"""Research only: the papers' printed mechanisms, baselines, data sets and experiments.

Nothing that an owner or a learner runs imports this package; ``privada reproduce`` finds its experiments by
the entry point ``privada.experiments``.
"""
