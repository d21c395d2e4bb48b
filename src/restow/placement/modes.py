"""Whether placement considers racks."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from restow.errors import InvalidInput, RackInformationMissing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.model import Broker


class RackMode(StrEnum):
    """How placement treats racks. In every mode racks are ignored if no broker has one."""

    ENFORCED = "enforced"
    """Racks count, and it is an error if only some brokers have one."""
    SAFE = "safe"
    """Racks count if every broker has one; otherwise they are ignored."""
    DISABLED = "disabled"
    """Racks are ignored."""

    @classmethod
    def of(cls, name: str) -> RackMode:
        """Return the mode of that name, or raise an error that lists all names."""
        try:
            return cls(name)
        except ValueError:
            raise InvalidInput(f"There is no rack mode {name!r}; use one of {', '.join(cls)}.") from None


def looks_at_racks(brokers: Sequence[Broker], mode: RackMode) -> bool:
    """Return whether to place by rack: every broker has one, and the mode allows it."""
    if mode is RackMode.DISABLED:
        return False
    without = [broker.id for broker in brokers if broker.rack is None]
    if without and len(without) < len(brokers) and mode is RackMode.ENFORCED:
        shown = ", ".join(map(str, without[:5])) + (", …" if len(without) > 5 else "")
        raise RackInformationMissing(
            f"{len(without)} of {len(brokers)} brokers have no rack ({shown}) while the others have one. "
            "Give every broker a rack, or ignore racks with --disable-rack-aware (rack_mode='disabled')."
        )
    return not without
