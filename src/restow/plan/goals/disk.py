"""Bytes on disk, by the size of a broker's file systems. The first goal always: it is what moving costs."""

from __future__ import annotations

from restow.plan.goals.base import Columns, Facts, Goal


def _columns(facts: Facts) -> Columns:
    return Columns(leading=facts.size_bytes, following=facts.size_bytes, strength=facts.disk_bytes)


DISK = Goal(name="disk", unit="B", columns=_columns)
