"""The documentation site builds without a warning, holds every page, and asks nobody else for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[1]
LOADED = re.compile(
    r"<(?:script|img|iframe|source)[^>]*\ssrc=\"?(?:https?:)?//"
    r"|<link[^>]*rel=\"?stylesheet[^>]*href=\"?(?:https?:)?//"
)

pytest.importorskip("mkdocs", reason="the site needs the extra docs")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, without the pictures of the gallery, which ``tests/test_docs.py`` draws."""
    place = tmp_path_factory.mktemp("site")
    environment = os.environ | {"PRIVADA_GALLERY": "text", "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(place)]
    ended = subprocess.run(command, cwd=HOME, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return place


def test_holds_every_page(site: Path) -> None:
    pages = [page.relative_to(HOME / "docs") for page in (HOME / "docs").rglob("*.md")]
    assert len(pages) > 20
    assert [page for page in pages if not (site / page.with_suffix(".html")).is_file()] == []


def test_has_a_page_for_each_example_and_each_public_package(site: Path) -> None:
    examples = [example.stem for example in (HOME / "examples").glob("*.py")]
    assert [name for name in examples if not (site / "gallery" / f"{name}.html").is_file()] == []
    described = (site / "reference" / "python" / "privada.html").read_text(encoding="utf-8")
    assert "ReweightedRegressor" in described


def test_loads_nothing_from_elsewhere(site: Path) -> None:
    found = {page.name for page in site.rglob("*.html") if LOADED.search(page.read_text(encoding="utf-8"))}
    assert found == set()


def test_says_what_loads_from_elsewhere() -> None:
    assert LOADED.search('<script async src="https://example.org/a.js">')
    assert LOADED.search('<link rel="stylesheet" href="//example.org/a.css">')
    assert not LOADED.search('<link rel="stylesheet" href="assets/a.css">')
