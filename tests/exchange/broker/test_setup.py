"""The folder of a broker: what is written, what stays, and what is refused."""

import json

import pytest

from privada.exceptions import InputError, StudyError
from privada.exchange.broker.setup import BrokerPlan, set_up_broker
from privada.exchange.link import Link

PLAN = BrokerPlan(owners=("clinic",), learners=("alice",))


def configuration(folder):
    return json.loads((folder / "nats.conf").read_text().split("\n", 1)[1])


def users(folder):
    """All who may connect, of all accounts."""
    return [user for account in configuration(folder)["accounts"].values() for user in account["users"]]


def test_every_party_gets_a_link_that_can_be_read(tmp_path):
    made = set_up_broker(tmp_path, PLAN)
    assert [place.name for place in made] == ["administrator", "owner-clinic", "learner-alice"]
    for place in made:
        assert Link.read(place / "link.toml").servers == ("tls://localhost:4222",)


def test_a_plan_is_read_back(tmp_path):
    set_up_broker(tmp_path, PLAN)
    assert BrokerPlan.read(tmp_path) == PLAN


def test_a_second_time_certificates_stay_and_parties_are_added(tmp_path):
    set_up_broker(tmp_path, PLAN)
    before = {path: path.read_bytes() for path in (tmp_path / "parties").rglob("*.pem")}
    plan = BrokerPlan.read(tmp_path).with_parties(("clinic", "lab"), ("bob",))
    assert (plan.owners, plan.learners) == (("clinic", "lab"), ("alice", "bob"))
    set_up_broker(tmp_path, plan)
    assert {path: path.read_bytes() for path in before} == before
    assert [user["user"] for user in users(tmp_path)] == [
        "CN=administrator",
        "CN=owner-clinic",
        "CN=owner-lab",
        "CN=learner-alice",
        "CN=learner-bob",
    ]


def test_an_owner_may_have_several_data_sets(tmp_path):
    plan = BrokerPlan(owners=("clinic", "lab")).with_parties(("clinic=scans,visits",), ())
    assert plan.owners == ("clinic=scans,visits", "lab")
    set_up_broker(tmp_path, plan)
    assert BrokerPlan.read(tmp_path) == plan
    clinic = users(tmp_path)[1]
    allowed = clinic["permissions"]["publish"]["allow"]
    assert clinic["user"] == "CN=owner-clinic"
    assert "privada.exchange.releases.scans.>" in allowed
    assert "privada.exchange.releases.visits.>" in allowed
    assert not any(".clinic." in subject for subject in allowed)


def test_who_leaves_the_plan_may_not_connect_any_more(tmp_path):
    set_up_broker(tmp_path, PLAN)
    set_up_broker(tmp_path, BrokerPlan(owners=("clinic",)))
    assert "CN=learner-alice" not in [user["user"] for user in users(tmp_path)]


@pytest.mark.parametrize(
    ("host", "listens"),
    [("localhost", "127.0.0.1"), ("127.0.0.1", "127.0.0.1"), ("broker.example.org", "0.0.0.0")],
)
def test_only_a_host_for_others_is_open_to_others(tmp_path, host, listens):
    set_up_broker(tmp_path, BrokerPlan(host=host))
    assert configuration(tmp_path)["host"] == listens


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"port": 0}, "port from 1"),
        ({"days": 0}, "days from 1"),
        ({"host": ""}, "host to be a name"),
        ({"host": "a b"}, "host to be a name"),
        ({"host": "a/b"}, "host to be a name"),
        ({"exchange": "a.b"}, "exchange to be letters"),
        ({"owners": ("a", "a")}, "each owner"),
        ({"owners": ("a=x,y", "b=y")}, "each data set"),
        ({"owners": ("a=",)}, "a name of letters"),
        ({"owners": ("a=x,>",)}, "a name of letters"),
        ({"owners": ("a.b",)}, "a name of letters"),
    ],
)
def test_other_plans_are_refused(wrong, said):
    with pytest.raises(InputError, match=said):
        BrokerPlan(**wrong)


def test_a_wrong_line_is_named(tmp_path):
    (tmp_path / "broker.toml").write_text(PLAN.to_toml().replace("4222", '"x"'))
    with pytest.raises(StudyError, match=r"broker.toml, line 2, port"):
        BrokerPlan.read(tmp_path)


def test_every_party_has_an_account_that_reaches_its_own_part_only(tmp_path):
    set_up_broker(tmp_path, PLAN)
    accounts = configuration(tmp_path)["accounts"]
    assert list(accounts) == ["EXCHANGE", "owner-clinic", "learner-alice"]
    assert [name for name, account in accounts.items() if "jetstream" in account] == ["EXCHANGE"]
    reached = {
        (name, each["service"]["subject"])
        for name, account in accounts.items()
        for each in account.get("imports", ())
        if "service" in each and not each["to"].startswith("privada-api.")
    }
    assert reached == {
        ("owner-clinic", "privada.exchange.releases.clinic.>"),
        ("owner-clinic", "privada.exchange.refusals.clinic.>"),
        ("learner-alice", "privada.exchange.questions.>"),
    }
