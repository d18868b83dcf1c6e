"""The folder of a broker: what is written, what stays, and what is refused."""

import json

import pytest

from privada.exchange.broker.plan import BrokerPlan
from privada.exchange.broker.setup import set_up_broker
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


CLUSTER = BrokerPlan(servers=("one.example.org", "two.example.org:5222", "10.0.0.3"), learners=("alice",))


def test_a_cluster_has_a_folder_for_each_server_and_links_that_know_them_all(tmp_path):
    made = set_up_broker(tmp_path, CLUSTER)
    assert BrokerPlan.read(tmp_path) == CLUSTER
    names = ["one.example.org-4222", "two.example.org-5222", "10.0.0.3-4222"]
    assert sorted(place.name for place in (tmp_path / "servers").iterdir()) == sorted(names)
    urls = ("tls://one.example.org:4222", "tls://two.example.org:5222", "tls://10.0.0.3:4222")
    assert [Link.read(place / "link.toml").servers for place in made] == [urls, urls]
    for name in names:
        conf = configuration(tmp_path / "servers" / name)
        assert conf["server_name"] == name
        used = [*conf["tls"].values(), *conf["cluster"]["tls"].values()]
        files = [tmp_path / "servers" / name / path for path in used if str(path).endswith(".pem")]
        assert len(files) == 6
        assert all(path.is_file() for path in files)
        assert not any(
            str(tmp_path) in str(path) for path in used
        )  # the folder works wherever it is copied to


def test_the_authority_of_parties_is_not_that_of_servers(tmp_path):
    set_up_broker(tmp_path, CLUSTER)
    for place in (tmp_path / "servers").iterdir():
        assert (place / "ca.pem").read_bytes() == (tmp_path / "authority/ca.pem").read_bytes()
        assert (place / "routes/ca.pem").read_bytes() == (tmp_path / "routes/ca.pem").read_bytes()
        assert (place / "ca.pem").read_bytes() != (place / "routes/ca.pem").read_bytes()
