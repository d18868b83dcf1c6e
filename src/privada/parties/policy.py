"""What an owner allows, whatever a study asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privada import _check
from privada._toml import Section
from privada.exceptions import InputError, PolicyError, RelationError
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee
from privada.privacy.ledger import Ledger, Quote
from privada.privacy.release import Question


@dataclass(frozen=True, kw_only=True)
class Policy:
    """An owner's rules; a study cannot override them.

    Parameters
    ----------
    methods : tuple of str or None
        Names of the methods that may ask; None allows every installed one.
    largest_share : float
        Largest share of the whole budget that a single question may take.
    approval : bool
        Whether each question waits for a person.
    idealised : bool
        Whether mechanisms flagged "idealised arithmetic" may run.
    curators : tuple of str
        Who may receive a `Disclosure`; empty allows none.
    """

    methods: tuple[str, ...] | None = None
    largest_share: float = 1.0
    approval: bool = False
    idealised: bool = False
    curators: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check.share(largest_share=self.largest_share)
        for name in ("methods", "curators"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, tuple(value))

    def admit(self, question: Question, *, share: float) -> None:
        """Raise `PolicyError` if the question, which would take ``share`` of the budget, is not allowed."""
        if self.methods is not None and question.method not in self.methods:
            allowed = ", ".join(self.methods) or "none"
            raise PolicyError(f"The owner does not answer {question.method} (allowed: {allowed}).")
        if self.largest_share < 1 and share > self.largest_share * (1 + 1e-12):
            raise PolicyError(
                f"The question would take {share:.1%} of the budget; "
                f"the owner allows at most {self.largest_share:.1%} at once."
            )
        if not self.idealised and any(draw.idealised for draw in question.plan.draws.values()):
            raise PolicyError("The owner does not run mechanisms of idealised arithmetic (K-norm).")

    def admit_curator(self, curator: str) -> None:
        """Raise `PolicyError` unless rows may be disclosed to this curator."""
        if curator not in self.curators:
            raise PolicyError(f"The owner discloses no rows to {curator!r}.")

    @classmethod
    def from_section(cls, section: Section) -> Policy:
        """Read ``[policy]`` of an owner's file."""
        methods = section.array("methods", None)
        with section.blaming("largest_share"):
            policy = cls(
                methods=None if methods is None else tuple(methods),
                largest_share=section.number("largest_share", 1.0),
                approval=section.flag("approval", False),
                idealised=section.flag("idealised", False),
                curators=tuple(section.array("curators", [])),
            )
        section.done()
        return policy


def check_admissible(question: Question, *, schema: Schema, budget: Guarantee) -> None:
    """Raise an error unless a question, whatever it costs, can be asked of such a data set."""
    if not isinstance(question, Question):
        raise InputError(f"An owner answers Questions, got {type(question).__name__}.")
    if question.guarantee.unit != schema.unit:
        asked = question.guarantee.unit
        raise RelationError(f"The owner protects one {schema.unit}; the question was priced for one {asked}.")
    question.guarantee.relation.steps_to(budget.relation)
    question.check_guarantee()
    question.check_answer_size()
    question.fits(schema)


def price_all(
    questions: Sequence[Question], *, schema: Schema, policy: Policy, ledger: Ledger, dataset: str
) -> Quote:
    """What questions one after another would take from a budget, if each is admissible and allowed."""
    due = [question for question in questions if not is_paid(question, ledger, dataset)]
    for question in due:
        check_admissible(question, schema=schema, budget=ledger.budget(dataset).budget)
        share = 0.0 if question.discloses else ledger.price(dataset, question.price).share
        policy.admit(question, share=share)
    return ledger.price_all(dataset, [question.price for question in due if not question.discloses])


def is_paid(question: Question, ledger: Ledger, dataset: str) -> bool:
    """Whether a question was charged before: asked again, it gets the same release."""
    return not question.discloses and ledger.debt(dataset, question.digest) is not None


__all__ = ["Policy", "check_admissible", "is_paid", "price_all"]
