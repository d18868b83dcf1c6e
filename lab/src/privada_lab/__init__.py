"""Research around privada: the papers' printed mechanisms, baselines, data sets and experiments.

This is the distribution privada-lab. Nothing that an owner or a learner runs imports it.
``privada reproduce`` finds its experiments by the entry point ``privada.experiments``.
"""
