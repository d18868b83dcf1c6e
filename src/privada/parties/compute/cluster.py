"""Answers on a cluster of the owner's own: parts stay on its workers, integer totals come back.

What travels to a worker is the address of a part (files and row groups), the name of a function that is
installed there, and the question's file. Results are joined on the workers, sixteen at a time. A lost worker
is the scheduler's business: it computes again what was there, with the same bits. The loss of the scheduler
or of all workers is an `OutageError`; the next use connects anew and brings the parts to the workers again.

The cluster is inside the owner's wall: who reaches its scheduler can run anything on it. So it is reached by
TLS with certificates on both sides; an unprotected one only on this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy.typing as npt

from privada._arrays import BoolArray
from privada._extras import require
from privada.exceptions import AnswerError, InputError, OutageError, PrivadaError
from privada.parties.compute import worker
from privada.parties.compute.batch import Batch, Part
from privada.parties.compute.engine import Handles
from privada.parties.compute.folds import Fold, Merging
from privada.parties.compute.tasks import Task
from privada.parties.schema import Schema
from privada.parties.sources import Source
from privada.parties.sources.memory import Collection

T = TypeVar("T")
JOINED = 16  # results that a worker joins at once
CONNECT_SECONDS = 5.0  # for which a scheduler is tried before it counts as away
PATIENCE = 60.0  # seconds for which a cluster is waited for of which no worker works
_HERE = {"127.0.0.1", "localhost", "::1"}


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
        if parts.scheme == "tls" and not all(each and Path(each).is_file() for each in files):
            raise InputError("A scheduler by tls:// needs the files ca, certificate and key.")

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
        self.__dict__.pop("_held", None)
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
        from privada import __version__

        if "_client" in self.__dict__ and self._client.status != "running":
            self.close()
        with self._noticing_loss("does not answer"):
            try:
                versions = set(self._client.run(worker.tell_versions).values())
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
            with self._noticing_loss("takes no work"):
                frames = self._client.compute([part.delayed for part in source.partitions()])
            return [self._submit(worker.open_frame, frame, schema) for frame in frames]
        return [self._submit(worker.hold, Part(part, schema)) for part in source.addresses()]

    def narrow(self, parts: Handles, masks: Sequence[BoolArray]) -> Handles:
        """See `Engine`."""
        return [self._submit(worker.narrow, part, mask) for part, mask in zip(parts, masks, strict=True)]

    def select(self, parts: Handles, names: tuple[str, ...]) -> Handles:
        """See `Engine`."""
        return [self._submit(worker.select, part, names) for part in parts]

    def remember(self, parts: Handles, name: str) -> tuple[Handles, list[npt.NDArray[Any]]]:
        """See `Engine`."""
        held = [self._submit(worker.remember_column, part, name) for part in parts]
        people = self._results([self._submit(worker.people_of, part) for part in held])
        digests = map(worker.digest_people, people)
        checked = zip(held, digests, strict=True)
        return [self._submit(worker.check_people, part, digest) for part, digest in checked], people

    def counts(self, parts: Handles) -> list[int]:
        """See `Engine`."""
        return self._results([self._submit(worker.count, part) for part in parts])

    def batches(self, parts: Handles) -> Iterator[Batch]:
        """See `Engine`."""
        for part in parts:
            yield from self._results([self._submit(worker.read, part)])[0]

    def fold(
        self, parts: Handles, schema: Schema, make: Callable[[Batch], T], fold: Fold[T], numbers: int
    ) -> T:
        """See `Engine`."""
        task, question = self._described(make, fold)
        return self._joined(
            [self._submit(worker.fold, part, schema, task, question, fold, numbers) for part in parts], fold
        )

    def prepare(self, parts: Handles, schema: Schema, make: Callable[[Batch], Any]) -> Handles:
        """See `Engine`."""
        task, question = self._described(make)
        return [self._submit(worker.prepare, part, schema, task, question) for part in parts]

    def fold_prepared(self, prepared: Handles, make: Callable[[Any], T], fold: Fold[T]) -> T:
        """See `Engine`."""
        task, question = self._described(make, fold)
        return self._joined(
            [self._submit(worker.fold_prepared, part, task, question, fold) for part in prepared], fold
        )

    def map_prepared(self, prepared: Handles, make: Callable[[Any], Any]) -> Handles:
        """See `Engine`."""
        task, question = self._described(make)
        return [self._submit(worker.map_prepared, part, task, question) for part in prepared]

    def _described(self, make: Callable[[Any], Any], fold: Fold[Any] | None = None) -> tuple[Task, Any]:
        """A task without its question, and the question's file, which a worker gets once."""
        if isinstance(fold, Merging):
            Task.of(fold.merge)
        task = Task.of(make)
        return task.without_question(), self._hold_question(task.question)

    def _hold_question(self, question: bytes) -> Any:
        """The question's file on the workers; the last one is kept, for an answer of many steps.

        Its key is new each time: Dask may lose a task whose key was released just before.
        """
        digest = sha256(question).hexdigest()
        found = self._held.get(digest)
        if found is None or found.status not in ("pending", "finished"):
            found = self._submit(worker.hold, question)
            self._held.clear()
            self._held[digest] = found
        return found

    @cached_property
    def _held(self) -> dict[str, Any]:
        return {}

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        with self._noticing_loss("takes no work"):
            return self._client.submit(function, *arguments, pure=False)

    def _joined(self, results: Handles, fold: Fold[T]) -> T:
        while len(results) > 1:
            groups = [results[at : at + JOINED] for at in range(0, len(results), JOINED)]
            results = [self._submit(worker.join, fold, *group) for group in groups]
        return self._results(results)[0]

    def _results(self, futures: Handles) -> list[Any]:
        """What workers computed.

        An error of a task is raised here: as it is, or an `AnswerError` if privada did not raise it. Where no
        task failed, the cluster was lost on the way.
        """
        with self._noticing_loss("was lost on the way"):
            self._wait(futures)
            for future in futures:
                if future.status == "error":
                    self._raise_error_of(future)
            return list(self._client.gather(list(futures)))

    def _raise_error_of(self, future: Any) -> None:
        """Raise the error of a task. One that lost several workers in a row is an outage."""
        from distributed.scheduler import KilledWorker

        error = future.exception()
        if isinstance(error, (PrivadaError, KilledWorker)):
            raise error
        raise AnswerError(f"The cluster could not finish: {type(error).__name__}.")

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
                idle = 0.0 if any(self._client.processing().values()) else idle + PATIENCE / 12
            if idle >= PATIENCE:
                self._client.cancel(list(futures))
                raise OutageError(
                    "The cluster could not finish: no worker is left, or none works on it.", part="cluster"
                )


__all__ = ["JOINED", "PATIENCE", "Cluster"]
