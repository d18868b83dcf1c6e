"""Answers on a cluster of the owner's own: parts stay on its workers, integer totals come back.

A worker is sent the address of a part (files and row groups), the name of a function that is installed there,
and the question's file. Results are joined on the workers, sixteen at a time. A lost worker is the
scheduler's business: it computes again what was there, with the same bits. The loss of the scheduler or of
all workers is an `OutageError`; the next use connects anew and brings the parts to the workers again.

The cluster is inside the owner's own network: who reaches its scheduler can run anything on it. So it is
reached by TLS with certificates on both sides; an unprotected one only on this machine.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from privada import __version__
from privada._arrays import BoolArray
from privada._extras import require
from privada._toml import Section
from privada.exceptions import AnswerError, InputError, OutageError, PrivadaError, SourceError
from privada.parties.compute import Fold, Handles, Merging
from privada.parties.compute.batch import Batch, Part
from privada.parties.compute.threads import Threads
from privada.parties.schema import Schema
from privada.parties.sources import Source, open_source
from privada.parties.sources.memory import Collection
from privada.privacy.release import Question

T = TypeVar("T")
JOINED = 16  # results that a worker joins at once
CONNECT_SECONDS = 5.0  # for which a scheduler is tried before it counts as away
PATIENCE = 60.0  # seconds for which a cluster is waited for of which no worker works
_HERE = {"127.0.0.1", "localhost", "::1"}
_PLAIN = (np.ndarray, np.generic, bool, int, float, str)
_ALONE = Threads(1)  # what a worker computes by: a cluster starts one process for each processor


@dataclass(frozen=True)
class Cluster:
    """Compute on a Dask cluster (extra ``cluster``).

    Parameters
    ----------
    scheduler : str
        ``tls://host:port``; ``tcp://`` on this machine only.
    ca, certificate, key : path, optional
        The authority that signs the cluster's certificates, and the owner's own; with ``tls://``.

    Privacy
    -------
    Totals are the same, bit for bit, as in one process. Workers must have one kind of processor and the same
    versions, which is checked: what a record adds must not depend on the worker that reads it.
    """

    scheduler: str
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        require("cluster", "dask", "distributed", purpose="A cluster")
        parts = urlsplit(self.scheduler)
        if parts.scheme not in ("tls", "tcp") or not parts.hostname:
            raise InputError(f"Expected scheduler as tls://host:port, got {self.scheduler!r}.")
        if parts.scheme == "tcp" and parts.hostname not in _HERE:
            raise InputError("Expected a scheduler by tls://: tcp:// is for this machine only.")
        files = (self.ca, self.certificate, self.key)
        if parts.scheme == "tls" and not all(file and Path(file).is_file() for file in files):
            raise InputError("A scheduler by tls:// needs the files ca, certificate and key.")

    @classmethod
    def from_section(cls, section: Section, home: Path) -> Self:
        """Read ``scheduler``, ``ca``, ``certificate`` and ``key``; no connection is made yet."""
        files = {name: section.string(name, None) for name in ("ca", "certificate", "key")}
        with section.blaming("scheduler", *files):
            paths = {name: None if file is None else home / file for name, file in files.items()}
            return cls(section.string("scheduler"), **paths)

    @cached_property
    def _client(self) -> Any:
        from distributed import Client, Security

        security = None
        if self.scheduler.startswith("tls"):
            security = Security(
                tls_ca_file=str(self.ca),
                tls_client_cert=str(self.certificate),
                tls_client_key=str(self.key),
                require_encryption=True,
            )
        try:
            return Client(self.scheduler, security=security, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise OutageError(
                f"The cluster's scheduler {self.scheduler} cannot be reached: {type(error).__name__}.",
                part="cluster",
            ) from None

    def close(self) -> None:
        """End the connection; the next use makes a new one."""
        self.__dict__.pop("_questions", None)
        client = self.__dict__.pop("_client", None)
        if client is not None:
            with suppress(Exception):  # of a scheduler that is gone there is nothing to end
                client.close(timeout=CONNECT_SECONDS)

    @contextmanager
    def _noticing_loss(self, doing: str) -> Iterator[None]:
        """Name the loss of a scheduler or its workers, and drop the client.

        A client that has lost its scheduler forgets all parts. After some seconds it closes itself and stays
        closed when the scheduler is back, so the next use needs a new one.
        """
        from distributed.client import ClosedClientError
        from distributed.scheduler import KilledWorker, NoValidWorkerError, NoWorkerError

        lost = (CancelledError, ClosedClientError, KilledWorker, NoValidWorkerError, NoWorkerError)
        try:
            yield
        except OutageError:
            self.close()
            raise
        except PrivadaError:
            raise
        except Exception as error:
            alive = "_client" in self.__dict__ and self._client.status == "running"
            if alive and not isinstance(error, (*lost, OSError, TimeoutError)):
                raise
            self.close()
            raise OutageError(f"The cluster {doing}: {type(error).__name__}.", part="cluster") from None

    def check_ready(self, kept_bytes: int = 0) -> None:  # noqa: ARG002 - workers spill to their disks
        """Raise `OutageError` before anything is charged: no scheduler, no worker, or workers that differ."""
        if "_client" in self.__dict__ and self._client.status != "running":
            self.close()
        with self._noticing_loss("does not answer"):
            try:
                versions = set(self._client.run(tell_versions).values())
            except (ImportError, AttributeError) as error:
                raise OutageError(
                    f"The cluster's workers have another version of privada: {type(error).__name__}.",
                    part="cluster",
                ) from None
        if not versions:
            raise OutageError("The cluster has no workers.", part="cluster")
        if len(versions) > 1 or next(iter(versions))[0] != __version__:
            raise OutageError(
                "Expected workers of one kind of processor, with the owner's version of privada and one "
                "version of numpy, numba and pyarrow.",
                part="cluster",
            )

    def has(self, parts: Handles) -> bool:
        """Whether the present client has these parts still."""
        client = self.__dict__.get("_client")
        return all(part.client is client and part.status in ("pending", "finished") for part in parts)

    def check_source(self, source: Source) -> None:
        """Refuse rows that workers cannot read by themselves."""
        if not source.travels:
            raise InputError(
                "Rows in the memory of this process, in an object store, or in a SQLite or DuckDB file, of "
                "which machines share no snapshot, are not sent to a cluster: write them to Parquet or CSV "
                "files that all workers can read, keep them in PostgreSQL, or pass a Dask data frame."
            )

    def place(self, source: Source, schema: Schema) -> Handles:
        """Addresses of parts go to the workers; rows that are in this process do not."""
        self.check_ready()
        if isinstance(source, Collection):
            from dask.graph_manipulation import clone

            with self._noticing_loss("takes no work"):
                # A frame's tasks have the same keys each time, and Dask may lose a task whose key was
                # released just before, while all workers are idle. Clones have new keys.
                clones = clone(*(part.delayed for part in source.partitions()))
                # A single clone comes without a tuple around it.
                frames = self._client.compute(list(clones) if isinstance(clones, tuple) else [clones])
            return [self._submit(open_frame, frame, schema) for frame in frames]
        return [self._submit(keep_value, Part(part, schema)) for part in source.addresses()]

    def narrow(self, parts: Handles, masks: Sequence[BoolArray]) -> Handles:
        return [self._submit(Part.only, part, mask) for part, mask in zip(parts, masks, strict=True)]

    def select(self, parts: Handles, names: tuple[str, ...]) -> Handles:
        return [self._submit(Part.reading, part, names) for part in parts]

    def remember(self, parts: Handles, name: str) -> tuple[Handles, list[npt.NDArray[Any]]]:
        with_people = [self._submit(remember_people, part, name) for part in parts]
        people = self._results([self._submit(attrgetter("people"), part) for part in with_people])
        pairs = zip(with_people, map(digest_people, people), strict=True)
        return [self._submit(check_people, part, digest) for part, digest in pairs], people

    def counts(self, parts: Handles) -> list[int]:
        return self._results([self._submit(count_rows, part) for part in parts])

    def batches(self, parts: Handles) -> Iterator[Batch]:
        for part in parts:
            yield from self._results([self._submit(read_batches, part)])[0]

    def fold(
        self, parts: Handles, schema: Schema, make: Callable[[Batch], T], fold: Fold[T], numbers: int
    ) -> T:
        task, question = self._describe(make, fold)
        results = [self._submit(fold_part, part, schema, task, question, fold, numbers) for part in parts]
        return self._join(results, fold)

    def prepare(self, parts: Handles, schema: Schema, make: Callable[[Batch], Any]) -> Handles:
        task, question = self._describe(make)
        return [self._submit(prepare_part, part, schema, task, question) for part in parts]

    def fold_prepared(self, prepared: Handles, make: Callable[[Any], T], fold: Fold[T]) -> T:
        task, question = self._describe(make, fold)
        results = [self._submit(fold_prepared_part, part, task, question, fold) for part in prepared]
        return self._join(results, fold)

    def map_prepared(self, prepared: Handles, make: Callable[[Any], Any]) -> Handles:
        task, question = self._describe(make)
        return [self._submit(map_prepared_part, part, task, question) for part in prepared]

    def _describe(self, make: Callable[[Any], Any], fold: Fold[Any] | None = None) -> tuple[Task, Any]:
        """A task without its question, and the question's file, which a worker gets once."""
        if isinstance(fold, Merging):
            Task.of(fold.merge)  # which refuses a function that has no name on the workers
        task = Task.of(make)
        return task.without_question(), self._keep_question(task.question)

    def _keep_question(self, blob: bytes) -> Any:
        """The question's file on the workers; the last one stays there, for an answer of many steps.

        Its key is new each time: Dask may lose a task whose key was released just before.
        """
        digest = sha256(blob).hexdigest()
        question = self._questions.get(digest)
        if question is None or question.status not in ("pending", "finished"):
            question = self._submit(keep_value, blob)
            self._questions.clear()
            self._questions[digest] = question
        return question

    @cached_property
    def _questions(self) -> dict[str, Any]:
        return {}

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        with self._noticing_loss("takes no work"):
            return self._client.submit(function, *arguments, pure=False)

    def _join(self, results: Handles, fold: Fold[T]) -> T:
        while len(results) > 1:
            groups = [results[start : start + JOINED] for start in range(0, len(results), JOINED)]
            results = [self._submit(join_results, fold, *group) for group in groups]
        return self._results(results)[0]

    def _results(self, futures: Handles) -> list[Any]:
        """What workers computed.

        An error of a task is raised here: as it is, or an `AnswerError` if privada did not raise it. Where no
        task failed, the cluster was lost on the way.
        """
        from distributed.scheduler import KilledWorker

        with self._noticing_loss("was lost on the way"):
            self._wait(futures)
            for future in futures:
                if future.status == "error":
                    error = future.exception()
                    # A task that lost several workers in a row is an outage.
                    if isinstance(error, (PrivadaError, KilledWorker)):
                        raise error
                    raise AnswerError(f"The cluster could not finish: {type(error).__name__}.")
            return list(self._client.gather(list(futures)))

    def _wait(self, futures: Handles) -> None:
        """Until all are done; not for ever, if no worker is left or none has anything to do."""
        from distributed import TimeoutError as Late
        from distributed import wait

        idle = 0.0
        while True:
            try:
                with self._client.as_current():
                    wait(list(futures), timeout=PATIENCE / 12)
                return
            except Late:
                # the workers are asked, not the scheduler, which takes a lost task for one at work
                at_work = self._client.run(count_tasks_at_work)
                idle = 0.0 if any(at_work.values()) else idle + PATIENCE / 12
            if idle >= PATIENCE:
                self._client.cancel(list(futures))
                raise OutageError(
                    "The cluster could not finish: no worker is left, or none works on it.", part="cluster"
                )


@dataclass(frozen=True, eq=False)
class QuestionFile:
    """A question in a task, as its file."""

    blob: bytes


@dataclass(frozen=True, eq=False)
class Task:
    """A function by its place, and its first arguments.

    A function that was made on the way, as a lambda, has no name and is refused: workers run nothing but the
    code that is installed there.

    >>> from privada._check import positive
    >>> Task.of(partial(positive)).name
    'positive'
    """

    module: str
    name: str
    arguments: tuple[Any, ...] = ()

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Task:
        """Describe a function of a module, or a `functools.partial` of one."""
        inner = function.func if isinstance(function, partial) else function
        arguments = function.args if isinstance(function, partial) else ()
        if isinstance(function, partial) and function.keywords:
            raise AnswerError("A function for a cluster takes its first arguments by place.")
        module, name = getattr(inner, "__module__", ""), getattr(inner, "__qualname__", "")
        if not module or not name.isidentifier() or getattr(import_module(module), name, None) is not inner:
            raise AnswerError("A cluster runs functions of modules only, not one that was made on the way.")
        packed: list[Any] = []
        for argument in arguments:
            if isinstance(argument, Question):
                packed.append(QuestionFile(argument.to_bytes()))
            elif isinstance(argument, _PLAIN):
                packed.append(argument)
            else:
                kind = type(argument).__name__
                raise AnswerError(f"An argument of type {kind} does not travel to a cluster.")
        return cls(module, name, tuple(packed))

    @property
    def question(self) -> bytes:
        """The file of the question; empty if there is none."""
        files = (argument.blob for argument in self.arguments if isinstance(argument, QuestionFile))
        return next(files, b"")

    def without_question(self) -> Task:
        """The same task, to which the question's file is given apart."""
        empty = QuestionFile(b"")
        rest = (empty if isinstance(argument, QuestionFile) else argument for argument in self.arguments)
        return Task(self.module, self.name, tuple(rest))

    def function(self, question: bytes = b"") -> Callable[[Any], Any]:
        """The function, found in the code that is installed here."""
        arguments = (
            read_question(argument.blob or question) if isinstance(argument, QuestionFile) else argument
            for argument in self.arguments
        )
        return partial(getattr(import_module(self.module), self.name), *arguments)


@lru_cache(maxsize=16)
def read_question(blob: bytes) -> Question:
    """A question from its file, which is checked once."""
    return Question.from_bytes(blob)


# What a worker runs: one thread's work on one part. NumPy's warnings stay there, as `answered` in
# `privada.parties.answering` explains.


def tell_versions() -> tuple[str, ...]:
    """All that the last bit of a float may depend on: versions and the kind of processor."""
    import llvmlite.binding as llvm
    import numba
    import pyarrow as pa

    kind = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    return __version__, np.__version__, numba.__version__, pa.__version__, kind


def count_tasks_at_work(dask_worker: Any) -> int:
    """How many tasks a worker is computing, about to compute, or getting data for."""
    state = dask_worker.state
    return len(state.executing) + len(state.ready) + len(state.in_flight_tasks) + len(state.data_needed)


def keep_value(value: Any) -> Any:
    """Keep a value on a worker: an address of a part, or a question's file."""
    return value


def open_frame(frame: Any, schema: Schema) -> Part:
    """A partition of a Dask collection as a part."""
    return Part(open_source(frame, schema, None, None), schema)


def remember_people(part: Part, name: str) -> Part:
    """The part, with the person of each row."""
    return replace(part, people=np.array(part.source.column(name)))


def check_people(part: Part, digest: str) -> Part:
    """The part, if its persons are still those of a digest.

    A part whose worker was lost is read again, and a frame may have changed by then. Which rows count was
    chosen for the persons that the owner saw; a new person could have any number of rows.
    """
    if digest_people(part.people) != digest:
        raise SourceError("The rows' persons have changed since they were loaded; load the owner again.")
    return part


def digest_people(people: npt.NDArray[Any] | None) -> str:
    """SHA-256 of the persons of all rows, in their order."""
    return sha256(repr(None if people is None else people.tolist()).encode()).hexdigest()


def count_rows(part: Part) -> int:
    """Rows of a part that count; all are read."""
    return _ALONE.counts([part])[0]


def read_batches(part: Part) -> list[Batch]:
    """All rows of a part that count."""
    return list(part.batches())


def fold_part(part: Part, schema: Schema, task: Task, question: bytes, fold: Fold[Any], numbers: int) -> Any:
    """Join what a task makes of the batches of a part."""
    with np.errstate(all="ignore"):
        return _ALONE.fold([part], schema, task.function(question), fold, numbers)


def join_results(fold: Fold[Any], *results: Any) -> Any:
    """Join results of several parts."""
    joined = copy.deepcopy(results[0])  # others may read it, too
    for more in results[1:]:
        joined = fold.join(joined, more)
    return joined


def prepare_part(part: Part, schema: Schema, task: Task, question: bytes) -> list[Any]:
    """What a task makes of each batch of a part."""
    with np.errstate(all="ignore"):
        return list(_ALONE.prepare([part], schema, task.function(question)))


def fold_prepared_part(prepared: list[Any], task: Task, question: bytes, fold: Fold[Any]) -> Any:
    """Join what a task makes of what was prepared of a part."""
    with np.errstate(all="ignore"):
        return _ALONE.fold_prepared(prepared, task.function(question), fold)


def map_prepared_part(prepared: list[Any], task: Task, question: bytes) -> list[Any]:
    """What a task makes of each."""
    with np.errstate(all="ignore"):
        return list(_ALONE.map_prepared(prepared, task.function(question)))


__all__ = ["JOINED", "PATIENCE", "Cluster", "QuestionFile", "Task", "read_question"]
