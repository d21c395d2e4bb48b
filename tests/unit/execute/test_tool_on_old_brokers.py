"""`--disallow-replication-factor-change` where a broker cannot check it: refused before any request."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from restow.kafka_tool import parse_arguments, run_tool
from tests.unit.execute.fake_admin import FakeAdmin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from tests.unit.execute.stage import Stage

ALTER_REASSIGNMENTS = 45
MOVES = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 3]}]}


class OneIsOld(FakeAdmin):
    """Broker 4 has the first version of the request, without the flag."""

    async def api_versions(self, broker: int) -> Mapping[int, tuple[int, int]]:
        return {ALTER_REASSIGNMENTS: (0, 0 if broker == 4 else 1)}


def asked(admin: FakeAdmin, *flags: str) -> tuple[int, str]:
    @asynccontextmanager
    async def connect() -> AsyncIterator[FakeAdmin]:
        yield admin

    said: list[str] = []
    given = ["--bootstrap-server", "h:1", "--execute", "--reassignment-json-file", "f.json", *flags]
    code = asyncio.run(
        run_tool(
            parse_arguments(given),
            connect,
            read=lambda _: json.dumps(MOVES),
            say=said.append,
            clock=admin.clock,  # type: ignore[arg-type]
        )
    )
    return code, "\n".join(said)


@pytest.fixture
def admin(stage: Stage) -> OneIsOld:
    old = OneIsOld(stage.clock, stage.admin.brokers)
    old.add("t", [(1, 2)])
    return old


def test_flag_is_refused_with_advice_on_old_brokers_and_nothing_is_sent(admin: OneIsOld) -> None:
    code, said = asked(admin, "--disallow-replication-factor-change", "--throttle", "1000")
    assert code == 1
    assert "broker 4 cannot check that replication factors stay as they are" in said
    assert "upgrade the broker" in said
    assert admin.calls == []
    assert admin.set_ == {}


def test_tool_works_on_old_brokers_without_the_flag(admin: OneIsOld) -> None:
    code, said = asked(admin)
    assert code == 0, said
    assert [kind for kind, _ in admin.calls] == ["reassign"]
