"""Whether placement looks at racks."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from restow.errors import InvalidInput, RackInformationMissing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.model import Broker


class RackMode(StrEnum):
    """What to make of the brokers' racks. Under none of them do racks matter if no broker has one."""

    ENFORCED = "enforced"
    """Racks count, and brokers of which only some have one are an error."""
    SAFE = "safe"
    """Racks count if every broker has one; otherwise they are ignored."""
    DISABLED = "disabled"
    """Racks are ignored."""

    @classmethod
    def of(cls, name: str) -> RackMode:
        """The mode of that name, or an error that lists the names there are."""
        try:
            return cls(name)
        except ValueError:
            raise InvalidInput(f"There is no rack mode {name!r}; use one of {', '.join(cls)}.") from None


def looks_at_racks(brokers: Sequence[Broker], mode: RackMode) -> bool:
    """Whether to place by rack, which takes a rack on every broker and a mode that cares."""
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
