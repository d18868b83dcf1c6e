"""What an owner allows, whatever a study asks for.

An owner decides in this order; a question that fails a step goes no further:

1. from a file's header alone (`Policy.admit_header`): size, method, a person's approval;
2. from the question, without running any part of it (`check_terms`, `Policy.admit`): unit, relation, price;
3. by trying the question (`Question.fits`): a learner's graph is parsed and run here for the
   first time, in a process of its own, on public rows;
4. from how long the answer would take (`Policy.admit_work`).

Then it charges. All decisions depend on public information only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privada import _check
from privada._toml import Section
from privada.exceptions import ApprovalPending, InputError, PolicyError, RelationError
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee
from privada.privacy.ledger import Ledger, Quote
from privada.privacy.release import Question, QuestionHeader
from privada.privacy.wire import LARGEST_FILE


@dataclass(frozen=True, kw_only=True)
class Policy:
    """An owner's rules; a study cannot override them.

    Parameters
    ----------
    methods : tuple of str or None
        Names of the methods that are allowed; None allows every installed one.
    largest_share : float, default=1.0
        Largest share of the whole budget that a single question may take.
    lowest_share : float, default=0.0
        Smallest share of the whole budget that is worth an answer. It bounds how many questions a budget
        ever pays for, and with `longest_answer` how long an owner can be kept at work.
    approval : bool
        Whether each question waits for a person.
    idealised : bool
        Whether mechanisms flagged "idealised arithmetic" may run.
    curators : tuple of str
        Who may receive a `Disclosure`; empty allows none.
    largest_question : int, default=2**28
        Bytes of a question's file.
    longest_answer : float, default=600.0
        Processor seconds that one answer may take, estimated from the question and a public size.
    assumed_size : int, default=1_000_000
        The number of rows to assume if the schema declares no size. The true number is private.
    """

    methods: tuple[str, ...] | None = None
    largest_share: float = 1.0
    approval: bool = False
    idealised: bool = False
    curators: tuple[str, ...] = ()
    lowest_share: float = 0.0
    largest_question: int = LARGEST_FILE
    longest_answer: float = 600.0
    assumed_size: int = 1_000_000

    def __post_init__(self) -> None:
        _check.share(largest_share=self.largest_share)
        _check.share(lowest_share=self.lowest_share)
        _check.count(largest_question=self.largest_question)
        _check.positive(longest_answer=self.longest_answer)
        _check.count(assumed_size=self.assumed_size)
        if self.lowest_share > self.largest_share:
            raise InputError(
                f"Expected lowest_share to be at most largest_share = {self.largest_share:g}, "
                f"got {self.lowest_share:g}."
            )
        for name in ("methods", "curators"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, tuple(value))

    def admit_header(self, header: QuestionHeader, *, approved: bool = False) -> None:
        """Decide what can be decided before the question is read from its file.

        Raises
        ------
        PolicyError
            The file is too large, or the method is not allowed.
        ApprovalPending
            Nobody has approved it yet.
        """
        if header.size > self.largest_question:
            raise PolicyError(
                f"The question has {header.size} bytes; the owner reads at most {self.largest_question}."
            )
        self._admit_method(header.method)
        if self.approval and not approved:
            raise ApprovalPending(f"Question {header.digest[:12]} waits for the owner's approval.")

    def _admit_method(self, method: str) -> None:
        if self.methods is not None and method not in self.methods:
            allowed = ", ".join(self.methods) or "none"
            raise PolicyError(f"The owner does not answer {method} (allowed: {allowed}).")

    def admit(self, question: Question, *, share: float) -> None:
        """Raise `PolicyError` if the question, which would take ``share`` of the budget, is not allowed."""
        self._admit_method(question.method)
        if self.largest_share < 1 and share > self.largest_share * (1 + 1e-12):
            raise PolicyError(
                f"The question would take {share:.1%} of the budget; "
                f"the owner allows at most {self.largest_share:.1%} at once."
            )
        if not question.discloses and share < self.lowest_share * (1 - 1e-12):
            raise PolicyError(
                f"The question would take a share of {share:g} of the budget; "
                f"the owner answers none below {self.lowest_share:g}."
            )
        if not self.idealised and any(draw.idealised for draw in question.plan.draws.values()):
            raise PolicyError("The owner does not run mechanisms of idealised arithmetic (K-norm).")

    def admit_work(self, question: Question, schema: Schema) -> None:
        """Raise `PolicyError` if an answer could take too long; `Question.fits`, which measures, comes first.

        Seconds are estimated for the declared size, or `assumed_size`, and never for the true number of rows.
        """
        rows = self.assumed_size if schema.size is None else schema.size
        seconds = question.seconds(schema, rows=rows)
        if not seconds <= self.longest_answer:
            raise PolicyError(
                f"The answer could take {seconds:.3g} seconds for {rows} rows; "
                f"the owner allows {self.longest_answer:g} (longest_answer in its policy)."
            )

    def admit_curator(self, curator: str) -> None:
        """Raise `PolicyError` unless rows may be disclosed to this curator."""
        if curator not in self.curators:
            raise PolicyError(f"The owner discloses no rows to {curator!r}.")

    @classmethod
    def from_section(cls, section: Section) -> Policy:
        """Read ``[policy]`` of an owner's file."""
        methods = section.array("methods", None)
        with section.blaming(
            "largest_share", "lowest_share", "largest_question", "longest_answer", "assumed_size"
        ):
            policy = cls(
                methods=None if methods is None else tuple(methods),
                largest_share=section.number("largest_share", 1.0),
                approval=section.flag("approval", False),
                idealised=section.flag("idealised", False),
                curators=tuple(section.array("curators", [])),
                lowest_share=section.number("lowest_share", 0.0),
                largest_question=section.whole("largest_question", LARGEST_FILE),
                longest_answer=section.number("longest_answer", 600.0),
                assumed_size=section.whole("assumed_size", 1_000_000),
            )
        section.done()
        return policy


def check_terms(question: Question, *, schema: Schema, budget: Guarantee) -> None:
    """Raise an error unless a question has the budget's unit and relation; no part of it is run."""
    if not isinstance(question, Question):
        raise InputError(f"An owner answers Questions, got {type(question).__name__}.")
    if question.guarantee.unit != schema.unit:
        asked = question.guarantee.unit
        raise RelationError(f"The owner protects one {schema.unit}; the question was priced for one {asked}.")
    question.guarantee.relation.steps_to(budget.relation)
    question.check_guarantee()
    question.check_answer_size()


def check_admissible(question: Question, *, schema: Schema, budget: Guarantee) -> None:
    """Raise an error unless a question can be asked of such a data set, whatever it costs.

    What a learner's hypothesis does is tried here, in a process of its own: an owner asks its policy first.
    """
    check_terms(question, schema=schema, budget=budget)
    question.fits(schema)


def price_all(
    questions: Sequence[Question], *, schema: Schema, policy: Policy, ledger: Ledger, dataset: str
) -> Quote:
    """What a sequence of questions would take from a budget, if each is admissible and allowed."""
    due = [question for question in questions if not is_paid(question, ledger, dataset)]
    for question in due:
        check_terms(question, schema=schema, budget=ledger.budget(dataset).budget)
        share = 0.0 if question.discloses else ledger.price(dataset, question.price).share
        policy.admit(question, share=share)
        question.fits(schema)
        policy.admit_work(question, schema)
    return ledger.price_all(dataset, [question.price for question in due if not question.discloses])


def is_paid(question: Question, ledger: Ledger, dataset: str) -> bool:
    """Whether a question was charged before: asked again, it gets the same release."""
    return not question.discloses and ledger.debt(dataset, question.digest) is not None


__all__ = ["Policy", "check_admissible", "check_terms", "is_paid", "price_all"]
