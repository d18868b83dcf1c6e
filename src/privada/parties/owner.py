"""An owner: private rows, a policy, a ledger, and one way to answer."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Container, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Self, TypeVar

from privada._deprecated import accept_old_parameters
from privada._notebook import describe
from privada.exceptions import (
    AnswerError,
    InputError,
    OutageError,
    PolicyError,
    PrivacyLeakWarning,
    PrivadaError,
    RelationError,
    SchemaError,
    SourceError,
    WireError,
)
from privada.parties.answering import answer_rows, answerer
from privada.parties.checks import CheckMemory
from privada.parties.compute import Engine
from privada.parties.compute.threads import Threads
from privada.parties.one_process.process_ledger import GivenBudget, OpenUse, enter_rows
from privada.parties.one_process.recognition import stack_columns
from privada.parties.owner_file import OwnerFile
from privada.parties.permissions import (
    Admission,
    KnownLearner,
    KnownLearners,
    Policy,
    Terms,
    check_terms,
    is_paid,
    price_all,
)
from privada.parties.private import Private, open_private
from privada.parties.rows import Rows
from privada.parties.schema import Schema
from privada.privacy.accounting.filters import Vintage
from privada.privacy.asker import Asker
from privada.privacy.guarantee import ApproxDP, Guarantee
from privada.privacy.ledger import Ledger, Quote
from privada.privacy.ledger.storage import OWED
from privada.privacy.noise import Noise, Rehearsal, SecureNoise
from privada.privacy.receipt import OwnerKey, Receipt
from privada.privacy.relation import Relation
from privada.privacy.release import Disclosure, Question, QuestionHeader, Release

T = TypeVar("T")

_LOG = logging.getLogger("privada.owner")


class Owner:
    """Holds private rows and answers questions about them with priced, charged, noisy and signed releases.

    Parameters
    ----------
    data : array, frame, Arrow data, path, URL, database or Source
        The private rows (see `Rows`). They are checked against the schema at once, on the owner's
        side, so that an invalid row is found before any charge.
    schema : Schema
        Public description of the rows.
    dataset : str
        Identity of the data set; budgets follow it, not the file.
    budget : Guarantee
        The most that can ever be spent, under its relation.
    ledger : Ledger, optional
        Where charges are kept, with the budget opened (`Ledger.open_budget`);
        by default a new one in memory, whose budget is opened here.
    policy : Policy, optional
        What the owner allows.
    accounting : str, optional
        The filter of the budget (see `privada.privacy.accounting.filters`).
    learners : sequence of KnownLearner, optional
        Who may ask, on which terms; by default anybody whom the policy allows.
    y, person : array, optional
        Label and person of each row beside a NumPy array.
    insecure_seed : int, optional
        Seed for reproducible noise; every release is stamped "not private".
    allow_empty : bool
        Whether a data set without rows is accepted.
    compute : Threads or Cluster, optional
        Where answers are computed; by default on every processor that this process may use.
    memory : CheckMemory, optional
        Remembers that rows were checked: the very same ones are not read again before the first answer.
    vintage : Vintage, optional
        Which rows of a larger data set it is about; ``dataset`` is then the vintage's.

    Privacy
    -------
    Nothing leaves the owner except through `answer` and `disclose`. The charge is durable before
    the rows are opened; a failure after it is not refunded.
    """

    @accept_old_parameters
    def __init__(
        self,
        data: Any,
        *,
        schema: Schema,
        dataset: str,
        budget: Guarantee,
        ledger: Ledger | None = None,
        policy: Policy | None = None,
        accounting: str | None = None,
        learners: Sequence[KnownLearner] | None = None,
        y: Any = None,
        person: Any = None,
        insecure_seed: int | None = None,
        allow_empty: bool = False,
        compute: Engine | None = None,
        memory: CheckMemory | None = None,
        vintage: Vintage | None = None,
    ) -> None:
        _check_budget(budget, schema)
        self.schema = schema
        self.policy = Policy() if policy is None else policy
        self._noise: Noise = SecureNoise() if insecure_seed is None else Rehearsal(insecure_seed)
        self._compute: Engine = Threads() if compute is None else compute
        rows = Rows(
            data,
            schema=schema,
            y=y,
            person=person,
            noise=self._noise,
            compute=self._compute,
            vintage=vintage,
        )
        self._allow_empty = allow_empty
        _check_size(_count_rows(rows, memory), schema, budget, allow_empty=allow_empty)
        self._rows, self._rows_were_away = Private(rows), False
        if ledger is None:  # one that ends with this process
            ledger = Ledger.open(":memory:", OwnerKey.generate())
            ledger.open_budget(dataset, budget, accounting=accounting, vintage=vintage)
        self.ledger = ledger
        self.dataset = self.ledger.check_budget(dataset, budget, accounting=accounting, vintage=vintage)
        self.learners: KnownLearners | None = None
        if learners is not None:
            self.learners = KnownLearners(learners, budget=self.ledger.budget(self.dataset))
            for allowance in self.learners.allowances:
                self.ledger.declare(self.dataset, allowance)
        self._admission = Admission(self.ledger, self.dataset, self.learners)

    def __repr__(self) -> str:
        return f"<Owner of {self.dataset}: {self._budget}>"

    @property
    def is_private(self) -> bool:
        """Whether its noise is the operating system's; seeded noise is not private."""
        return self._noise.private

    def _repr_html_(self) -> str:
        who = (
            "whoever the policy allows"
            if self.learners is None
            else f"{len(self.learners.learners)} learners"
        )
        facts = [
            ("budget", str(self._budget)),
            ("left", str(self.ledger.remaining(self.dataset))),
            ("columns", ", ".join(self.schema.features)),
            ("may ask", who),
            ("public key", self.public_key),
        ]
        return describe(f"Owner of {self.dataset}", facts)

    @property
    def _budget(self) -> Guarantee:
        """The budget as the ledger has it."""
        return self.ledger.budget(self.dataset).budget

    @property
    def public_key(self) -> str:
        """The key that verifies this owner's releases."""
        return self.ledger.key.public

    def check_available(self) -> None:
        """Make sure that everything an answer needs is available: the ledger, the rows and the engine.

        Rows that were away are loaded again if they came back as other files.

        Raises
        ------
        OutageError
            Its `part` says what is unavailable.
        SourceError
            The rows have changed; the owner must be loaded again.
        """
        self.ledger.check_available()
        self._compute.check_ready()
        self._check_rows()

    def _check_rows(self) -> None:
        """Make sure by names, times and sizes that the rows are those that were loaded; none is read."""
        rows = open_private(self._rows)
        try:
            rows.source.check_unchanged()
        except OutageError:
            self._rows_were_away = True
            raise
        except SchemaError as error:
            if not self._rows_were_away:
                raise SourceError(str(error)) from None  # the owner's affair, not the question's
            self._rows = Private(self._load_again(rows))
        self._rows_were_away = False

    def _load_again(self, rows: Rows) -> Rows:
        """The rows of the same place, all read and checked as when the owner was made."""
        try:
            reopened = rows.reopened()
            _check_size(_count_rows(reopened, None), self.schema, self._budget, allow_empty=self._allow_empty)
        except OutageError:
            raise
        except PrivadaError as error:  # not a question's fault, so it must not become a refusal
            raise SourceError(f"The rows were away and are others now: {error}") from None
        _LOG.info("The rows were away and came back as other files; all were read and checked again.")
        return reopened

    def note_use(self, budget: GivenBudget, guarantee: Guarantee) -> OpenUse | None:
        """Let this process recognise rows that it holds in memory for the owner, if it uses them again.

        Keyed fingerprints are all that is kept, in this process; rows in files and databases are not read.
        """
        source = open_private(self._rows).source
        if not source.is_held:
            return None
        names, who = [column.name for column in self.schema.columns], self.schema.person_id
        return enter_rows(
            stack_columns([source.column(name) for name in names]),
            person=None if who is None else source.column(who),
            columns=names,
            guarantee=guarantee,
            ledger=self.ledger,
            dataset=self.dataset,
            budget=budget,
        )

    def price(self, question: Question, *, asker: Asker | None = None) -> Quote:
        """What a question would cost, also of the asker's allowance; nothing is charged, no row opened."""
        check_terms(question, schema=self.schema, budget=self._budget)
        question.fits(self.schema)
        quote = self.ledger.price(self.dataset, question.price)
        return self._admission.price(quote, [question], asker, self.policy)

    def price_all(self, questions: Sequence[Question], *, asker: Asker | None = None) -> Quote:
        """What questions one after another would cost; disclosures cost nothing."""
        quote = price_all(
            questions, schema=self.schema, policy=self.policy, ledger=self.ledger, dataset=self.dataset
        )
        return self._admission.price(quote, questions, asker, self.policy)

    def has_paid(self, question: Question) -> bool:
        """Whether a question was charged before: asked again, it gets the same release."""
        return is_paid(question, self.ledger, self.dataset)

    def answer(self, question: Question, *, asker: Asker | None = None, approved: bool = False) -> Release:
        """Check, charge, open, draw, sign, keep; a question that was answered before gets the same release.

        Parameters
        ----------
        question : Question
            What is asked.
        asker : Asker, optional
            The learner that asks, as the ledger records it.
        approved : bool, default=False
            Whether a person approved the question.

        Raises
        ------
        InputError, PolicyError, BudgetError, ApprovalPending
            Nothing was charged.
        AnswerError
            The draw failed after the charge, which stands. The same question will not be tried again.
        LedgerError
            The ledger failed. A charge that was made stands; ask again to get the answer for it.
        OutageError
            The cluster, the database, the object store, the files or the ledger are unavailable. A charge
            that was made stands; ask again later to get the answer for it.
        """
        _check_answerable(question)
        with self._on_terms(question, asker) as terms:
            return self._answer(question, terms, approved=approved)

    def _answer(self, question: Question, terms: Terms, *, approved: bool) -> Release:
        """Answer on terms: with what was drawn before, or by a charge and a draw."""
        debt, approver = self.ledger.debt(self.dataset, question.digest), ""
        if debt is None:
            approver = self._admit(question, terms, approved=approved)
        else:
            self._admission.share(question.digest, terms, approved=approved)
            if debt.state != OWED:
                return Release.from_bytes(self.kept(question.digest))
            self.check_available()  # what is drawn during an outage would count as a try
        with self.ledger.alone(self.dataset):
            return self._draw(question, terms, approver)

    def _on_terms(
        self, question: Question | QuestionHeader, asker: Asker | None
    ) -> AbstractContextManager[Terms]:
        """The terms on which it is asked; a refusal is recorded."""
        return self._admission.on_terms(question.digest, question.method, asker, self.policy)

    def check_asker(self, digest: str, asker: Asker | None) -> None:
        """Refuse who may not ask at all, before any byte of the question is fetched."""
        with self._admission.on_terms(digest, None, asker, self.policy):
            pass

    def answer_file(self, blob: bytes, *, asker: Asker | None = None, approved: Container[str] = ()) -> bytes:
        """Answer a question file, which may come from a stranger; returns the release's file.

        Size, kind and approval are decided from the header, before anything else in the
        file is read and before any code of a method runs.

        Parameters
        ----------
        blob : bytes
            The file.
        asker : Asker, optional
            The learner that asks; the caller has checked its signature.
        approved : container of str, default=()
            Whole digests of the questions that a person approved.
        """
        header = Question.peek(blob, largest=self.policy.largest_question)
        with self._on_terms(header, asker) as terms:
            debt = self.ledger.debt(self.dataset, header.digest)
            is_approved = header.digest in approved
            if debt is not None and debt.state != OWED:
                self._admission.share(header.digest, terms, approved=is_approved)
                return self.kept(header.digest)
            if debt is None:
                is_approved, _ = self._admission.is_approved(header.digest, terms, approved=is_approved)
                terms.policy.admit_header(header, approved=is_approved)
            question = self._read_question(blob, header)
            _check_answerable(question)
            self._answer(question, terms, approved=is_approved)
            return self.kept(header.digest)

    def _read_question(self, blob: bytes, header: QuestionHeader) -> Question:
        """The question of a file whose header was admitted."""
        question = Question.from_bytes(blob, largest=self.policy.largest_question)
        if question.digest != header.digest:
            raise WireError("The file is not a valid question: its header says another one.")
        return question

    def kept(self, digest: str) -> bytes:
        """The release that is kept for the digest of an answered question, as it was signed."""
        blob = self.ledger.kept(self.dataset, digest)
        if blob is None:
            raise AnswerError(
                "The answer failed after its charge, which stands; ask again with another salt."
            )
        if self._noise.private and Release.from_bytes(blob).rehearsal:
            raise AnswerError("It was answered with seeded noise before; ask again with another salt.")
        return blob

    def _draw(self, question: Question, terms: Terms, approver: str) -> Release:
        """Charge a question once and draw its answer, unless another process has meanwhile."""
        debt, receipt = self.ledger.charge_once(
            self.dataset,
            question.price,
            question=question.digest,
            purpose=question.purpose,
            asker=terms.asker,
            allowance=terms.allowance,
            approver=approver,
        )
        if debt.state != OWED:
            return Release.from_bytes(self.kept(question.digest))
        # The charge is durable from here on; whatever fails below, it stands.
        try:
            release, blob = self._or_failure(question, lambda: self._seal(question, receipt))
        except AnswerError:
            self.ledger.fail(debt)
            raise
        first = self.ledger.keep(debt, blob)  # another process may have kept its answer before
        return release if first is blob else Release.from_bytes(first)

    def _seal(self, question: Question, receipt: Receipt) -> tuple[Release, bytes]:
        """Open the rows and draw; the signed release, and its file."""
        payload = self._open(question)
        release = Release(
            payload=payload,
            guarantee=question.guarantee,
            price=question.price.to_dict(),
            kind=question.kind,
            question=question.digest,
            receipt=receipt,
            noise={name: draw.note() for name, draw in question.plan.draws.items() if name in payload},
            rehearsal=not self._noise.private,
        ).signed(self.ledger.key)
        return release, release.to_bytes()

    def disclose(
        self, question: Question, *, to: str, asker: Asker | None = None, approved: bool = False
    ) -> Disclosure:
        """Give raw rows to a named curator: logged as not differentially private."""
        check_terms(question, schema=self.schema, budget=self._budget)
        if not question.discloses:
            raise InputError("This question asks for a release; use answer().")
        with self._on_terms(question, asker) as terms:
            self.policy.admit_curator(to)
            self.policy.admit(question, share=0.0)
            self._admission.wait_for_a_person(question.digest, terms, approved=approved)
            self._try_out(question)
            most_bytes = question.disclosed_bytes(self.schema)
            self._check_rows()
        text = f"raw rows to {to}: not differentially private"
        receipt: Receipt = self.ledger.note(
            self.dataset, kind="disclosure", text=text, question=question.digest, asker=terms.asker
        )
        rows = self._or_failure(question, lambda: self._open(question))
        return Disclosure(
            rows=rows, curator=to, question=question.digest, receipt=receipt, most_bytes=most_bytes
        )

    def disclose_file(self, blob: bytes, *, asker: Asker, approved: Container[str] = ()) -> Disclosure:
        """Disclose rows to the curator who asks by a question file; decided from its header first, too.

        Parameters
        ----------
        blob : bytes
            The file.
        asker : Asker
            The curator; the caller has checked its signature. The owner must list it by its key
            (``[[learners]]``), and the policy must name it among the curators.
        approved : container of str, default=()
            Whole digests of the questions that a person approved.
        """
        header = Question.peek(blob, largest=self.policy.largest_question)
        curator = None if self.learners is None else self.learners.named(asker)
        if curator is None:
            raise PolicyError("The owner discloses rows only to curators that it lists under [[learners]].")
        with self._on_terms(header, asker) as terms:
            self.policy.admit_curator(curator.learner)
            is_approved = header.digest in approved
            is_approved, _ = self._admission.is_approved(header.digest, terms, approved=is_approved)
            terms.policy.admit_header(header, approved=is_approved)
        question = self._read_question(blob, header)
        return self.disclose(question, to=curator.learner, asker=asker, approved=is_approved)

    def _admit(self, question: Question, terms: Terms, *, approved: bool) -> str:
        """Everything that must hold before the charge; returns who approved the question.

        Nothing of the question runs before its approval.
        """
        check_terms(question, schema=self.schema, budget=self._budget)
        self.ledger.check_allowance(self.dataset, question.price, terms.allowance)
        share = self.ledger.price(self.dataset, question.price).share
        self.policy.admit(question, share=share)
        approver = self._admission.wait_for_a_person(question.digest, terms, approved=approved)
        self._try_out(question)
        self.ledger.check_room(question.answer_bytes)
        self._check_rows()
        return approver

    def _try_out(self, question: Question) -> None:
        """Try the question on public rows, estimate the time, and check that its code is installed."""
        self._compute.check_ready(question.kept_bytes)
        question.fits(self.schema)
        self.policy.admit_work(question, self.schema)
        answerer(question)

    def _open(self, question: Question) -> dict[str, Any]:
        """Open the rows and draw."""
        loaded = open_private(self._rows)
        with loaded.pinned() as rows:
            if rows is not loaded and _has_public_size(self.schema, self._budget):
                # a new snapshot of a database may have more or fewer rows than what is public
                _check_size(rows.check(), self.schema, self._budget, allow_empty=True)
            return answer_rows(question, rows, noise=self._noise)

    def _or_failure(self, question: Question, work: Callable[[], T]) -> T:
        """Do some work on open rows. The cause of a failure stays here: it could reveal something.

        An outage is no failure: what was drawn never left, so it is drawn anew later, as after a crash.
        """
        try:
            return work()
        except OutageError:
            raise
        except Exception as error:
            _LOG.error("answer %s failed after its charge: %s", question.digest[:12], type(error).__name__)
        raise AnswerError(
            "The answer failed after its charge. The charge stands; the owner's log has the cause's type."
        )

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], **overrides: Any) -> Self:
        """Read ``owner.toml``; paths in it are relative to it."""
        return cls.from_file(OwnerFile.read(path), **overrides)

    @classmethod
    def from_file(cls, file: OwnerFile, **overrides: Any) -> Self:
        """Open the rows and the ledger that an owner's file names."""
        settings: dict[str, Any] = {
            "dataset": file.dataset,
            "schema": file.schema,
            "budget": file.budget,
            "accounting": file.accounting,
            "policy": file.policy,
            "allow_empty": file.allow_empty,
            "compute": file.compute,
            "memory": file.memory,
            "learners": file.learners,
            "vintage": file.vintage,
        }
        if "ledger" not in overrides:
            settings["ledger"] = file.open_ledger()
        return cls(file.source, **(settings | overrides))


def _check_answerable(question: Question) -> None:
    """Refuse what is not answered by a release."""
    if not isinstance(question, Question):
        raise InputError(f"An owner answers Questions, got {type(question).__name__}.")
    if question.discloses:
        raise InputError("This question asks for raw rows; use disclose().")


def _check_budget(budget: Guarantee, schema: Schema) -> None:
    """Refuse a budget that does not fit the schema; warn about a large delta; note a large epsilon."""
    if not isinstance(budget, Guarantee):
        raise InputError(f"Expected budget to be a Guarantee, got {type(budget).__name__}.")
    if budget.unit != schema.unit:
        raise RelationError(f"The budget protects one {budget.unit}, the schema one {schema.unit}.")
    if budget.relation is not Relation.ADD_REMOVE and schema.size is None:
        raise SchemaError(
            f"Under {budget.relation} the number of rows is public: declare it as the schema's size."
        )
    if isinstance(budget, ApproxDP) and schema.size and budget.delta > 1 / (10 * schema.size):
        warnings.warn(
            f"delta = {budget.delta:g} is above 1/(10 n) for a declared size of {schema.size}.",
            PrivacyLeakWarning,
            stacklevel=3,
        )
    if budget.loose:
        _note_loose(budget)


@cache
def _note_loose(budget: Guarantee) -> None:
    """Say once that a budget is large."""
    _LOG.info("The budget %s is large: it protects one %s only weakly.", budget, budget.unit)


def _count_rows(rows: Rows, memory: CheckMemory | None) -> int:
    """Read all rows once, unless the same ones were, so that any error in them is known before a charge."""
    if memory is not None and (remembered := memory.recall(rows)) is not None:
        return remembered
    identity = rows.identity
    with rows.pinned() as now:
        size = now.check()
    if memory is not None:
        memory.remember(rows, size, identity=identity)
    return size


def _check_size(size: int, schema: Schema, budget: Guarantee, *, allow_empty: bool) -> None:
    """Refuse a data set without rows, and one of another size than is public."""
    if size == 0 and not allow_empty:
        raise SchemaError("The data set has no rows; say allow_empty if that is meant.")
    if _has_public_size(schema, budget) and size != schema.size:
        raise SchemaError(
            f"Under {budget.relation} the schema's size is public and must be the true one; it is not."
        )


def _has_public_size(schema: Schema, budget: Guarantee) -> bool:
    """Whether the number of rows is public, and so must be the true one."""
    return budget.relation is not Relation.ADD_REMOVE and schema.person_id is None


__all__ = ["Owner"]
