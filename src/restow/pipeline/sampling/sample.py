"""The report of one sample."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from restow._frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

GAPS_TOLD = 20


@frozen
class Missing:
    """The tables that one broker did not answer for. Broker -1 is the whole cluster."""

    broker: int
    reason: str


@frozen
class Sample:
    """The result of one sample. It lists at most `GAPS_TOLD` gaps."""

    number: int
    at_ms: int | None
    brokers: int
    rows: Mapping[str, int]
    gaps: tuple[Missing, ...]
    gap_count: int

    @property
    def at(self) -> str | None:
        if self.at_ms is None:
            return None
        return datetime.fromtimestamp(self.at_ms / 1000, UTC).isoformat(timespec="milliseconds")

    def document(self) -> dict[str, object]:
        return {
            "sample": self.number,
            "at": self.at,
            "brokers": self.brokers,
            "rows": dict(self.rows),
            "gaps": [{"broker": gap.broker, "reason": gap.reason} for gap in self.gaps],
            "gap_count": self.gap_count,
        }


def sample_from(document: Mapping[str, Any]) -> Sample:
    """Return the sample from the output of `Sample.document`."""
    at = document["at"]
    return Sample(
        number=int(document["sample"]),
        at_ms=None if at is None else round(datetime.fromisoformat(at).timestamp() * 1000),
        brokers=int(document["brokers"]),
        rows={str(name): int(count) for name, count in document["rows"].items()},
        gaps=tuple(
            Missing(broker=int(each["broker"]), reason=str(each["reason"])) for each in document["gaps"]
        ),
        gap_count=int(document["gap_count"]),
    )
