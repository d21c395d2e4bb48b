"""Keep what the jobs make current: compute anew only what new samples change.

    files of samples ─► beside the record ─► since when? ─► rates from then on ─┐
                         (record.py)         (since.py)     (keeper.py)         │ one commit (commit.py)
    rates, hours, turns, commits, record  ◄─────────────────────────────────────┘

The record names every file of samples that the rates are made of, and lies beside them. So there is no state
that could differ from the tables: what is not in the record is new, however late it comes. A round that is
killed before its commit has changed nothing; one that is killed in its commit is finished by the next one.
"""

from __future__ import annotations

from restow.pipeline.keeping.keeper import Keeper, KeeperRound, KeptSums

__all__ = ["Keeper", "KeeperRound", "KeptSums"]
