"""Rows that are in the training set before anything is gathered."""

from dataclasses import replace

import numpy as np
import pytest

from privada import PrivateSummarizer
from privada.exceptions import InputError
from privada.methods.summarization import EmbeddingSum, InitialRows
from privada.privacy import ZCDP

RHO = ZCDP(rho=5.0, relation="replace-one")


def test_what_is_left_makes_the_whole_match():
    rng = np.random.default_rng(0)
    target, held = rng.normal(size=4), InitialRows(mean=rng.normal(size=4), size=30, variance=0.2)
    mean, variance = held.left(target, 0.1, 20)
    assert np.allclose((30 * held.mean + 20 * mean) / 50, target)
    assert variance == pytest.approx((50**2 * 0.1 + 30**2 * 0.2) / 20**2)


def test_a_holder_of_people_releases_its_mean(matching, made_owner):
    rows = np.random.default_rng(1).normal(1, 0.4, size=(500, 2))
    question = EmbeddingSum(embedding=matching.embedding, guarantee=RHO)
    release = made_owner(rows, name="held", budget=RHO).answer(question)
    protected, public = (
        InitialRows.released(question, release, size=500),
        InitialRows.public(rows, matching.embedding),
    )
    assert np.linalg.norm(protected.mean - public.mean) < 6 * np.sqrt(protected.variance * len(public.mean))
    assert protected.variance > public.variance == 0
    with pytest.raises(InputError, match="another one"):
        InitialRows.released(replace(question, salt="other"), release, size=500)
    with pytest.raises(InputError, match="size"):
        InitialRows.released(question, release, size=0)


def test_initial_rows_move_what_is_gathered():
    """Two thirds of the validation set are here; beside initial rows from here, the rest is missing there."""
    rng = np.random.default_rng(0)
    here, there = (rng.normal(at, 0.2, size=(3000, 2)) for at in (1.0, -1.0))
    validation = np.vstack([here[:660], there[:340]])
    model = PrivateSummarizer(size=60, gamma=0.5, bounds=(-3, 3), rho=2.0, random_state=0)
    owners = {"here": here[700:], "there": there[700:]}
    alone = model.fit(validation, owners=owners).allocation_.rows
    beside = model.fit(validation, owners=owners, initial_rows=here[:60]).allocation_.rows
    assert alone["here"] > 50
    assert beside["there"] > 50
    with pytest.raises(InputError, match="rows"):
        model.fit(validation, owners=owners, initial_rows=here[:60, :1])
