"""Processes that ask a ledger, forked from one warm parent: importing dp-accounting takes longer than asking.

Run as a script: ``ledger_worker.py VERB PLACE KEYFILE NUMBER``. Every granted
receipt is one line of JSON on standard output, written after the charge returned.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import dp_accounting

from privada.exceptions import BudgetError, LedgerError
from privada.privacy import ZCDP, Asker, Ledger, OwnerKey, Price
from privada.privacy.accounting.filters import Allowance

RHO = 0.001
PRICE = Price(event=dp_accounting.ZCDpEvent(RHO), guarantee=ZCDP(rho=RHO, relation="add/remove"))
EACH = 3


def ask(ledger: Ledger, out: int, **more: Any) -> None:
    """One charge; the receipt leaves in one write, so a kill cannot cut it in half."""
    question = os.urandom(32).hex()
    try:
        receipt = ledger.charge("patients", PRICE, question=question, **more)
        said = {"receipt": receipt.to_dict()}
    except BudgetError:
        said = {"refused": question}
    os.write(out, json.dumps(said).encode() + b"\n")


def forked(work: Callable[[], None]) -> int:
    """Start a child that does the work and ends without the parent's clean-up."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os._exit(0)


def at_once(number: int, work: Callable[[Callable[[], object]], None]) -> None:
    """Processes that each get ready, call what they are given, and go on when all may."""
    gate, opener = os.pipe()

    def child() -> None:
        os.close(opener)
        work(lambda: os.read(gate, 1))  # returns when the parent closes its end

    children = [forked(child) for _ in range(number)]
    time.sleep(0.5)
    os.close(opener)
    ends = [os.waitpid(pid, 0)[1] for pid in children]
    if any(ends):
        raise SystemExit(1)


def askers(place: str, key: OwnerKey, number: int) -> None:
    """Processes that open the ledger and ask at the same moment, `EACH` times."""

    def work(wait: Callable[[], object]) -> None:
        with Ledger.open(place, key) as ledger:
            wait()
            for _ in range(EACH):
                ask(ledger, 1)

    at_once(number, work)


def allowed(place: str, key: OwnerKey, number: int) -> None:
    """Processes that ask in one learner's name at the same moment, until its allowance is used up."""
    allowance = Allowance.of("alice", "ab" * 32, ZCDP(rho=10 * RHO, relation="add/remove"))
    asker = Asker("alice", "ab" * 32)

    def work(wait: Callable[[], object]) -> None:
        with Ledger.open(place, key) as ledger:
            wait()
            for _ in range(EACH):
                ask(ledger, 1, asker=asker, allowance=allowance)

    at_once(number, work)


def founders(place: str, key: OwnerKey, number: int) -> None:
    """Processes that all find no ledger and make it."""

    def work(wait: Callable[[], object]) -> None:
        wait()
        with Ledger.open(place, key) as ledger:
            receipt = ledger.open_budget("patients", ZCDP(rho=1, relation="add/remove"))
        os.write(1, json.dumps({"receipt": receipt.to_dict()}).encode() + b"\n")

    at_once(number, work)


def heirs(place: str, key: OwnerKey, number: int) -> None:
    """Processes that inherit an open ledger, and a parent that goes on with it."""
    with Ledger.open(place, key) as ledger:
        ask(ledger, 1)
        children = [forked(lambda: ask(ledger, 1)) for _ in range(number)]
        ask(ledger, 1)
        for pid in children:
            if os.waitpid(pid, 0)[1]:
                raise SystemExit(1)
        ask(ledger, 1)


def killed(place: str, key: OwnerKey, number: int) -> None:
    """Processes that ask without end, each killed at a random instant: while it opens, or later."""
    for _ in range(number):
        told, tell = os.pipe()

        def work(out: int = tell) -> None:
            with Ledger.open(place, key) as ledger:
                while True:
                    ask(ledger, out)

        pid = forked(work)
        os.close(tell)
        with os.fdopen(told, "rb") as receipts:
            wanted = random.randrange(4)
            heard = [receipts.readline() for _ in range(wanted)]
            time.sleep(random.uniform(0.0, 0.01 if wanted else 0.04))
            os.kill(pid, signal.SIGKILL)
            heard += receipts.readlines()
        if os.waitpid(pid, 0)[1] != signal.SIGKILL:
            raise SystemExit(1)
        os.write(1, b"".join(heard))


def memory(_: str, key: OwnerKey, __: int) -> None:
    """A ledger in memory does not follow into a child: the budget would be spent twice."""
    with Ledger.open(":memory:", key) as ledger:
        ledger.open_budget("patients", ZCDP(rho=1, relation="add/remove"))

        def work() -> None:
            try:
                ask(ledger, 1)
            except LedgerError as error:
                os.write(1, json.dumps({"error": str(error)}).encode() + b"\n")

        os.waitpid(forked(work), 0)
        ask(ledger, 1)


def main() -> None:
    import privada.privacy.ledger.database  # noqa: F401 - once, not in each of a hundred children

    verb, place, key_file, number = sys.argv[1:]
    if place.startswith("postgresql"):
        import psycopg  # noqa: F401 - likewise
    verbs = (allowed, askers, founders, heirs, killed, memory)
    {each.__name__: each for each in verbs}[verb](place, OwnerKey.load(key_file), int(number))


if __name__ == "__main__":
    main()
