"""A link to a cluster of which one broker has died or hangs, in virtual time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from restow.client import BrokerError, KafkaAdmin, Unreachable
from restow.client.link import Link
from restow.client.values import ConfigResource
from restow.sim.loop import run as run_in_virtual_time
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import DescribeConfigsRequest, DescribeLogDirsRequest, MetadataRequest

if TYPE_CHECKING:
    from restow.wire.messages import Message

TIMEOUT_S = 30.0


class Transport:
    """Brokers 1 to 4. Dead ones refuse the connection, hung ones answer nothing."""

    def __init__(self, controller: int, dead: set[int] = frozenset(), hung: set[int] = frozenset()) -> None:
        self.brokers = (1, 2, 3, 4)
        self.controllers, self.dead, self.hung = [controller], set(dead), set(hung)
        self.asked: list[tuple[str, int]] = []

    async def ask(self, request: Message, broker: int | None, timeout_s: float) -> Any:
        broker = self.brokers[0] if broker is None else broker
        self.asked.append((type(request).__name__, broker))
        if broker in self.hung:
            await asyncio.sleep(timeout_s)
            raise Unreachable(f"broker {broker} does not answer")
        if broker in self.dead:
            error = Unreachable(f"broker {broker} refuses")
            error.retriable = error.down = True
            raise error
        if isinstance(request, MetadataRequest):
            controller = self.controllers.pop(0) if len(self.controllers) > 1 else self.controllers[0]
            return SimpleNamespace(controller_id=controller)
        if isinstance(request, DescribeLogDirsRequest):
            return SimpleNamespace(error_code=0, results=[_log_dir()])
        if isinstance(request, DescribeConfigsRequest):
            told = [
                SimpleNamespace(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    error_code=0,
                    error_message=None,
                    configs=[],
                )
                for each in request.resources
            ]
            return SimpleNamespace(results=told)
        return SimpleNamespace(error_code=0, error_message=None, topics=[], broker=broker)

    def reluctance(self, broker: int) -> tuple[bool, bool]:
        return False, False

    async def another(self) -> Transport:
        return self

    async def close(self) -> None:
        return


def _log_dir() -> SimpleNamespace:
    return SimpleNamespace(
        log_dir="/d", total_bytes=10, usable_bytes=5, error_code=0, is_cordoned=False, topics=[]
    )


def test_moves_are_listed_by_another_broker_if_the_one_asked_has_died() -> None:
    async def main() -> float:
        transport = Transport(1)
        admin = KafkaAdmin(Link(transport, TIMEOUT_S))
        await admin.list_partition_reassignments()
        transport.dead, transport.controllers = {1}, [2]
        began_s = asyncio.get_running_loop().time()
        assert await admin.list_partition_reassignments() == {}
        return asyncio.get_running_loop().time() - began_s

    assert run_in_virtual_time(main()) < 2.0


def test_configs_of_other_brokers_are_told_without_waiting_for_one_that_hangs() -> None:
    async def main() -> float:
        admin = KafkaAdmin(Link(Transport(1, hung={3}), TIMEOUT_S))
        began_s = asyncio.get_running_loop().time()
        asked = [ConfigResource("broker", str(each)) for each in (1, 2, 3, 4)]
        told = await admin.describe_configs(asked, {"leader.replication.throttled.rate"}, patience_s=1.0)
        late = told[asked[2]]
        assert isinstance(late, BrokerError)
        assert late.code is ErrorCode.BROKER_NOT_AVAILABLE
        assert [told[each] for each in asked if each.name != "3"] == [{}, {}, {}]
        return asyncio.get_running_loop().time() - began_s

    assert run_in_virtual_time(main()) == 1.0


def test_moves_are_listed_by_another_broker_if_the_one_asked_hangs() -> None:
    async def main() -> float:
        transport = Transport(1, hung={1})
        transport.controllers = [1, 2]
        admin = KafkaAdmin(Link(transport, TIMEOUT_S))
        assert await admin.list_partition_reassignments() == {}
        took_s = asyncio.get_running_loop().time()
        assert await admin.list_partition_reassignments() == {}  # from broker 2 at once
        assert asyncio.get_running_loop().time() == took_s
        return took_s

    assert run_in_virtual_time(main()) < 4.0


def test_dead_controller_without_successor_is_asked_until_the_timeout() -> None:
    async def main() -> float:
        admin = KafkaAdmin(Link(Transport(1, dead={1}), TIMEOUT_S))
        with pytest.raises(Unreachable, match="broker 1 refuses"):
            await admin.list_partition_reassignments()
        return asyncio.get_running_loop().time()

    assert TIMEOUT_S <= run_in_virtual_time(main()) < TIMEOUT_S + 10


@pytest.mark.parametrize(("trouble", "at_most_s"), [("dead", 1.0), ("hung", 2.5)])
def test_log_dirs_of_the_others_are_told_without_waiting(trouble: str, at_most_s: float) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        admin = KafkaAdmin(Link(Transport(1, **{trouble: {3}}), TIMEOUT_S))
        for _ in range(2):
            began_s = loop.time()
            told = await admin.describe_log_dirs([1, 2, 3, 4], 2.0)
            assert loop.time() - began_s <= at_most_s
            late = told[3]
            assert isinstance(late, BrokerError)
            assert late.code is ErrorCode.BROKER_NOT_AVAILABLE
            assert not any(isinstance(told[broker], BrokerError) for broker in (1, 2, 4))
        if trouble == "hung":
            assert set(admin.unanswered) == {3}
            assert admin.unanswered[3] >= 2.0
        await admin.close()

    run_in_virtual_time(main())


def test_metadata_is_asked_for_again_while_all_brokers_restart() -> None:
    async def main() -> None:
        transport = Transport(1, dead={1, 2, 3, 4})
        admin = KafkaAdmin(Link(transport, TIMEOUT_S))
        asking = asyncio.create_task(admin.list_partition_reassignments())
        await asyncio.sleep(3.0)
        assert not asking.done()
        transport.dead = set()
        assert await asking == {}

    run_in_virtual_time(main())
