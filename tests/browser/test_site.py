"""The documentation site in a real browser: desktop and phone, no error, nothing asked of anybody else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]
PAGES = ("index.html", "methods/reweighting.html", "gallery/index.html", "measurements/forecasts.html")

pytest.importorskip("mkdocs", reason="the site needs the extra docs")


class Quiet(SimpleHTTPRequestHandler):
    """Files, without a line for each request."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The site, served on this machine; without the gallery's pictures, which take as long as the rest."""
    place = tmp_path_factory.mktemp("site")
    environment = os.environ | {"PRIVADA_GALLERY": "text", "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(place)]
    subprocess.run(command, cwd=HOME, env=environment, capture_output=True, check=True, timeout=300)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(place))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_whole_at_every_width(visit, address, page, width):
    seen = visit(f"{address}/{page}", width=width)
    seen.check()
    assert seen.page.locator("h1").first.is_visible()
