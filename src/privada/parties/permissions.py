"""Who may ask an owner what: its policy, the learners that it knows, and what is checked before a charge.

An owner decides in this order; a question that fails a step goes no further:

1. from a file's header alone (`Policy.admit_header`): size, method, a person's approval;
2. from the question, without running any part of it (`check_terms`, `Policy.admit`): unit, relation, price;
3. by trying the question (`Question.fits`): a learner's graph is parsed and run here for the
   first time, in a process of its own, on public rows;
4. from how long the answer would take (`Policy.admit_work`).

Then it charges. All decisions depend on public information only: keys, names, days, and the ledger's lines.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from itertools import combinations
from pathlib import Path
from typing import Self

from privada import _check
from privada._text import escape_in_json
from privada._toml import Section
from privada.exceptions import (
    AnswerError,
    ApprovalPending,
    InputError,
    LedgerError,
    OutageError,
    PolicyError,
    PrivacyLeakWarning,
    PrivadaError,
    RelationError,
    SourceError,
)
from privada.parties.schema import Schema
from privada.privacy.accounting.filters import Allowance, Filter, check_part
from privada.privacy.asker import LONGEST_NAME, Asker, check_line, check_name, is_confusable, normal_name
from privada.privacy.guarantee import ApproxDP, Guarantee, make_guarantee
from privada.privacy.keys import check_public_key
from privada.privacy.ledger import Ledger, Quote
from privada.privacy.ledger.chain import REFUSAL
from privada.privacy.release import Question, QuestionHeader
from privada.privacy.wire import LARGEST_FILE


@dataclass(frozen=True, kw_only=True)
class Policy:
    """An owner's rules; a study cannot override them.

    Parameters
    ----------
    methods : tuple of str or None, default=None
        Names of the methods that are allowed; None allows every installed one.
    largest_share : float, default=1.0
        Largest share of the whole budget that a single question may take.
    lowest_share : float, default=0.0
        Smallest share of the whole budget that is worth an answer. It bounds how many questions a budget
        ever pays for and, with `longest_answer`, how long an owner can be kept at work.
    approval : bool, default=False
        Whether each question waits for a person.
    idealised : bool, default=False
        Whether mechanisms flagged "idealised arithmetic" may run.
    curators : tuple of str, default=()
        Who may receive a `Disclosure`; an empty tuple allows nobody.
    largest_question : int, default=2**28
        Largest size of a question's file in bytes.
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
        # The factors forgive the last bit of a share that was computed in floating point.
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


def check_terms(question: Question, *, schema: Schema, budget: Guarantee) -> None:
    """Raise an error unless a question has the budget's unit and relation; no part of it is run."""
    if not isinstance(question, Question):
        raise InputError(f"An owner answers Questions, got {type(question).__name__}.")
    if question.guarantee.unit != schema.unit:
        raise RelationError(
            f"The owner protects one {schema.unit}; "
            f"the question was priced for one {question.guarantee.unit}."
        )
    question.guarantee.relation.steps_to(budget.relation)
    question.check_guarantee()
    question.check_answer_size()


def price_all(
    questions: Sequence[Question], *, schema: Schema, policy: Policy, ledger: Ledger, dataset: str
) -> Quote:
    """What a sequence of questions would take from a budget, if each is admissible and allowed."""
    unpaid = [question for question in questions if not is_paid(question, ledger, dataset)]
    for question in unpaid:
        check_terms(question, schema=schema, budget=ledger.budget(dataset).budget)
        share = 0.0 if question.discloses else ledger.price(dataset, question.price).share
        policy.admit(question, share=share)
        question.fits(schema)
        policy.admit_work(question, schema)
    return ledger.price_all(dataset, [question.price for question in unpaid if not question.discloses])


def is_paid(question: Question, ledger: Ledger, dataset: str) -> bool:
    """Whether a question was charged before, so that asking again gets the same release."""
    return not question.discloses and ledger.debt(dataset, question.digest) is not None


@dataclass(frozen=True, kw_only=True)
class LearnerCard:
    """What a learner gives to owners: its name, its organisation, and the key that signs what it asks.

    Parameters
    ----------
    name : str
        The learner's name.
    public_key : str
        64 hexadecimal digits.
    organisation : str, default=""
        Where the learner is.
    """

    name: str
    public_key: str
    organisation: str = ""

    def __post_init__(self) -> None:
        check_name(name=self.name, longest=LONGEST_NAME)
        check_line(organisation=self.organisation, longest=200, empty=True)
        check_public_key(public_key=self.public_key)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read ``learner.toml``."""
        top = Section.read(path)
        section = top.section("learner")
        fields = {name: section.string(name) for name in ("name", "public_key")}
        with section.blaming("name", "public_key", "organisation"):
            card = cls(organisation=section.string("organisation", ""), **fields)
        section.done()
        top.done()
        return card

    def to_toml(self) -> str:
        """The text of ``learner.toml``."""
        fields = {"name": self.name, "organisation": self.organisation, "public_key": self.public_key}
        lines = [
            f"{key} = {escape_in_json(json.dumps(value, ensure_ascii=False))}"
            for key, value in fields.items()
            if value
        ]
        return "\n".join(["[learner]", *lines]) + "\n"


@dataclass(frozen=True, kw_only=True)
class KnownLearner:
    """One learner that an owner answers.

    Parameters
    ----------
    name : str
        The owner's name for the learner, normalised as names of data sets are.
    key : str
        The learner's public key.
    methods : tuple of str or None, default=None
        The methods that the learner may use; None leaves that to the policy.
    allowance : Guarantee or None, default=None
        The most that may be spent on the learner's questions; None leaves it the whole budget.
    expires : date or None, default=None
        The last day (UTC) on which the learner may ask.
    approval : bool or None, default=None
        Whether a person must approve each question; None leaves that to the policy.
    organisation : str, default=""
        Where the learner is, by its card.
    """

    name: str
    key: str
    methods: tuple[str, ...] | None = None
    allowance: Guarantee | None = None
    expires: date | None = None
    approval: bool | None = None
    organisation: str = ""

    def __post_init__(self) -> None:
        check_name(name=self.name, longest=LONGEST_NAME)
        check_line(organisation=self.organisation, longest=200, empty=True)
        object.__setattr__(self, "name", normal_name(self.name))
        check_public_key(key=self.key)
        if self.methods is not None:
            object.__setattr__(self, "methods", tuple(self.methods))

    @classmethod
    def from_section(cls, section: Section, *, home: Path, budget: Guarantee) -> KnownLearner:
        """Read one of ``[[learners]]``; its card, if ``key`` names one, is relative to ``home``."""
        key, name, organisation = section.string("key"), section.string("name", None), ""
        if key.endswith(".toml"):
            card = LearnerCard.read(home / key)
            key, name, organisation = card.public_key, card.name if name is None else name, card.organisation
        methods, allowance = section.array("methods", None), None
        if "allowance" in section:
            part = section.section("allowance")
            numbers = {term: part.number(term, None) for term in ("epsilon", "delta", "rho")}
            part.done()
            with part.blaming("epsilon", "delta", "rho"):
                allowance = part_of(budget, **numbers)
        with section.blaming("name", "key", "methods"):
            learner = cls(
                name=section.string("name") if name is None else name,
                key=key,
                methods=None if methods is None else tuple(map(str, methods)),
                allowance=allowance,
                expires=section.day("expires", None),
                approval=section.flag("approval", None),
                organisation=organisation,
            )
        section.done()
        return learner


def part_of(budget: Guarantee, *, epsilon: float | None, delta: float | None, rho: float | None) -> Guarantee:
    """An allowance in the terms of a budget; without a delta, it has the budget's."""
    if delta is None and isinstance(budget, ApproxDP):
        delta = budget.delta
    part = make_guarantee(epsilon=epsilon, delta=delta, rho=rho, relation=budget.relation, unit=budget.unit)
    return check_part(part, budget)


def read_learners(sections: Sequence[Section], *, home: Path, budget: Guarantee) -> tuple[KnownLearner, ...]:
    """Read ``[[learners]]`` of an owner's file; errors name the line and the key."""
    learners: list[KnownLearner] = []
    for section in sections:
        learners.append(KnownLearner.from_section(section, home=home, budget=budget))
        with section.blaming("name", "key"):  # the later one of two is to blame
            check_distinct(learners)
    return tuple(learners)


def check_distinct(learners: Iterable[KnownLearner]) -> tuple[KnownLearner, ...]:
    """The learners, if no two share a name or a key."""
    listed = tuple(learners)
    for what, values in (
        ("name", [learner.name.casefold() for learner in listed]),
        ("key", [learner.key for learner in listed]),
    ):
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            raise InputError(f"Two learners have the same {what}: {twice}.")
    return listed


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms on which a question is looked at: who asks, under which rules, with which allowance.

    ``allowance`` is None for a learner that the owner does not know.
    """

    policy: Policy
    asker: Asker | None = None
    allowance: Allowance | None = None


class KnownLearners:
    """The learners that an owner knows, and the terms on which each may ask.

    ::

        [[learners]]
        name = "alice"                   # the owner's name for the learner; by default the card's
        key = "5f3c...e1"                # the public key in hexadecimal, or the path of the learner's card
        methods = ["cells"]              # by default, what the policy allows
        allowance = { epsilon = 1.0 }    # in the terms of the budget; by default, the whole of it
        expires = 2027-06-30             # the last day (UTC); by default, none
        approval = false                 # whether a person must approve; by default, as the policy says

    If an owner's file has ``[[learners]]``, nobody else is answered. A learner is recognised by its key,
    never by the name that it states. An allowance is declared in the file but counted by the ledger: a new
    one is written there as a line when the owner opens, and ``privada owner allow`` changes it without the
    file.

    Parameters
    ----------
    learners : iterable of KnownLearner
        The learners; no two have the same name or key.
    budget : Filter
        The filter of the data set's budget, which allowances are parts of.
    """

    def __init__(self, learners: Iterable[KnownLearner], *, budget: Filter) -> None:
        self.learners = check_distinct(learners)
        for one, other in combinations([learner.name for learner in self.learners], 2):
            if is_confusable(one, other):
                warnings.warn(
                    f"The letters of the learners {one!a} and {other!a} look the same: see that "
                    "you do not take one for the other.",
                    PrivacyLeakWarning,
                    stacklevel=3,
                )
        self._allowances = {
            learner.key: Allowance.of(
                learner.name,
                learner.key,
                None if learner.allowance is None else check_part(learner.allowance, budget.budget),
                accounting=budget.name,
                expires=learner.expires,
            )
            for learner in self.learners
        }

    @property
    def allowances(self) -> list[Allowance]:
        """The allowances of all of them, as they are declared."""
        return list(self._allowances.values())

    def allowance(self, learner: KnownLearner) -> Allowance:
        """The allowance of one of them."""
        return self._allowances[learner.key]

    def find(self, asker: Asker | None) -> KnownLearner | None:
        """Who asks, as the owner lists it; None for anybody else."""
        keys = {learner.key: learner for learner in self.learners}
        return None if asker is None else keys.get(asker.key)

    def named(self, asker: Asker | None) -> Asker | None:
        """Who asks, under the owner's name for its key; None for anybody whom the owner does not know."""
        learner = self.find(asker)
        return None if asker is None or learner is None else replace(asker, learner=learner.name)

    def terms(self, asker: Asker | None, method: str | None, policy: Policy) -> Terms:
        """The terms of who asks, under the owner's name for it; `PolicyError` for anybody else.

        ``method`` is None while it is not known yet.
        """
        learner = self.find(asker)
        if asker is None or learner is None:
            who = (
                "Nobody signed the question"
                if asker is None
                else f"The owner does not know {asker.learner!r}"
            )
            raise PolicyError(f"{who}; it answers the learners that its file lists. Nothing was charged.")
        if method is not None and learner.methods is not None and method not in learner.methods:
            allowed = ", ".join(learner.methods) or "none"
            raise PolicyError(f"The owner does not answer {method} to {learner.name!r} (allowed: {allowed}).")
        return Terms(
            policy=policy if learner.approval is None else replace(policy, approval=learner.approval),
            asker=replace(asker, learner=learner.name),
            allowance=self._allowances[learner.key],
        )


class Admission:
    """Decides about questions to one data set by who asks and what a person decided, not by their content.

    The ledger has what people decided, refusals, and what each learner has used.

    Privacy
    -------
    No row is opened, and a refused question costs nothing.
    """

    def __init__(self, ledger: Ledger, dataset: str, learners: KnownLearners | None) -> None:
        self._ledger = ledger
        self._dataset = dataset
        self._learners = learners

    @contextmanager
    def on_terms(
        self, digest: str, method: str | None, asker: Asker | None, policy: Policy
    ) -> Iterator[Terms]:
        """The terms on which a question is asked. A refusal within is recorded; nothing was charged."""
        try:
            yield self._find_terms(method, asker, policy)
        except (ApprovalPending, AnswerError, LedgerError, OutageError, SourceError):
            raise  # these refuse nothing: the owner, or the question, is not ready
        except PrivadaError as error:
            listed = None if self._learners is None else self._learners.named(asker)
            with suppress(LedgerError):  # the refusal stands, recorded or not
                self._ledger.refuse(self._dataset, question=digest, reason=str(error), asker=listed)
            raise

    def _find_terms(self, method: str | None, asker: Asker | None, policy: Policy) -> Terms:
        if self._learners is None:
            return Terms(policy=policy, asker=asker)
        terms = self._learners.terms(asker, method, policy)
        self._ledger.check_term(self._dataset, terms.allowance)
        return terms

    def price(
        self, quote: Quote, questions: Sequence[Question], asker: Asker | None, policy: Policy
    ) -> Quote:
        """A quote with what is left of the asker's allowance; nothing is written.

        Raises
        ------
        PolicyError
            The owner answers no such question to this learner.
        """
        if asker is None or self._learners is None:
            return quote
        for question in questions:
            self._find_terms(question.method, asker, policy)
        prices = {question.digest: question.price for question in questions if not question.discloses}
        allowance = self._find_terms(None, asker, policy).allowance
        return quote.within(self._ledger.price_for(self._dataset, prices, allowance))

    def is_approved(self, digest: str, terms: Terms, *, approved: bool) -> tuple[bool, str]:
        """Whether a person approved a question, and who; `PolicyError` if one refused it."""
        decision = self._ledger.decision(self._dataset, digest, asker=terms.asker)
        if decision is None:
            return approved, ""
        if decision.kind == REFUSAL:
            raise PolicyError(f"{decision.approver} refused it: {decision.detail['text']}")
        return True, decision.approver

    def wait_for_a_person(self, digest: str, terms: Terms, *, approved: bool) -> str:
        """Who approved a question; `ApprovalPending` if somebody still must."""
        is_approved, approver = self.is_approved(digest, terms, approved=approved)
        if terms.policy.approval and not is_approved:
            raise ApprovalPending(f"Question {digest[:12]} waits for the owner's approval.")
        return approver

    def share(self, digest: str, terms: Terms, *, approved: bool) -> None:
        """Let a learner have an answer that another one paid for, which needs approval like a new one."""
        if terms.allowance is None or self._ledger.has_answer(self._dataset, digest, terms.allowance):
            return
        self.wait_for_a_person(digest, terms, approved=approved)
        self._ledger.share(self._dataset, digest, asker=terms.asker, allowance=terms.allowance)


__all__ = [
    "Admission", "KnownLearner", "KnownLearners", "LearnerCard", "Policy", "Terms",
    "check_distinct", "check_terms", "is_paid", "part_of", "price_all", "read_learners",
]  # fmt: skip
