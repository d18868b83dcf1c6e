"""What a broker can be: plans that are read back, and plans that are refused."""

import pytest

from privada.exceptions import InputError, StudyError
from privada.exchange.broker.plan import BrokerPlan, Server
from privada.exchange.broker.setup import set_up_broker

PLAN = BrokerPlan(owners=("clinic",), learners=("alice",))


def test_a_plan_is_read_back(tmp_path):
    set_up_broker(tmp_path, PLAN)
    assert BrokerPlan.read(tmp_path) == PLAN


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"port": 0}, "port from 1"),
        ({"days": 0}, "days from 1"),
        ({"host": ""}, "host to be a name"),
        ({"host": "a b"}, "host to be a name"),
        ({"host": "a/b"}, "host to be a name"),
        ({"servers": ("a", "b")}, "three or five"),
        ({"servers": ("a", "b", "b")}, "three or five different"),
        ({"servers": ("a", "b", "c:x")}, "HOST:PORT"),
        ({"servers": ("a", "b", "c:64000")}, "at most 63535"),
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


def test_a_plan_of_one_server_that_was_written_before_there_were_clusters_is_read(tmp_path):
    lines = PLAN.to_toml().splitlines()
    (tmp_path / "broker.toml").write_text("\n".join(line for line in lines if "servers" not in line))
    assert BrokerPlan.read(tmp_path) == PLAN


@pytest.mark.parametrize(("host", "is_local"), [("127.0.0.2", True), ("localhost", True), ("a.org", False)])
def test_a_server_knows_whether_others_can_reach_it(host, is_local):
    assert Server(host, 4222).is_local is is_local
