"""A real browser for tests of pages: Debian's Chromium, driven by playwright.

``visit(address, width=390, dark=True)`` opens a page and says what went wrong on it:

    def test_a_page(visit, tmp_path):
        seen = visit((tmp_path / "index.html").as_uri(), width=390)
        seen.check()                        # no error, no request elsewhere, no overflow, pictures visible
        seen.page.get_by_role("button")     # playwright's own page, for everything else

A page that must not load at all (a refused form, say) is opened with ``check`` left out.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

DESKTOP, PHONE = 1280, 390
CHROMIUM = shutil.which("chromium")
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-gpu")
LOCAL = ("about", "blob", "data")
PICTURES = """
() => [...document.querySelectorAll("img, figure > svg")].map(one => {
  const box = one.getBoundingClientRect();
  return {
    name: one.getAttribute("aria-label") || one.alt || one.currentSrc || "",
    width: one.tagName === "IMG" ? one.naturalWidth : box.width,
    shown: box.width > 0 && box.height > 0,
  };
})
"""
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@dataclass
class Seen:
    """An open page and all that it said and asked for since it was opened."""

    page: Any
    address: str
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def foreign_requests(self) -> list[str]:
        """Requests to anybody but the page's own origin."""
        own = urlsplit(self.address)[:2]
        return [
            url for url in self.requests if urlsplit(url).scheme not in LOCAL and urlsplit(url)[:2] != own
        ]

    @property
    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.page.evaluate(OVERFLOW))

    @property
    def pictures(self) -> list[dict[str, Any]]:
        """Every picture: its name, its width, and whether it takes up space on the page."""
        return self.page.evaluate(PICTURES)

    def violations(self) -> list[str]:
        """What axe-core finds wrong for people who use a screen reader or a keyboard."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]

    def check(self) -> None:
        """No console error, no request elsewhere, no horizontal overflow, every picture visible."""
        self.page.wait_for_load_state()  # a page whose style is not there yet overflows
        assert self.errors == []
        assert self.foreign_requests == []
        assert self.overflow <= 0
        assert [one for one in self.pictures if not (one["shown"] and one["width"] > 0)] == []


@pytest.fixture(scope="module")  # not longer: playwright's loop would be in the way of asyncio elsewhere
def chromium() -> Iterator[Any]:
    """The browser; a test that needs it is skipped where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'privada[dev]'")
    if CHROMIUM is None:
        pytest.skip("needs Chromium on the path: apt-get install chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Seen]]:
    """Open a page in a window of its own: ``visit(address, width=1280, dark=False, **context)``."""
    windows = []

    def open_page(address: str, *, width: int = DESKTOP, dark: bool = False, **context: Any) -> Seen:
        window = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", **context
        )
        windows.append(window)
        window.set_default_timeout(15_000)
        seen = Seen(window.new_page(), address)
        seen.page.on("console", lambda said: said.type == "error" and seen.errors.append(said.text))
        seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.goto(address)
        return seen

    yield open_page
    for window in windows:
        window.close()
