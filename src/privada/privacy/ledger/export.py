"""The plain form of a ledger, from which dp-accounting alone computes the same sums."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from privada.privacy.accounting.filters import GRAIN, Filter
from privada.privacy.ledger.account import Account
from privada.privacy.ledger.lines import CHARGE, Line

FORMAT = "privada-ledger/1"

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
    made = [_export_line(line) for line in lines]
    return {
        "budget": account.filter.budget.to_dict(),
        "vintage": None if account.vintage is None else account.vintage.to_dict(),
        "filter": account.filter.name,
        "order": getattr(account.filter, "order", None),
        "grain": GRAIN,
        "capacity": account.capacity,
        "spent": made[-1]["spent"],
        "head": made[-1]["hash"],
        "lines": made,
        "recompute": _recompute(account.filter),
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


def _recompute(keeps: Filter) -> dict[str, Any]:
    """Events are written relative to the sensitivity under the budget's relation, so dp-accounting's
    relation changes nothing; only randomised response insists on one.
    """  # noqa: D205
    return {
        "sentence": _SENTENCES[keeps.name],
        "package": "dp-accounting",
        "accountant": "dp_accounting.rdp.RdpAccountant",
        "orders": [getattr(keeps, "order", 1.0)],
        "neighboring_relation": "REPLACE_ONE",
    }


__all__ = ["FORMAT", "export_account"]
