"""Auditors: lower bounds on epsilon from outside, and replays of a proof's steps from inside.

A proof bounds the loss from above; an audit bounds it from below. If the lower
bound exceeds the claim, the claim is false.

* `audit_mechanism` and `audit_question` are *black-box*: they see outputs only
  and give a lower confidence bound on epsilon (`privada.audit.blackbox`).
* `replay` is *white-box*: it follows every exact value into its mechanism on two
  neighbouring data sets and checks what the proof says about it
  (`privada.audit.replaying`).
* `check_laws` tests whether the noise has its declared distribution and is independent
  (`privada.audit.laws`).
* `audit_row_function` checks that what is decided of a row depends on that row alone
  (`privada.audit.functions`), and `audit_traffic` that a reader of an exchange learns nothing from
  what is sent, where and how long it is (`privada.audit.views`).
* `audit_search` bounds from below what a private search for settings loses (`privada.audit.blackbox`).
* `audit_method` runs all of them over a registered method's example.

All are for generated rows. None is a proof: passing means that no violation was found.
"""

from __future__ import annotations

from privada._lazy import attach

_HOMES = {
    "blackbox": ("AuditResult", "audit_mechanism", "audit_question", "audit_samples", "audit_search"),
    "functions": ("RowFunctionAudit", "audit_row_function"),
    "laws": ("LawResult", "check_laws"),
    "method": ("QuestionAudit", "audit_example", "audit_method"),
    "pairs": ("Chain", "Pair", "across_batches", "arranged_neighbours", "growing_crowds", "neighbours"),
    "replaying": ("ReplayResult", "replay", "replay_chain"),
    "rows": ("Sample", "landmarks"),
    "views": (
        *("RoundAudit", "TrafficAudit", "ViewAudit"),
        *("audit_traffic", "replay_rounds", "replay_views"),
    ),
}

__all__, __getattr__, __dir__ = attach(__name__, _HOMES)
