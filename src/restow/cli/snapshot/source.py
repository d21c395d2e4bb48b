"""Where a command's snapshot comes from: a cluster or a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.shared.connection import OptionalBootstrap, on_cluster
from restow.cli.shared.frame import warn
from restow.cli.shared.options import section
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from restow.model import Snapshot

INPUT = "Input"


@section()
class SnapshotSource:
    """A cluster or a file. The file overrides, because the cluster's address may be from the environment."""

    bootstrap: OptionalBootstrap = None
    snapshot: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Plan from a file of `restow snapshot` instead.", rich_help_panel=INPUT
        ),
    ] = None

    @property
    def address(self) -> str | None:
        """Return where the cluster is; None for a file."""
        return None if self.snapshot is not None else self.bootstrap

    def read(self) -> Snapshot:
        """Return the snapshot, and warn about the parts that it could not read."""
        from restow.cli.shared.unseen import unseen

        found = self._read()
        for each in unseen(found):
            warn(each)
        return found

    def _read(self) -> Snapshot:
        if self.snapshot is not None:
            from restow.snapshot import read_snapshot

            return read_snapshot(self.snapshot)
        if self.bootstrap is None:
            raise InvalidInput("say where the cluster is: --bootstrap-server HOST:PORT, or --snapshot FILE")
        from restow.runtime.clock import SystemClock
        from restow.snapshot import capture_with_groups

        return on_cluster(self.bootstrap, lambda admin: capture_with_groups(admin, SystemClock()))
