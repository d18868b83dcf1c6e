"""Proof that a ledger is whole: chains, sums, costs, signatures and the receipts that others hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from privada.exceptions import LedgerError, PrivadaError, TamperError
from privada.privacy.accounting import accountant
from privada.privacy.accounting.accountant import Price
from privada.privacy.accounting.filters import Vintage, check_apart
from privada.privacy.asker import is_alike
from privada.privacy.ledger.account import Account
from privada.privacy.ledger.lines import ALLOWANCE, BUDGET, RESTORE, START, Line, read_account
from privada.privacy.ledger.rotation import successor
from privada.privacy.receipt import Receipt

_DRIFT = 1e-9  # another machine's logarithm may differ in its last digits


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What `Ledger.verify` found in order.

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
        held = f"{counts}; chains, sums, costs and signatures hold."
        if not self.affected:
            return held
        return (
            f"{held} But sampling was taken to amplify at attribute level, which is false, in "
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
    held = _sorted(receipts, public, earlier)
    for name in held.keys() - chains.keys():
        raise TamperError(f"A receipt was given for {name!r}, of which the ledger knows nothing.")
    affected: list[str] = []
    opened: list[Account] = []
    heads: dict[str, Line] = {}
    count = 0
    for name, lines in chains.items():
        checked = _checked(lines, public, affected, opened, earlier)
        heads[name], length = _head(name, checked, held[name], public)
        count += length
    _check_vintages(opened)
    return Verification(
        datasets=len(heads),
        lines=count,
        receipts=sum(len(some) for of_name in held.values() for some in of_name.values()),
        heads={name: line.digest for name, line in heads.items()},
        affected=tuple(affected),
    )


def _sorted(
    receipts: Iterable[Receipt], public: str, earlier: Sequence[str]
) -> defaultdict[str, dict[int, list[Receipt]]]:
    """The receipts by data set and line; each must be the owner's."""
    held: defaultdict[str, dict[int, list[Receipt]]] = defaultdict(dict)
    for receipt in receipts:
        receipt.verify(receipt.public if receipt.public in earlier else public)
        held[receipt.dataset].setdefault(receipt.index, []).append(receipt)
    return held


def _head(
    dataset: str, lines: Iterable[tuple[Line, str]], held: Mapping[int, list[Receipt]], public: str
) -> tuple[Line, int]:
    """Compare the receipts with the lines that they were given for; return the last line and their number.

    A receipt whose line was lost before a restored copy was continued is the owner's; there is nothing more
    to compare it with.
    """
    head: Line | None = None
    length = 0
    for length, (head, signer) in enumerate(lines, start=1):  # noqa: B007 - the last ones are returned
        for receipt in held.get(head.index, ()):
            receipt.verify(signer)
            _check_receipt(receipt, head)
    if head is None:
        raise TamperError(f"The lines of {dataset!r} are gone.")
    for receipt in (each for index in held if index > head.index for each in held[index]):
        receipt.verify(public)
    if held and max(held) > head.index:
        raise TamperError(
            f"Line {max(held)} of {dataset!r} has a receipt, but the chain ends at line {head.index}: "
            "its tail was cut off."
        )
    return head, length


def _check_receipt(receipt: Receipt, line: Line) -> None:
    if receipt.digest != line.digest:
        raise TamperError(
            f"{line.where} is not the one that its receipt was given for: the chain was rewritten."
        )


def _checked(
    lines: Iterable[Line],
    public: str,
    affected: list[str],
    opened: list[Account],
    earlier: Sequence[str] = (),
) -> Iterator[tuple[Line, str]]:
    """Pass on the lines of one data set and who signed them, each one proven against all before it.

    Lines whose price was false are noted in ``affected``, the account in ``opened``.
    """
    head: Line | None = None
    account: Account | None = None
    holder = opening = ""
    grants: dict[tuple[str, str], Line] = {}
    for line in lines:
        _check_link(line, head)
        if account is None:
            holder, opening = _first_holder(line, public, earlier), line.digest
            account = _check_account(read_account(line))
            opened.append(account)
        line.check_seal(holder)
        if _check_sum(line, head, account):
            affected.append(line.where)
        if line.kind == ALLOWANCE:
            _check_grant(line, grants)
        yield line, holder
        head, holder = line, successor(line, holder, opening=opening)
    if head is not None and holder != public:
        raise TamperError(f"The chain of {head.dataset!r} ends under {holder}, a key that was replaced.")


def _first_holder(line: Line, public: str, earlier: Sequence[str]) -> str:
    """Which of the owner's keys signed line 0; if none did, the one of today is to be named."""
    for known in earlier:
        with suppress(TamperError):
            line.check_seal(known)
            return known
    line.check_seal(public)
    return public


def _check_account(account: Account) -> Account:
    if abs(account.capacity - account.filter.capacity) > _DRIFT * account.capacity:
        raise TamperError(f"Line 0 of {account.dataset!r} states a capacity that is not its budget's.")
    return account


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

    Say whether the line is of those that an earlier version priced too low.
    """
    if line.spent != line.cost + (head.spent if head else 0):
        raise TamperError(f"{line.where} has a wrong sum.")
    price = _price(line)
    if line.kind == RESTORE:  # what its lost lines cost, for which there is no price
        least = most = rounded = line.cost
    elif price is None:
        least = most = rounded = 0
    else:
        (least, most), rounded = _costs(line, price, account), price.times
    if not least * (1 - _DRIFT) - rounded <= line.cost <= most * (1 + _DRIFT) + rounded:
        raise TamperError(f"{line.where} cost {line.cost} grains; its price comes to {least}.")
    if line.spent > account.capacity:
        raise TamperError(f"{line.where} passes the budget.")
    return price is not None and accountant.amplifies_wrongly(price.event, price.origin)


def _check_grant(line: Line, grants: dict[tuple[str, str], Line]) -> None:
    """The old allowance is the new one of the last line about a learner of the same name or key."""
    who = [("learner", line.asker.learner), ("key", line.asker.key)] if line.asker else []
    last = max((grants[each] for each in who if each in grants), key=lambda one: one.index, default=None)
    if line.detail.get("old") != (last and last.detail.get("new")):
        raise TamperError(f"{line.where} changes an allowance that its learner did not have.")
    grants.update(dict.fromkeys(who, line))


def _price(line: Line) -> Price | None:
    try:
        return line.price
    except PrivadaError as error:
        raise TamperError(f"{line.where} holds no price that this budget can pay: {error}") from None


def _costs(line: Line, price: Price, account: Account) -> tuple[int, int]:
    """The least and most that a line may have cost.

    The two differ for samples, whose cost is an integral that earlier versions bounded less tightly: never
    below what it is, never above the cost without sampling.
    """
    try:
        cost = account.filter.recorded_cost(price)
        whole = accountant.unsampled(price.event)
        most = cost if whole is price.event else account.filter.recorded_cost(replace(price, event=whole))
        return cost, max(cost, most)
    except PrivadaError as error:
        raise TamperError(f"{line.where} holds no price that this budget can pay: {error}") from None


__all__ = ["Verification", "verify"]
