"""What the browser fixture reports of a page that does everything wrong, and of one that does not."""

from __future__ import annotations

import pytest

GOOD = """<!DOCTYPE html><html lang="en"><head><title>t</title></head><body><main><h1>A page</h1>
<figure><svg role="img" aria-label="a dot" width="20" height="20"><circle r="5"/></svg></figure>
</main></body></html>"""
BAD = """<!DOCTYPE html><html><body><div style="width:3000px">wide</div><img src="missing.png">
<figure><svg aria-label="hidden" style="display:none"></svg></figure>
<script src="http://elsewhere.invalid/x.js"></script><script>undefined.value</script></body></html>"""


@pytest.fixture
def write(tmp_path):
    def write_page(text):
        (tmp_path / "page.html").write_text(text, encoding="utf-8")
        return (tmp_path / "page.html").as_uri()

    return write_page


def test_a_good_page_passes(visit, write):
    seen = visit(write(GOOD), width=390, dark=True)
    seen.check()
    assert [one["name"] for one in seen.pictures] == ["a dot"]
    assert seen.violations() == []
    assert seen.page.evaluate("() => matchMedia('(prefers-color-scheme: dark)').matches")


def test_everything_wrong_is_reported(visit, write):
    seen = visit(write(BAD))
    assert seen.overflow > 1000
    assert seen.foreign_requests == ["http://elsewhere.invalid/x.js"]
    assert any("undefined" in error for error in seen.errors)
    assert [(one["width"] > 0, one["shown"]) for one in seen.pictures] == [(False, True), (False, False)]
    assert any(one.startswith("image-alt") for one in seen.violations())
    with pytest.raises(AssertionError):
        seen.check()
