"""Who is told to be the controller of a cluster that has a quorum, or none."""

from __future__ import annotations

import asyncio

import pytest

from restow.client import BrokerError, Quorum
from restow.snapshot import capture
from restow.wire.error_codes import ErrorCode
from tests.unit.execute.fake_admin import FakeAdmin, FakeClock


@pytest.mark.parametrize(
    ("told", "controller"),
    [
        (None, 1),
        (Quorum(leader=100, voters=(100, 101)), 100),
        (Quorum(leader=None, voters=(100, 101)), None),
        (BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), 1),
    ],
)
def test_the_leader_of_the_quorum_if_there_is_one_and_it_may_be_known(
    told: Quorum | BrokerError | None, controller: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    admin = FakeAdmin(clock, {1, 2})

    async def quorum() -> Quorum | None:
        if isinstance(told, BrokerError):
            raise told
        return told

    monkeypatch.setattr(admin, "quorum", quorum)
    assert asyncio.run(capture(admin, clock)).controller == controller
