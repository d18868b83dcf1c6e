"""A real Dask cluster for tests: a scheduler and two worker processes on this machine, reached by TLS."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from privada.parties.compute.cluster import Cluster


@contextmanager
def running_cluster(folder: Path, *, workers: int = 2) -> Iterator[tuple[Cluster, Any]]:
    """The cluster as an owner reaches it, and Dask's own handle of it."""
    import dask
    from distributed import LocalCluster, Security

    made = Security.temporary()
    files = {"ca": made.tls_ca_file, "certificate": made.tls_client_cert, "key": made.tls_client_key}
    for name, text in files.items():
        (folder / f"{name}.pem").write_text(text)
    with warnings.catch_warnings(), dask.config.set({"distributed.worker.daemon": True}):
        warnings.simplefilter("ignore")
        with LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            protocol="tls://",
            security=made,
            dashboard_address=None,
            silence_logs="CRITICAL",
        ) as running:
            paths = {name: folder / f"{name}.pem" for name in files}
            cluster = Cluster(running.scheduler_address, **paths)
            try:
                yield cluster, running
            finally:
                cluster.close()
