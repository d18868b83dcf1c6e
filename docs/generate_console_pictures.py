"""Draw the pictures of the console that stand in ``docs/how-to/console.md``, on generated rows.

``python docs/generate_console_pictures.py`` writes them anew; it takes Chromium and playwright. The tests of
pages in a browser open the same scene. Its ledger is made with a clock of its own, so that it has a history.
"""

from __future__ import annotations

import io
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from privada import AskOwner, CellStatistics, Mailbox, NearestCells, Owner, Policy, Schema
from privada.exchange import Sender
from privada.exchange.local import LocalCourier
from privada.parties.columns import Number
from privada.parties.permissions import KnownLearner
from privada.privacy import Asker, Ledger, OwnerKey, PureDP, Vintage
from privada.privacy.keys import LearnerKey
from privada.service.console import host
from privada.service.console.users import User, Users
from privada.service.new_owner import ColumnHeader, NewOwner, serve_set_up
from privada.service.serving import Desk, Service

PASSPHRASE = "correct horse battery"  # noqa: S105 - of the scene alone
FOLDER = Path(__file__).parent / "how-to" / "console"
RELATION = "add/remove"
DESK, PHONE = 1040, 390  # pixels
TALLEST = 1600  # pixels
COLOURS = 96  # of a picture, which keeps its file small
PAST = (  # answers: days ago, of whom, epsilon; those of even days are of the earlier vintage
    *((84, "alice", 0.4), (79, "alice", 0.2), (66, "bob", 0.5), (61, "bob", 0.1), (51, "alice", 0.3)),
    *((40, "bob", 0.6), (27, "bob", 0.2), (25, "alice", 0.1), (20, "alice", 0.3), (15, "alice", 0.1)),
    *((12, "bob", 0.3), (9, "bob", 0.2), (6, "alice", 0.2), (5, "bob", 0.1), (3, "alice", 0.2)),
)
SETTINGS = """
[oidc]
issuer = "https://login.example.org"
client_id = "privada-console"
[[oidc.people]]
group = "privacy-office"
role = "viewer"
"""


class Scene:
    """A clinic with two vintages of generated visits, two learners, a history, and questions that wait."""

    def __init__(self) -> None:
        self.keys = {name: LearnerKey.generate() for name in ("alice", "bob")}
        self.ledger = Ledger.open(":memory:", OwnerKey.generate())
        self.courier = LocalCourier()
        now = datetime.now(UTC)
        self.years = {"earlier": now.year - 1, "present": now.year}
        with _clock(now - timedelta(days=90)):
            desks = [Desk(f"visits-{year}", self._owner(year)) for year in self.years.values()]
        self.owner = desks[1].owner
        for days, learner, epsilon in PAST:
            with _clock(now - timedelta(days=days)):
                self._answer(desks[days % 2].owner, learner, epsilon)
        self.service = Service(desks, lambda: self.courier)

    def _owner(self, year: int) -> Owner:
        days = {"since": f"{year}-01-01", "until": f"{year + 1}-01-01"}
        vintage = Vintage(of="visits", name=str(year), column="admitted", **days)
        bounds = {"age": (0, 120), "pressure": (60, 240)}
        columns = [Number(name=name, low=low, high=high) for name, (low, high) in bounds.items()]
        schema = Schema(columns=columns, person_id="patient", max_rows=3)
        budget = PureDP(epsilon=3, relation=RELATION, unit=schema.unit)
        self.ledger.open_budget(vintage.dataset, budget, vintage=vintage)
        return Owner(
            _visits(self.years.values()),
            schema=schema,
            dataset=vintage.dataset,
            vintage=vintage,
            budget=budget,
            ledger=self.ledger,
            policy=Policy(approval=True),
            learners=[
                KnownLearner(
                    name="alice",
                    key=self.keys["alice"].public,
                    organisation="University of Somewhere",
                    allowance=PureDP(epsilon=2, relation=RELATION, unit=schema.unit),
                ),
                KnownLearner(name="bob", key=self.keys["bob"].public, organisation="Institute for Health"),
            ],
        )

    def _question(self, epsilon: float, salt: str = "") -> CellStatistics:
        centers = np.array([[30.0, 120.0], [55.0, 135.0], [75.0, 150.0], [80.0, 125.0]])
        guarantee = PureDP(epsilon=epsilon, relation=RELATION, unit=self.owner.schema.unit)
        return CellStatistics(tables=(NearestCells(centers=centers),), guarantee=guarantee, salt=salt)

    def _answer(self, owner: Owner, learner: str, epsilon: float) -> None:
        """One question of the past, approved and answered."""
        asker = Asker(learner, self.keys[learner].public, project="stroke", purpose="risk by age")
        question = self._question(epsilon, salt=str(time.monotonic_ns()))
        self.ledger.approve(owner.dataset, question.digest, by="Grace Hopper", asker=asker)
        owner.answer(question, asker=asker)

    def ask(self, learner: str, epsilon: float, purpose: str) -> str:
        """A question that waits; returns its digest."""
        sender = Sender(learner=learner, key=self.keys[learner], project="stroke", purpose=purpose)
        question = self._question(epsilon)
        Mailbox(self.courier, sender=sender).ask(AskOwner(f"visits-{self.years['present']}", question))
        return question.digest

    @contextmanager
    def running(self, folder: Path) -> Iterator[str]:
        """The console's address, while the service runs; Grace Hopper, an administrator, may sign in."""
        users, settings = Users(folder / "console-users.json"), folder / "console.toml"
        users.put(User.create("Grace Hopper", "administrator", PASSPHRASE))
        settings.write_text(SETTINGS, encoding="utf-8")
        thread = threading.Thread(target=self.service.run)
        thread.start()
        try:
            with host(self.service, users, 0, oidc=settings) as address:
                assert address is not None
                yield address
        finally:
            self.service.stop()
            thread.join(timeout=30)

    def wait(self, number: int) -> None:
        """Until so many questions wait for a person."""
        end = time.monotonic() + 30
        while len(self.service.waiting()) != number:
            assert time.monotonic() < end
            time.sleep(0.05)


def _visits(years: Any) -> pd.DataFrame:
    """Generated visits of generated patients."""
    public = np.random.default_rng(5)
    size = 1200
    days = public.integers(0, 365, size)
    year = public.choice(list(years), size)
    return pd.DataFrame(
        {
            "patient": public.integers(0, 700, size),
            "age": public.normal(62, 15, size).clip(0, 120),
            "pressure": public.normal(138, 18, size).clip(60, 240),
            "admitted": [np.datetime64(f"{y}-01-01") + d for y, d in zip(year, days, strict=True)],
        }
    )


@contextmanager
def _clock(now: datetime) -> Iterator[None]:
    """A ledger's clock that stands still at a time of the past."""
    with patch("privada.privacy.ledger.chain._now", lambda: now.isoformat(timespec="microseconds")):
        yield


def sign_in(page: Any, address: str) -> None:
    """Sign in by the passphrase."""
    page.goto(f"{address}/sign-in")
    page.get_by_label("Name").fill("Grace Hopper")
    page.get_by_label("Passphrase").fill(PASSPHRASE)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{address}/")


def visit_pages(page: Any, address: str, look: Callable[[str], None]) -> None:
    """Open every page of the console one after another; ``look`` is called on each with its name."""
    page.goto(f"{address}/sign-in")
    look("sign-in")
    sign_in(page, address)
    look("inbox")
    page.get_by_role("link", name="Private counts").first.click()
    page.wait_for_url("**/questions/**")
    look("question")
    page.goto(f"{address}/budget")
    look("budget")
    page.goto(f"{address}/history")
    page.get_by_role("button", name="Verify the ledger").click()
    page.get_by_role("status").wait_for()
    look("history")
    page.get_by_role("link", name="Line ").first.click()
    look("release")
    page.goto(f"{address}/export")
    look("export")


def new_owner(folder: Path) -> NewOwner:
    """An owner that is to be set up, whose file declares types."""
    kinds = {"patient": "category", "age": "integer", "admitted": "date", "outcome": "category"}
    columns = tuple(ColumnHeader(name, kind) for name, kind in kinds.items())
    return NewOwner(
        folder=folder / "clinic", data=folder / "visits.parquet", columns=columns, methods=("cells",)
    )


def save_small(blob: bytes, path: Path) -> None:
    """A picture of few colours, cut where it is too tall."""
    from PIL import Image  # noqa: PLC0415 - pictures alone need it

    whole = Image.open(io.BytesIO(blob)).convert("RGB")
    shown = whole.crop((0, 0, whole.width, min(whole.height, TALLEST)))
    shown.quantize(COLOURS, dither=0).save(path, optimize=True)


def main(folder: Path = FOLDER) -> None:
    """Write all pictures: on a desk in light, one in the dark, one on a phone."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - tests skip where there is none

    folder.mkdir(parents=True, exist_ok=True)
    scene, home = Scene(), Path(tempfile.mkdtemp())
    wanted = {
        "light": ("sign-in", "inbox", "question", "budget", "history", "release"),
        "dark": ("question",),
        "phone": ("inbox",),
    }
    with scene.running(home) as address, sync_playwright() as playwright:
        scene.ask("alice", 0.3, "Does the risk rise with blood pressure in every age group?")
        scene.ask("bob", 0.15, "Beds that a ward will need next winter")
        scene.wait(2)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        for kind, names in wanted.items():
            shown = {"width": PHONE if kind == "phone" else DESK, "height": 700}
            scheme = "dark" if kind == "dark" else "light"
            page = browser.new_context(viewport=shown, color_scheme=scheme).new_page()

            def look(name: str, page: Any = page, kind: str = kind, names: Any = names) -> None:
                page.wait_for_load_state()
                if name in names:
                    ending = "" if kind == "light" else f"-{kind}"
                    save_small(page.screenshot(full_page=True), folder / f"{name}{ending}.png")

            visit_pages(page, address, look)
        with serve_set_up(new_owner(home)) as (place, _):
            page = browser.new_context(viewport={"width": DESK, "height": 900}).new_page()
            page.goto(place)
            save_small(page.screenshot(), folder / "set-up.png")
        browser.close()
    shutil.rmtree(home)


if __name__ == "__main__":
    main()
