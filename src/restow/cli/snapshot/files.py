"""Get a command's snapshot from a cluster or from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.errors import InvalidInput

if TYPE_CHECKING:
    from restow.model import Snapshot


def snapshot_from(bootstrap: str | None, path: str | None) -> Snapshot:
    """Return the snapshot, and warn about the parts that it could not read.

    A file overrides a cluster, because the cluster's address may come from the environment.
    """
    from restow.cli.cluster.status_view import unseen
    from restow.cli.shared.frame import warn

    found = _snapshot(bootstrap, path)
    for each in unseen(found):
        warn(each)
    return found


def _snapshot(bootstrap: str | None, path: str | None) -> Snapshot:
    if path is not None:
        from restow.snapshot import read_snapshot

        return read_snapshot(path)
    if bootstrap is None:
        raise InvalidInput("say where the cluster is: --bootstrap-server HOST:PORT, or --snapshot FILE")
    from restow.cli.shared.connection import on_cluster
    from restow.runtime.clock import SystemClock
    from restow.snapshot import capture

    return on_cluster(bootstrap, lambda admin: capture(admin, SystemClock()))
