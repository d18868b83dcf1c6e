"""All errors and warnings of privada, in one tree.

::

    PrivadaError
    ├── InputError (ValueError)         a public parameter is wrong; nothing was charged
    │   ├── BoundsError                 a public bound, class list or grid is unusable
    │   ├── SchemaError                 rows do not fit the public schema
    │   │   └── SourceError             rows cannot be read: gone, changed, damaged or out of reach
    │   ├── RelationError               guarantees under relations that cannot be joined
    │   ├── GuaranteeError              a question's plan does not keep the guarantee that it states
    │   └── StudyError                  a study or policy file is wrong; names line and key
    ├── BudgetError                     the ledger refuses: nothing was charged
    ├── PolicyError                     the owner's policy refuses: nothing was charged
    ├── ApprovalPending                 the question waits for the owner's approval
    ├── LedgerError                     the ledger cannot be used
    │   └── TamperError                 a chain, signature or receipt does not hold
    ├── WireError                       a question or release file is truncated, forged or oversized
    │   └── CourierError                an exchange cannot be reached, read or written; try again later
    ├── AnswerError                     the draw failed after the charge; the charge stands
    ├── OutageError                     a part of the owner's infrastructure is away: questions wait
    │   ├── SourceOutageError           its database, object store or files; also a SourceError
    │   └── LedgerOutageError           its ledger, or the ledger's disk; also a LedgerError
    ├── ServedError                     another process serves this owner already
    └── Waiting                         a release has not arrived yet (exchange)

    PrivadaWarning (UserWarning)
    ├── PrivacyLeakWarning              a parameter weakens the guarantee in practice
    └── RehearsalWarning                noise is seeded: not private
"""

from privada._text import bounded


class PrivadaError(Exception):
    """Base of every error that privada raises on purpose; long messages are shortened."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(bounded(part) if isinstance(part, str) else part for part in args))


class InputError(PrivadaError, ValueError):
    """A public parameter is wrong. Nothing was charged."""


class BoundsError(InputError):
    """A public bound, class list or grid is unusable."""


class SchemaError(InputError):
    """Rows do not fit the public schema. The message never shows a row."""


class SourceError(SchemaError):
    """Rows cannot be read: they are gone, have changed, are damaged or out of reach."""


class RelationError(InputError):
    """Guarantees are under neighbouring relations that cannot be joined."""


class GuaranteeError(InputError):
    """A question's plan does not keep the guarantee that the question states."""


class StudyError(InputError):
    """A study or policy file is wrong; the message names the line and the key."""


class BudgetError(PrivadaError):
    """The ledger refuses the charge. Nothing was charged."""


class PolicyError(PrivadaError):
    """The owner's policy refuses the question. Nothing was charged."""


class ApprovalPending(PrivadaError):  # noqa: N818 - a state, not a fault
    """The question waits for the owner's approval. Nothing was charged."""


class LedgerError(PrivadaError):
    """The ledger cannot be used."""


class TamperError(LedgerError):
    """A hash chain, a signature or a receipt does not hold."""


class WireError(PrivadaError):
    """A question or release file is truncated, forged or oversized."""


class CourierError(WireError):
    """An exchange cannot be reached, read or written: a folder, a bucket or a broker fails."""


class AnswerError(PrivadaError):
    """The draw failed after the charge. The charge stands; the cause stays with the owner."""


class OutageError(PrivadaError):
    """A part of the owner's infrastructure is away, which says nothing about a question or a row.

    Questions wait until it is back. A charge that was made stands and is not made again.

    Attributes
    ----------
    part : str
        The part that is away: "cluster", "database", "object store", "files" or "ledger".
    """

    def __init__(self, *args: object, part: str = "infrastructure") -> None:
        super().__init__(*args)
        self.part = part


class SourceOutageError(OutageError, SourceError):
    """The rows are out of reach: a database, an object store or a file system is away."""


class LedgerOutageError(OutageError, LedgerError):
    """The ledger is out of reach, or has no room. What was written to it stands."""

    def __init__(self, *args: object, part: str = "ledger") -> None:
        super().__init__(*args, part=part)


class ServedError(PrivadaError):
    """Another process serves this owner already."""


class Waiting(PrivadaError):  # noqa: N818 - a state, not a fault
    """A release has not arrived yet; run again when it has."""


class PrivadaWarning(UserWarning):
    """Base of every warning that privada issues."""


class PrivacyLeakWarning(PrivadaWarning):
    """A parameter weakens the guarantee in practice."""


class RehearsalWarning(PrivadaWarning):
    """Noise is seeded: the output is not private."""


__all__ = [
    "AnswerError",
    "ApprovalPending",
    "BoundsError",
    "BudgetError",
    "CourierError",
    "GuaranteeError",
    "InputError",
    "LedgerError",
    "LedgerOutageError",
    "OutageError",
    "PolicyError",
    "PrivacyLeakWarning",
    "PrivadaError",
    "PrivadaWarning",
    "RehearsalWarning",
    "RelationError",
    "SchemaError",
    "ServedError",
    "SourceError",
    "SourceOutageError",
    "StudyError",
    "TamperError",
    "Waiting",
    "WireError",
]
