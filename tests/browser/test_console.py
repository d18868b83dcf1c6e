"""In a real browser: a question arrives over a folder, is approved by keyboard, and is answered."""

import pytest

from privada.exchange import open_courier
from privada.privacy import Release
from privada.service.console import host
from privada.service.console.users import User, Users
from tests.service.console.conftest import PASSPHRASE, ServedOwner

from .conftest import DESKTOP, PHONE


@pytest.fixture
def folder_house(tmp_path):
    with ServedOwner(
        "to plan <b>beds</b>", lambda: open_courier(str(tmp_path / "exchange"))
    ).running() as made:
        yield made


@pytest.fixture
def address(folder_house, tmp_path):
    users = Users(tmp_path / "users.json")
    users.put(User.create("Grace", "approver", PASSPHRASE))
    with host(folder_house.service, users, 0) as where:
        yield where


@pytest.mark.parametrize(("width", "dark"), [(DESKTOP, False), (PHONE, True)])
def test_from_a_question_to_a_signed_release_by_keyboard(folder_house, address, visit, tmp_path, width, dark):
    digest = folder_house.ask()
    folder_house.wait()
    seen = visit(address, width=width, dark=dark)
    page = seen.page

    def look(name):
        page.wait_for_load_state()
        seen.check()
        assert seen.violations() == []
        page.screenshot(path=tmp_path / f"{name}.png", full_page=True)

    def reach(element):
        """Press Tab until an element has the focus."""
        for _ in range(40):
            if element.evaluate("one => one === document.activeElement"):
                return
            page.keyboard.press("Tab")
        raise AssertionError("the keyboard does not get there")

    look("sign-in")
    reach(page.get_by_label("Name"))
    page.keyboard.type("Grace")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSPHRASE)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{address}/")
    look("inbox")
    reach(page.get_by_role("link", name="Private counts"))
    page.keyboard.press("Enter")
    page.wait_for_url("**/questions/**")
    assert "<b>beds</b>" in page.inner_text("main")
    look("question")
    reach(page.get_by_role("button", name="Approve"))
    page.keyboard.press("Enter")
    page.get_by_role("status").wait_for()
    folder_house.until(lambda: folder_house.owner.ledger.kept("rows", digest) is not None)
    page.reload()
    assert "Approved by Grace" in page.inner_text("main")
    look("approved")
    Release.from_bytes(folder_house.owner.kept(digest)).verify(public=folder_house.owner.public_key)
    assert [line.approver for line in folder_house.lines("approval", "charge")] == ["Grace", "Grace"]
