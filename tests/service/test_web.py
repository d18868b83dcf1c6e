"""Which requests the pages hear, what every reply says, and how pages look."""

import pytest

from privada.report.page import CSS as REPORT
from privada.service.web import CSS, HEADERS, LARGEST_FORM, local_origins, refuse

OWN = local_origins(8400)
FORM = {"host": "localhost:8400", "origin": "http://localhost:8400", "content-length": "10"}


def test_a_form_of_its_own_is_heard():
    assert refuse("POST", FORM, OWN) is None
    assert refuse("GET", {"host": "127.0.0.1:8400"}, OWN) is None


@pytest.mark.parametrize(
    ("method", "change", "status"),
    [
        ("GET", {"host": "rebound.example:8400"}, 421),
        ("GET", {"host": "127.0.0.1"}, 421),
        ("GET", {"host": ""}, 421),
        ("POST", {"origin": "null"}, 403),
        ("POST", {"origin": ""}, 403),
        ("POST", {"origin": "http://localhost:9999"}, 403),
        ("POST", {"origin": "http://localhost:8400.evil.example"}, 403),
        ("POST", {"content-length": str(LARGEST_FORM + 1)}, 413),
        ("POST", {"content-length": ""}, 413),
        ("POST", {"content-length": "-1"}, 413),
        ("POST", {"content-length": "9" * 5000}, 413),
        ("POST", {"transfer-encoding": "chunked"}, 413),
        ("DELETE", {}, 405),
    ],
)
def test_what_is_not_its_own_is_not_heard(method, change, status):
    assert refuse(method, FORM | change, OWN)[0] == status


def test_the_policy_allows_nothing_inline_and_nothing_from_elsewhere():
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "*" not in policy


def test_the_console_wears_the_reports_style_and_loads_nothing():
    assert CSS.startswith(REPORT)
    assert "url(" not in CSS
    assert "@import" not in CSS
