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

import dp_accounting

from privada.exceptions import BudgetError, LedgerError
from privada.privacy import ZCDP, Ledger, OwnerKey, Price

RHO = 0.001
PRICE = Price(event=dp_accounting.ZCDpEvent(RHO), guarantee=ZCDP(rho=RHO, relation="add/remove"))
EACH = 3


def ask(ledger: Ledger, out: int) -> None:
    """One charge; the receipt leaves in one write, so a kill cannot cut it in half."""
    question = os.urandom(32).hex()
    try:
        receipt = ledger.charge("patients", PRICE, question=question)
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


def askers(place: str, key: OwnerKey, number: int) -> None:
    """``number`` processes that open the ledger and ask at the same moment, `EACH` times."""
    gate, opener = os.pipe()

    def work() -> None:
        os.close(opener)
        with Ledger.open(place, key) as ledger:
            os.read(gate, 1)  # returns when the parent closes its end
            for _ in range(EACH):
                ask(ledger, 1)

    Ledger.open(place, key).close()  # the driver is imported once, not a hundred times
    children = [forked(work) for _ in range(number)]
    time.sleep(0.5)
    os.close(opener)
    for pid in children:
        if os.waitpid(pid, 0)[1]:
            raise SystemExit(1)


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
    """Processes that ask without end, each killed at a random instant."""

    def work() -> None:
        with Ledger.open(place, key) as ledger:
            while True:
                ask(ledger, 1)

    Ledger.open(place, key).close()
    began = time.perf_counter()
    Ledger.open(place, key).close()
    longest = 0.05 + 2 * (time.perf_counter() - began)
    for _ in range(number):
        pid = forked(work)
        time.sleep(random.uniform(0.0, longest))
        os.kill(pid, signal.SIGKILL)
        if os.waitpid(pid, 0)[1] != signal.SIGKILL:
            raise SystemExit(1)


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
    verb, place, key_file, number = sys.argv[1:]
    verbs = {"askers": askers, "heirs": heirs, "killed": killed, "memory": memory}
    verbs[verb](place, OwnerKey.load(key_file), int(number))


if __name__ == "__main__":
    main()
