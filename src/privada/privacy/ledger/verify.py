"""Proof that a ledger is complete: chains, sums, costs, signatures and the receipts that others keep.

`verify` checks everything with privada's own accountants. `export_account` is the plain form of a data set,
from which dp-accounting alone computes the same sums.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from privada.exceptions import LedgerError, PrivadaError, TamperError
from privada.privacy.accounting import accountant
from privada.privacy.accounting.filters import GRAIN, Vintage, check_apart
from privada.privacy.asker import is_alike
from privada.privacy.ledger.account import Account, read_account
from privada.privacy.ledger.chain import ALLOWANCE, BUDGET, CHARGE, RESTORE, START, Line, successor
from privada.privacy.receipt import Receipt

EXPORT_FORMAT = "privada-ledger/1"
_DRIFT = 1e-9  # another machine's logarithm may differ in its last digits


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What `Ledger.verify` checked and found valid.

    Attributes
    ----------
    datasets, lines, receipts : int
        How many of each were checked.
    heads : mapping of str to str
        The head of each data set's chain: keep it elsewhere to find a cut tail later.
    affected : tuple of str
        Lines that earlier versions priced too low: they counted on a secret sample at attribute level, which
        does not amplify. Distrust what was stated for them, and the sum that holds them.
    """

    datasets: int
    lines: int
    receipts: int
    heads: Mapping[str, str] = field(hash=False)
    affected: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = f"data sets: {self.datasets}, lines: {self.lines}, receipts: {self.receipts}"
        verdict = f"{counts}; chains, sums, costs and signatures hold."
        if not self.affected:
            return verdict
        return (
            f"{verdict} But sampling was taken to amplify at attribute level, which is false, in "
            f"{', '.join(self.affected)}: more was lost than was charged."
        )


def verify(
    chains: Mapping[str, Iterable[Line]],
    receipts: Iterable[Receipt],
    *,
    public: str,
    earlier: Sequence[str] = (),
) -> Verification:
    """Check chains and receipts under the owner's public key, and those before it; raise `TamperError`."""
    receipts_of: defaultdict[str, dict[int, list[Receipt]]] = defaultdict(dict)
    for receipt in receipts:
        receipt.verify(receipt.public if receipt.public in earlier else public)
        receipts_of[receipt.dataset].setdefault(receipt.index, []).append(receipt)
    for name in receipts_of.keys() - chains.keys():
        raise TamperError(f"A receipt was given for {name!r}, of which the ledger knows nothing.")
    affected: list[str] = []
    accounts: list[Account] = []
    heads: dict[str, str] = {}
    count = 0
    for name, lines in chains.items():
        checked = _check_chain(lines, public, affected, accounts, earlier)
        heads[name], length = _compare_receipts(name, checked, receipts_of[name], public)
        count += length
    _check_vintages(accounts)
    return Verification(
        datasets=len(heads),
        lines=count,
        receipts=sum(len(some) for by_index in receipts_of.values() for some in by_index.values()),
        heads=heads,
        affected=tuple(affected),
    )


def _compare_receipts(
    dataset: str, lines: Iterable[tuple[Line, str]], receipts: Mapping[int, list[Receipt]], public: str
) -> tuple[str, int]:
    """Compare receipts with the lines that they were given for; return the chain's head and its length.

    A receipt whose line was lost before a restored copy was continued is the owner's; there is nothing more
    to compare it with.
    """
    head: Line | None = None
    length = 0
    for length, (head, signer) in enumerate(lines, start=1):  # noqa: B007 - the last ones are returned
        for receipt in receipts.get(head.index, ()):
            receipt.verify(signer)
            if receipt.digest != head.digest:
                raise TamperError(
                    f"{head.where} is not the one that its receipt was given for: the chain was rewritten."
                )
    if head is None:
        raise TamperError(f"The lines of {dataset!r} are gone.")
    for receipt in (receipt for index in receipts if index > head.index for receipt in receipts[index]):
        receipt.verify(public)
    if receipts and max(receipts) > head.index:
        raise TamperError(
            f"Line {max(receipts)} of {dataset!r} has a receipt, but the chain ends at line {head.index}: "
            "its tail was cut off."
        )
    return head.digest, length


def _check_chain(
    lines: Iterable[Line],
    public: str,
    affected: list[str],
    accounts: list[Account],
    earlier: Sequence[str] = (),
) -> Iterator[tuple[Line, str]]:
    """Pass on the lines of one data set and who signed them, each one proven against all before it.

    Lines whose price was false are noted in ``affected``, the account in ``accounts``.
    """
    head: Line | None = None
    account: Account | None = None
    holder = opening = ""
    grants: dict[tuple[str, str], Line] = {}
    for line in lines:
        _check_link(line, head)
        if account is None:
            holder, opening = _find_first_holder(line, public, earlier), line.digest
            account = read_account(line)
            if abs(account.capacity - account.filter.capacity) > _DRIFT * account.capacity:
                raise TamperError(
                    f"Line 0 of {account.dataset!r} states a capacity that is not its budget's."
                )
            accounts.append(account)
        line.check_seal(holder)
        if _check_sum(line, head, account):
            affected.append(line.where)
        if line.kind == ALLOWANCE:
            # The old allowance is the new one of the last line about a learner of the same name or key.
            who = [("learner", line.asker.learner), ("key", line.asker.key)] if line.asker else []
            before = [grants[name] for name in who if name in grants]
            last = max(before, key=lambda grant: grant.index, default=None)
            if line.detail.get("old") != (last and last.detail.get("new")):
                raise TamperError(f"{line.where} changes an allowance that its learner did not have.")
            grants.update(dict.fromkeys(who, line))
        yield line, holder
        head, holder = line, successor(line, holder, opening=opening)
    if head is not None and holder != public:
        raise TamperError(f"The chain of {head.dataset!r} ends under {holder}, a key that was replaced.")


def _find_first_holder(line: Line, public: str, earlier: Sequence[str]) -> str:
    """Which of the owner's keys signed line 0; if none did, the error names the current one."""
    for key in earlier:
        with suppress(TamperError):
            line.check_seal(key)
            return key
    line.check_seal(public)
    return public


def _check_vintages(accounts: Sequence[Account]) -> None:
    """No two budgets of the ledger are for the same rows of one data set."""
    before: list[tuple[str, Vintage | None]] = []
    for account in accounts:
        try:
            check_apart(account.dataset, account.vintage, before, same=is_alike)
        except LedgerError as error:
            raise TamperError(f"Line 0 of {account.dataset!r} opens a second budget: {error}") from None
        before.append((account.dataset, account.vintage))


def _check_link(line: Line, head: Line | None) -> None:
    index, previous = (head.index + 1, head.digest) if head else (0, START)
    if head and line.kind == RESTORE and line.index > index and line.detail.get("after") == head.index:
        index = line.index  # the lines between them were lost, and this one says so
    if line.index != index:
        raise TamperError(f"Line {index} of {line.dataset!r} is missing.")
    if line.previous != previous:
        raise TamperError(f"{line.where} does not follow from the line before it.")
    if head and line.kind == BUDGET:
        raise TamperError(f"{line.where} opens the budget a second time.")


def _check_sum(line: Line, head: Line | None, account: Account) -> bool:
    """Costs are computed again from the prices; sums are whole numbers and must be exact.

    Returns whether the line is one of those that an earlier version priced too low.
    """
    if line.spent != line.cost + (head.spent if head else 0):
        raise TamperError(f"{line.where} has a wrong sum.")
    try:
        price = line.price
        least, most, rounded = 0, 0, 0
        if line.kind == RESTORE:  # what its lost lines cost, for which there is no price
            least = most = rounded = line.cost
        elif price is not None:
            # Least and most differ for samples, whose cost is an integral that earlier versions bounded less
            # tightly: never below what it is, never above the cost without sampling.
            least = most = account.filter.recorded_cost(price)
            unsampled, rounded = accountant.unsampled(price.event), price.times
            if unsampled is not price.event:
                most = max(least, account.filter.recorded_cost(replace(price, event=unsampled)))
    except PrivadaError as error:
        raise TamperError(f"{line.where} holds no price that this budget can pay: {error}") from None
    if not least * (1 - _DRIFT) - rounded <= line.cost <= most * (1 + _DRIFT) + rounded:
        raise TamperError(f"{line.where} cost {line.cost} grains; its price comes to {least}.")
    if line.spent > account.capacity:
        raise TamperError(f"{line.where} passes the budget.")
    return price is not None and accountant.amplifies_wrongly(price.event, price.origin)


_SPENT = (
    "spent is the sum over the lines of kind charge, and the cost of lines of kind restore, which count "
    "charges that were lost with their lines; divide by grain and compare."
)
_SHOWN = (
    " A sample draws g = sample_size / source_dataset_size of all rows. A VisiblySampledDpEvent, which "
    "dp-accounting does not have, shows which; "
)
_ALIKE = f"{_SHOWN}both kinds of sample lose what their inner event loses."
_SENTENCES = {
    "renyi": "A line loses RdpAccountant(orders, neighboring_relation).compose(event, times).rdp[0]; "
    + _SPENT
    + f"{_SHOWN}it loses log(1 - g + g exp((order - 1) D)) / (order - 1), D what its inner event loses. A "
    "SampledWithoutReplacementDpEvent keeps it secret, under replace-one, and loses "
    "log(1 + order (order - 1) I) / (order - 1), or D if that is less, I being the integral over x > 0 of "
    "(exp((order - 1) x) + exp(-order x)) g d(log(1 + (exp(x) - 1) / g)), d(x) the inner event's delta at x.",
    "zcdp": (
        "A line loses times the sum over the event's parts: 1 / (2 noise_multiplier**2) for Gaussian, rho "
        "for ZCDp, RdpAccountant([1.0]).rdp[0] for Laplace, e tanh(e / 2) for a pure part of epsilon e; or "
        "e tanh(e / 2) of the line's epsilon e where that is recorded and smaller; " + _SPENT + _ALIKE
    ),
    "gaussian": (
        "A line loses times the sum over the event's parts: 1 / noise_multiplier**2 for Gaussian, "
        "(2 Phi^-1(1 / (1 + exp(-e))))**2 for a pure part of epsilon e; or the latter of the line's epsilon "
        "where that is recorded and smaller; " + _SPENT + _ALIKE
    ),
    "pure": (
        "A line loses times the line's epsilon; where none is recorded, the sum over the event's parts: "
        "1 / noise_multiplier for Laplace, noise_parameter times sensitivity for discrete Laplace, "
        "RdpAccountant([inf], neighboring_relation).rdp[0] for randomised response; " + _SPENT
    ),
}


def export_account(account: Account, lines: Iterable[Line]) -> dict[str, Any]:
    """The plain form of one data set."""
    exported = [_export_line(line) for line in lines]
    return {
        "budget": account.filter.budget.to_dict(),
        "vintage": None if account.vintage is None else account.vintage.to_dict(),
        "filter": account.filter.name,
        "order": getattr(account.filter, "order", None),
        "grain": GRAIN,
        "capacity": account.capacity,
        "spent": exported[-1]["spent"],
        "head": exported[-1]["hash"],
        "lines": exported,
        # Events are written relative to the sensitivity under the budget's relation, so dp-accounting's
        # relation changes nothing; only randomised response insists on one.
        "recompute": {
            "sentence": _SENTENCES[account.filter.name],
            "package": "dp-accounting",
            "accountant": "dp_accounting.rdp.RdpAccountant",
            "orders": [getattr(account.filter, "order", 1.0)],
            "neighboring_relation": "REPLACE_ONE",
        },
    }


def _export_line(line: Line) -> dict[str, Any]:
    price = line.detail if line.kind == CHARGE else {}
    return {
        "index": line.index,
        "time": line.time,
        "kind": line.kind,
        "event": price.get("event"),
        "times": price.get("times"),
        "epsilon": price.get("epsilon"),
        "guarantee": price.get("guarantee"),
        "text": line.detail.get("text"),
        "purpose": line.purpose,
        "asker": None if line.asker is None else line.asker.to_dict(),
        "approver": line.approver,
        "question": line.question,
        "cost": line.cost,
        "spent": line.spent,
        "previous": line.previous,
        "hash": line.digest,
        "signature": line.signature,
    }


__all__ = ["EXPORT_FORMAT", "Verification", "export_account", "verify"]
