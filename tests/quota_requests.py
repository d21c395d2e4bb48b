"""Requests about quotas of clients. An entity is written `{"user": "alice", "client-id": None}`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from restow.wire.messages import AlterClientQuotasRequest, DescribeClientQuotasRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

EXACT, DEFAULT, ANY = range(3)
Shown = dict[tuple[tuple[str, str | None], ...], dict[str, float]]


def alteration(
    *changes: tuple[Mapping[str, str | None], Mapping[str, float | None]], only_check: bool = False
) -> Any:
    """Return a request that sets quotas, or removes those whose value is None."""
    entry = AlterClientQuotasRequest.EntryData
    return AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type=kind, entity_name=name) for kind, name in who.items()],
                ops=[
                    entry.OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in quotas.items()
                ],
            )
            for who, quotas in changes
        ],
        validate_only=only_check,
    )


def question(*components: tuple[str, int, str | None], strict: bool = False) -> Any:
    """Return a request for the quotas that match: type, kind of match and name of each component."""
    made = DescribeClientQuotasRequest.ComponentData
    return DescribeClientQuotasRequest(
        components=[made(entity_type=kind, match_type=how, match=name) for kind, how, name in components],
        strict=strict,
    )


def shown(answer: Any) -> Shown:
    """Return the quotas in an answer by entity, in an order of their own."""
    return {
        tuple(sorted((part.entity_type, part.entity_name) for part in each.entity)): {
            value.key: value.value for value in each.values
        }
        for each in answer.entries or ()
    }
