"""A broker as placement sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from restow.model.ids import BrokerId, Rack


@dataclass(frozen=True, slots=True)
class Broker:
    """An id, and the rack if it is known."""

    id: BrokerId
    rack: Rack | None = None
