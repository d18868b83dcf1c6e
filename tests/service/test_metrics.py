"""Health and metrics are on this machine only, count right, and hold nothing else."""

import json
import urllib.error
import urllib.request
from datetime import datetime

import pytest

from privada.exceptions import InputError
from privada.service.metrics import Metrics, publish
from privada.service.ports import HOST


def get(port, page):
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}{page}", timeout=5) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_pages():
    metrics = Metrics()
    with publish(metrics, 0) as port:
        assert get(port, "/health")[0] == 503, "nobody is connected yet"
        metrics.connect("clinic")
        metrics.count("clinic", "answered", 0.5)
        metrics.count("clinic", "answered", 0.25)
        metrics.note_turn("clinic", waiting=2)
        assert get(port, "/health") == (200, '{"status": "ok", "failing": [], "outages": []}\n')
        text = get(port, "/metrics")[1]
        assert 'privada_questions_total{owner="clinic",outcome="answered"} 2\n' in text
        assert 'privada_answer_seconds_total{owner="clinic"} 0.75\n' in text
        assert 'privada_questions_waiting{owner="clinic"} 2\n' in text
        metrics.fail("clinic")
        assert get(port, "/health")[0] == 503
        assert get(port, "/ledger")[0] == 404


def test_what_is_away_is_named_until_it_is_back():
    metrics = Metrics()
    metrics.connect("clinic")
    with publish(metrics, 0) as port:
        for part in ("cluster", "cluster", "exchange"):
            metrics.fail("clinic", part)
            code, text = get(port, "/health")
            (outage,) = json.loads(text)["outages"]
            assert (code, outage["owner"], outage["part"]) == (503, "clinic", part)
            assert datetime.fromisoformat(outage["since"]).tzinfo is not None
            assert f'privada_connected{{owner="clinic"}} {int(part == "cluster")}\n' in metrics.to_text()
        assert 'privada_outage{owner="clinic",part="exchange"} 1\n' in metrics.to_text()
        metrics.connect("clinic")
        assert get(port, "/health") == (200, '{"status": "ok", "failing": [], "outages": []}\n')
    assert 'privada_outage{owner="clinic",part="exchange"} 0\n' in metrics.to_text()


def test_every_line_is_prometheus_text():
    metrics = Metrics()
    metrics.count("clinic", "refused", 0.1)
    metrics.fail("clinic")
    for line in metrics.to_text().splitlines():
        assert line.startswith(("# HELP privada_", "# TYPE privada_")) or float(line.rpartition(" ")[2]) >= 0


def test_a_port_that_is_taken_is_said():
    with publish(Metrics(), 0) as port, pytest.raises(InputError, match=f"port {port} cannot be used"):
        with publish(Metrics(), port):
            pass


def test_nothing_is_published_without_a_port():
    with publish(Metrics(), None) as port:
        assert port is None
