"""Runs that processes share."""

import os

import joblib

from privada_lab.experiments.registry import untracked
from privada_lab.experiments.sharing import shared


def _who(number):
    return number, os.getpid()


def test_shared_runs_come_in_order_from_other_processes():
    with joblib.parallel_config("loky", n_jobs=2):
        found = list(shared(_who, range(6), "numbers", untracked))
    assert [number for number, _ in found] == list(range(6))
    assert os.getpid() not in {process for _, process in found}
    assert {process for _, process in shared(_who, range(3), "numbers", untracked)} == {os.getpid()}
