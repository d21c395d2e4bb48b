"""Plans on live clusters do what their titles say, and verify lists what they leave behind."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from harness.brokers import wait_for
from restow.client import ConfigResource, ConnectionSettings, NewTopic, connected
from tests.apache.test_dead_broker import Operator, hushed, ours, todays
from tests.apache.traffic import ANY_FILL, WAIT_S, load
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["hushed"]

TOPICS = {"t": ((0, 1), (1, 0), (0, 2), (2, 1)), "alone": ((2,),)}
"""By index in the list of brokers. The last broker has nothing."""
BOTH = ("--topics", "t,alone")
BYTES_EACH = 200_000


def prepared(bootstrap: str, ids: tuple[int, ...], cordoned: int) -> None:
    """Create the topics, and cordon all log dirs of one broker."""

    async def main() -> None:
        async with connected(ConnectionSettings(bootstrap=bootstrap)) as admin:
            wanted = [
                NewTopic(
                    name=name,
                    by_hand={number: tuple(ids[at] for at in row) for number, row in enumerate(rows)},
                )
                for name, rows in TOPICS.items()
            ]
            assert await admin.create_topics(wanted) == dict.fromkeys(TOPICS)
            of = ConfigResource("broker", str(cordoned))
            assert await admin.incremental_alter_configs({of: {"cordoned.log.dirs": "*"}}) == {of: None}

    asyncio.run(main())


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param(ours, id="embedded"),
        pytest.param(todays, id="4.3.1", marks=[pytest.mark.apache, pytest.mark.full]),
    ],
)
def test_plans_keep_their_promises_on_a_live_cluster(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:
        with needs_kafka():
            bootstrap, ids, kill = stack.enter_context(cluster(tmp_path / "cluster"))
        one, two, three, spare = ids
        prepared(bootstrap, ids, cordoned=one)
        for name, rows in TOPICS.items():
            load(bootstrap, name, len(rows), BYTES_EACH)
        operator = Operator(bootstrap, tmp_path, capsys)

        def leaders() -> list[int]:
            return [each["leader"] for each in operator.types("topics", "describe", "t")["partitions"]]

        def says_cordoned() -> bool:
            told = operator.types("plan", "balance", *BOTH)
            return any(f"broker {one} is cordoned" in each["text"] for each in told["notes"])

        wait_for("the cordon is known", says_cordoned, WAIT_S)

        before = [set(row) for row in operator.replicas("t")]
        operator.carries_out("demote", str(one), *BOTH)
        assert one not in leaders()
        assert [set(row) for row in operator.replicas("t")] == before

        rows = operator.replicas("t")
        operator.carries_out("replace", f"{two}:{spare}", *BOTH)
        assert operator.replicas("t") == [[spare if each == two else each for each in row] for row in rows]

        kill(three)
        wait_for("its death is known", lambda: "offline" in operator.findings(), WAIT_S)
        plan = tmp_path / "rest.json"
        drain = ("plan", "drain", str(three), *BOTH, *ANY_FILL, "-o", str(plan))
        code, told = operator.asks(*drain)
        assert code == 3
        assert [each["partition"] for each in told["leaves"]] == ["alone-0"]
        assert f"its only replica is on broker {three}, which is down" in told["leaves"][0]["why"]
        assert not plan.exists()
        operator.types(*drain, "--partial")
        journal = ("--journal", str(tmp_path / "state"))
        execute = ("execute", str(plan), "--yes", "--throttle", "none", *journal)
        assert operator.asks(*execute)[0] == 2
        assert operator.types(*execute, "--partial")["outcome"] == "done"
        added = {each for row in operator.replicas("t") for each in row} - {three}
        assert added <= {two, spare, one}
        wanted = json.loads(plan.read_text(encoding="utf-8"))["moves"]
        assert wanted
        assert all(one not in {*move["after"]} - {*move["before"]} for move in wanted)

        def left() -> list[str]:
            _, verdict = operator.asks("verify", str(plan), *journal)
            return [each["evidence"] for each in verdict["checks"] if each["outcome"] != "holds"]

        wait_for("only what was left out is missing", lambda: len(left()) == 1, WAIT_S)
        assert left()[0].startswith(f"1 partition: alone-0 on broker {three} (the plan left it out: ")
        _, verdict = operator.asks("broker-check", str(three))
        advice = next(each["advice"] for each in verdict["checks"] if each["name"] == "no replicas")
        assert f"start broker {three} and drain again" in advice
