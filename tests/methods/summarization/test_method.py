"""The method object of summarization: what can be started again, and what estimators and studies share."""

import threading
import time
import warnings

import numpy as np
import pytest

from privada import Dataset, Policy, PrivateSummarizer
from privada.exceptions import InputError, RehearsalWarning
from privada.methods.method import Public
from privada.methods.summarization import Curator
from privada.methods.summarization.curator import repeat_draws
from privada.methods.summarization.learner.rounds import AskedOwners
from privada.methods.summarization.method import Summarization
from privada.methods.summarization.questions.rounds import Everyone
from privada.privacy import ApproxDP, OwnerKey
from privada.privacy.ledger import Ledger

GUARANTEE = ApproxDP(epsilon=4, delta=1e-5, relation="replace-one")
SETTINGS = {"size": 40, "gamma": 0.5, "n_features": 40}


def prepared(parties, **settings):
    schemas = {node.name: node.owner.schema for node in parties}
    return Summarization(**(SETTINGS | settings)).prepare(Public(), schemas, GUARANTEE)


def test_rounds_that_are_started_again_broadcast_the_same_noise_and_pay_once(town):
    consumer, owners = town()
    inquiry = prepared([consumer, *owners], algorithm="rounds", batch=5)
    nodes = {node.name: node for node in (consumer, *owners)}
    first = Curator().drive(inquiry, nodes)
    spent = [node.owner.ledger.spent(node.name) for node in owners]
    again = Curator().drive(inquiry, nodes)
    assert np.array_equal(first.X, again.X)
    assert [node.owner.ledger.spent(node.name) for node in owners] == spent


def test_an_owner_that_does_not_answer_is_left_out(town):
    consumer, owners = town()
    inquiry = prepared([consumer, *owners])
    assert inquiry.optional_parties == {"near", "far", "both"}
    owners[0].owner.policy = Policy(curators=("somebody else",))
    summary = Curator().drive(inquiry, {node.name: node for node in (consumer, *owners)})
    assert [absent.owner for absent in summary.allocation.absent] == ["near"]
    assert len(summary.X) == 40


def rows():
    rng = np.random.default_rng(0)
    return [rng.normal(side, 0.4, size=(150, 2)) for side in (1.0, 1.0, -1.0)]


def test_the_estimator_can_choose_rounds():
    validation, *owners = rows()
    model = PrivateSummarizer(
        bounds=(-3, 3), epsilon=4, delta=1e-5, algorithm="rounds", batch=5, insecure_seed=0, **SETTINGS
    )
    with pytest.warns(RehearsalWarning):
        model.fit(validation, owners=owners)
    assert {release.kind for release in model.releases_} == {
        "summarization.sum",
        "summarization.participation",
    }
    assert len(model.X_) == 40
    assert (model.owner_ == "owner 0").mean() > 0.8


def test_the_owners_guarantee_by_its_old_name():
    with pytest.warns(DeprecationWarning, match="validation_epsilon="):
        old = PrivateSummarizer(epsilon=1, delta=1e-5, owner_epsilon=2, owner_delta=1e-6)
    new = PrivateSummarizer(epsilon=2, delta=1e-6, validation_epsilon=1, validation_delta=1e-5)
    assert old.get_params() == new.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PrivateSummarizer(epsilon=1, delta=1e-5)


def test_validation_set_and_owners_are_charged_what_each_was_promised():
    validation, *owners = rows()
    model = PrivateSummarizer(
        bounds=(-3, 3), epsilon=2, delta=1e-5, validation_epsilon=1, validation_delta=1e-6, **SETTINGS
    ).fit(validation, owners=owners)
    assert model.guarantee_ == ApproxDP(epsilon=1, delta=1e-6, relation="replace-one")
    assert model.spent_ <= ApproxDP(epsilon=2, delta=1e-5, relation="replace-one")
    assert not model.spent_ <= ApproxDP(epsilon=1, delta=1e-5, relation="replace-one"), "owners lost more"


def test_a_summary_never_takes_the_place_of_a_file(tmp_path, town):
    consumer, owners = town()
    file = tmp_path / "summary.npz"
    Curator().drive(
        prepared([consumer, *owners], summary=file), {node.name: node for node in (consumer, *owners)}
    )
    assert np.load(file)["X"].shape == (40, 2)
    with pytest.raises(InputError, match="summary.npz is there already"):
        prepared([consumer, *owners], summary=file)


def test_starts_at_once_draw_each_sum_once():
    drawn, both = [], threading.Barrier(2)

    def draw(step):
        drawn.append(step)
        time.sleep(0.2)
        return len(drawn)

    start, heard = repeat_draws(draw), []

    def run():
        heard_by = start()
        both.wait()
        heard.append(heard_by(AskedOwners({"near": 1}, Everyone())))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(drawn), heard) == (1, [1, 1])


@pytest.mark.filterwarnings("ignore::privada.exceptions.PrivacyLeakWarning")
def test_a_fit_on_a_ledger_gets_no_answer_that_is_kept_for_other_rows(made_owner):
    rng = np.random.default_rng(0)
    settings = {"gamma": 0.5, "bounds": (-3, 3), "epsilon": 1, "delta": 1e-5, "random_state": 0}
    with Ledger.open(":memory:", OwnerKey.generate()) as ledger:
        for name in ("owner 0", "owner 1"):
            ledger.open_budget(name, ApproxDP(epsilon=9, delta=1e-3, relation="replace-one"))
        consumer = made_owner(rng.uniform(-1, 1, (100, 2)), name="validation")
        fits = [
            PrivateSummarizer(10, dataset=Dataset(ledger=ledger), **settings).fit(
                owner=consumer, owners=[rng.uniform(-1, 1, (300, 2)) for _ in range(2)]
            )
            for _ in range(2)
        ]
    first, second = ({release.question for release in fit.releases_} for fit in fits)
    assert not first & second
