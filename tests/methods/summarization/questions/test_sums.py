import math
import tracemalloc

import numpy as np
import pytest

from privada.audit import replay
from privada.audit.transcript import witnessed
from privada.exceptions import InputError, WireError
from privada.methods.summarization import (
    EmbeddedRows,
    EmbeddingSum,
    FourierEmbedding,
    NearCount,
    Participation,
    RoundBids,
    RoundPoints,
    SummaryRows,
)
from privada.parties import Rows, Schema
from privada.parties.compute import batch as batch_module
from privada.privacy import ZCDP, ApproxDP, PureDP, Question, Unit
from privada.privacy.accounting import curves

E = FourierEmbedding.of(width=2, n_features=12, gamma=0.5, random_state=0)
RO, AR = "replace-one", "add/remove"
G = ApproxDP(epsilon=1, delta=1e-5, relation=RO)


def test_the_validation_mean_has_the_specified_noise():
    """privacy.md, section 5 (c): 2/(m mu); .0149 on a kernel mean at m = 500 and (1, 1e-5)."""
    question = EmbeddingSum(embedding=E, guarantee=G)
    sigma = math.sqrt(question.variance) / 500
    assert sigma == pytest.approx(2 * curves.gaussian_sigma(epsilon=1, delta=1e-5) / 500, rel=1e-4)
    assert sigma == pytest.approx(0.0149, abs=5e-5)


def test_sensitivities_follow_relation_and_unit():
    def reach(question):
        return next(iter(question.plan.draws.values())).sensitivity

    person = Unit(name="person", max_rows=3)
    for kind, more, moves in (
        (EmbeddingSum, {}, (1, 2)),
        (NearCount, {"direction": np.ones(12), "threshold": 0.0}, (1, 1)),
    ):
        for relation, move in zip((AR, RO), moves, strict=True):
            question = kind(embedding=E, guarantee=ZCDP(rho=1, relation=relation), **more)
            assert reach(question) == pytest.approx(move, rel=1e-4)
            many = kind(embedding=E, guarantee=ZCDP(rho=1, relation=relation, unit=person), **more)
            assert reach(many) == pytest.approx(3 * move, rel=1e-4)
    assert reach(EmbeddingSum(embedding=E, guarantee=PureDP(epsilon=1, relation=AR))) == pytest.approx(
        12**0.5
    )


DISCLOSING = [
    SummaryRows(embedding=E, target=np.zeros(12), size=3, variance=0.1, skip=2, guarantee=G),
    EmbeddedRows(embedding=E, target=np.zeros(12), size=3, guarantee=G),
    RoundBids(
        embedding=E, target=np.zeros(12), broadcast=np.ones(12), count=4, batch=2, sent=[1], guarantee=G
    ),
    RoundPoints(index=[0, 3], guarantee=G),
    Participation(size=10, dimension=12, batch=2, ask_share=0.5, guarantee=G),
]


@pytest.mark.parametrize("question", DISCLOSING, ids=lambda q: type(q).__name__)
def test_they_survive_the_wire(question):
    read = Question.from_bytes(question.to_bytes())
    assert read == question
    assert type(read) is type(question)


def test_rows_disclose_and_sums_do_not():
    assert [question.discloses for question in DISCLOSING] == [True, True, True, True, False]
    assert all("None" in q.__doc__ or "not differential privacy" in q.__doc__ for q in DISCLOSING[:4])
    assert not EmbeddingSum.discloses


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: EmbeddingSum(embedding=None, guarantee=G), "FourierEmbedding"),
        (lambda: NearCount(embedding=E, direction=np.ones(3), threshold=0, guarantee=G), "direction"),
        (lambda: NearCount(embedding=E, direction=np.full(12, np.nan), threshold=0, guarantee=G), "finite"),
        (lambda: NearCount(embedding=E, direction=np.ones(12), threshold=np.inf, guarantee=G), "threshold"),
        (lambda: SummaryRows(embedding=E, target=np.ones(12), size=0, guarantee=G), "size"),
        (lambda: SummaryRows(embedding=E, target=np.ones(12), size=1, variance=-1, guarantee=G), "variance"),
        (lambda: RoundPoints(index=[-1], guarantee=G), "index"),
        (lambda: Participation(size=3, dimension=12, ask_share=1.0, guarantee=G), "ask_share"),
        (lambda: Participation(size=3, dimension=12, guarantee=PureDP(epsilon=1, relation=RO)), "Gaussian"),
    ],
)
def test_bad_parameters_are_named(make, match):
    with pytest.raises(InputError, match=match):
        make()


def test_widths_are_checked_against_the_schema():
    schema = Schema.of_numbers(bounds=(0, 1), width=3)
    for question in (EmbeddingSum(embedding=E, guarantee=G), DISCLOSING[0], DISCLOSING[2]):
        with pytest.raises(InputError, match="width 3"):
            question.fits(schema)


def test_a_file_with_more_than_the_question_is_refused():
    blob = EmbeddingSum(embedding=E, guarantee=G).to_bytes()
    with pytest.raises(WireError):
        Question.from_bytes(blob[:-8])


@pytest.mark.parametrize("relation", [AR, RO])
def test_a_phase_beyond_floats_moves_no_sum_by_more_than_its_sensitivity(relation):
    """It was NaN, of which an integer is -2^63."""
    wild = FourierEmbedding(frequencies=np.array([[1e6, 1e6], [1e6, -1e6], [0.1, 0.0]]))
    schema = Schema.of_numbers(bounds=(-1e306, 1e306), width=2, size=3)
    rows = np.array([[1e306, 1e306], [1.0, 2.0], [1e306, -1e306]])
    other = rows[1:] if relation == AR else np.vstack([[[0.5, 0.5]], rows[1:]])
    for question in (
        EmbeddingSum(embedding=wild, guarantee=ZCDP(rho=0.5, relation=relation)),
        EmbeddingSum(embedding=wild, guarantee=PureDP(epsilon=1, relation=relation)),
        NearCount(
            embedding=wild, direction=np.ones(6), threshold=0.0, guarantee=ZCDP(rho=0.5, relation=relation)
        ),
    ):
        found = replay(question, Rows(rows, schema=schema), Rows(other, schema=schema))
        assert found.passed, found


def test_the_memory_of_an_embedding_does_not_follow_the_number_of_rows(monkeypatch, rehearsal):
    """Many frequencies made an answer fail at owners of many rows only: how many, the failure told."""
    wide = FourierEmbedding.of(width=2, n_features=400, gamma=0.5, random_state=0)
    schema = Schema.of_numbers(bounds=(-1, 1), width=2)
    X = np.random.default_rng(0).uniform(-1, 1, size=(3000, 2))
    claim = ZCDP(rho=0.5, relation=AR)
    for question in (
        EmbeddingSum(embedding=wide, guarantee=claim),
        NearCount(embedding=wide, direction=np.ones(400), threshold=0.0, guarantee=claim),
    ):
        calls = witnessed(question, Rows(X, schema=schema), rehearsal)[0]
        monkeypatch.setattr(batch_module, "AT_ONCE", 4000)
        tracemalloc.start()
        again = witnessed(question, Rows(X, schema=schema), rehearsal)[0]
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        monkeypatch.undo()
        assert np.array_equal(calls[0].exact, again[0].exact)
        assert most < 1_000_000  # all embedded rows are 10 MB
