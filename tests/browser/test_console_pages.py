"""Every page of the console with a history behind it, as people see it; and what other pages cannot do."""

from __future__ import annotations

import importlib.util
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from privada.service.console import host
from privada.service.console.users import User, Users
from tests.service.console.conftest import PASSPHRASE, ServedOwner, TestProvider

from .conftest import DESKTOP, PHONE

SCRIPT = Path(__file__).parents[2] / "docs" / "generate_console_pictures.py"


@pytest.fixture(scope="module")
def pictures():
    """The script that draws the pictures of the documentation."""
    spec = importlib.util.spec_from_file_location("generate_console_pictures", SCRIPT)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def scene(pictures, tmp_path_factory):
    """The scene of the documentation's pictures, with a question that waits, and its address."""
    made = pictures.Scene()
    with made.running(tmp_path_factory.mktemp("scene")) as address:
        made.ask("alice", 0.3, "</dd><script>document.title = 'taken'</script>")
        made.wait(1)
        yield address


@pytest.mark.parametrize(("width", "dark"), [(DESKTOP, True), (PHONE, False)])
def test_every_page_is_whole(pictures, scene, visit, width, dark):
    seen, looked = visit(f"{scene}/sign-in", width=width, dark=dark), []

    def look(name):
        seen.check()
        assert seen.violations() == [], name
        assert "taken" not in seen.page.title()
        if name == "question":
            assert "A person with rows in other vintages may lose more." in seen.page.inner_text("main")
        looked.append(name)

    pictures.visit_pages(seen.page, scene, look)
    assert looked == ["sign-in", "inbox", "question", "budget", "history", "release", "export"]
    assert seen.page.locator("svg.burn").count() == 0
    seen.page.goto(f"{scene}/budget")
    assert seen.page.locator("svg.burn").count() == 6  # two vintages, and two learners of each


def test_the_page_to_print_has_no_navigation(pictures, scene, visit):
    page = visit(f"{scene}/sign-in").page
    pictures.sign_in(page, scene)
    page.goto(f"{scene}/export")
    page.emulate_media(media="print")
    assert not page.get_by_role("navigation").is_visible()
    assert page.get_by_role("heading", name="Vintages of visits").is_visible()
    assert page.pdf()[:5] == b"%PDF-"


def test_the_documentation_has_these_pictures(pictures):
    text = (SCRIPT.parent / "how-to/console.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\(console/([\w-]+\.png)\)", text))
    assert linked == {path.name for path in pictures.FOLDER.glob("*.png")}
    assert len(linked) == 9


@pytest.fixture
def provider():
    with TestProvider().running() as made:
        yield made


@pytest.fixture
def waiting(tmp_path, provider):
    """A console with a question that waits; Grace signs in by a passphrase or at the provider."""
    users = Users(tmp_path / "users.json")
    users.put(User.create("Grace", "approver", PASSPHRASE))
    with ServedOwner().running() as served:
        digest = served.ask()
        served.wait()
        with host(served.service, users, 0, oidc=provider.write_settings(tmp_path)) as address:
            yield served, digest, address


def test_a_person_signs_in_at_another_site_and_a_double_click_decides_once(waiting, provider, visit):
    served, _, address = waiting
    seen = visit(address, width=PHONE)
    page = seen.page
    page.get_by_role("link", name="Sign in with localhost").click()
    page.wait_for_url(f"{address}/")  # the strict cookie went along, although another site sent us back
    name = f"grace@example.org via {provider.issuer.removeprefix('http://')}"
    assert name in page.inner_text("header")
    assert seen.violations() == []
    page.get_by_role("link", name="Private counts").click()
    page.get_by_role("button", name="Approve").dblclick()
    page.get_by_role("status").wait_for()
    served.until(lambda: served.lines("charge"))
    assert [line.approver for line in served.lines("approval", "charge")] == [name, name]
    assert seen.errors == []
    assert {
        url for url in seen.foreign_requests if not url.startswith(f"{provider.issuer}/authorize?")
    } == set()


FORGED = """<!DOCTYPE html><title>elsewhere</title><form method="post" action="{action}">
<input name="token" value="{token}"><input name="digest" value="{digest}">
<input name="decision" value="approve"><button>win</button></form>"""


@pytest.fixture
def elsewhere():
    """A page of another origin on this machine, which even knows the form's token."""

    class Page(BaseHTTPRequestHandler):
        body = b""

        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.body)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Page, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_form_of_another_origin_and_a_stale_one_decide_nothing(waiting, visit, elsewhere):
    served, digest, address = waiting
    page = visit(address).page
    page.get_by_label("Name").fill("Grace")
    page.get_by_label("Passphrase").fill(PASSPHRASE)
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Private counts").click()
    page.wait_for_url("**/questions/**")
    question = page.url
    forged = {"action": question, "digest": digest}
    forged["token"] = page.locator("form:has(input[name=digest]) input[name=token]").first.input_value()
    elsewhere[0].body = FORGED.format(**forged).encode()
    page.goto(elsewhere[1])
    page.get_by_role("button").click()
    page.get_by_text("The form does not come from the console.").wait_for()
    page.goto(question)
    page.evaluate(
        "document.querySelectorAll('input[name=digest]').forEach(one => one.value = '1'.repeat(64))"
    )
    page.get_by_role("button", name="Approve").click()
    page.get_by_role("alert").get_by_text("about another question").wait_for()
    assert served.lines("approval", "refusal", "charge") == []
    page.goto(question)
    served.owner.ledger.reject("rows", digest, by="Ada", reason="not now", asker=None)
    page.get_by_role("button", name="Approve").click()  # decided meanwhile
    page.get_by_role("alert").wait_for()
    assert "refused by Ada" in page.get_by_role("alert").inner_text()
    assert served.lines("approval", "charge") == []
