"""Check whether a broker may be stopped for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.model import Check, Verdict
from restow.sizes import some
from restow.verify.evidence import fails, holds, none_of, unknown

if TYPE_CHECKING:
    from restow.model import BrokerId, Partition, Snapshot, TopicPartition

COORDINATED = {
    "__consumer_offsets": "consumer groups",
    "__transaction_state": "transactions",
    "__share_group_state": "share groups",
}
"""Internal topics whose partition leaders coordinate the ids that hash to them."""


_UNREPORTED = (
    "Kafka reports no folders named …-stray or …-delete, so look for them before you reuse its disks"
)
"""A broker that was down while its replicas moved away keeps their logs as strays."""


def broker_check(
    snapshot: Snapshot, broker: BrokerId, *, voters: tuple[BrokerId, ...] | None = None
) -> Verdict:
    """Check one broker. `voters` are those of the metadata quorum: with one, no broker is the controller."""
    here = [(which, each) for which, each in snapshot.all_partitions() if broker in each.replicas]
    leads = [str(which) for which, each in snapshot.all_partitions() if each.leader == broker]
    advice = f"let others lead: restow plan demote {broker}, or move all away: restow plan drain {broker}"
    return Verdict(
        subject=f"broker {broker} may be stopped for good",
        checks=(
            _known(snapshot, broker, bool(here)),
            _all_seen(snapshot),
            _replicas(snapshot, broker, here),
            none_of("no leaders", leads, "partition", good="it leads none", advice=advice),
            _moves(snapshot, broker),
            _coordinates(snapshot, broker),
            _on_disk(snapshot, broker),
            _controls(snapshot, broker, voters),
            _others_are_well(snapshot, broker),
        ),
    )


def _replicas(snapshot: Snapshot, broker: BrokerId, here: list[tuple[TopicPartition, Partition]]) -> Check:
    """Check which replicas a plan could move away, and why it could not move the others."""
    told, stuck = [], []
    free = False
    for which, partition in here:
        if partition.moving:
            told.append(f"{which} (being moved)")
        elif partition.leader is None:
            down = [each for each in partition.replicas if each not in snapshot.broker]
            stuck.append(which)
            alone = "its only replica" if len(partition.replicas) == 1 else f"no leader; down: {some(down)}"
            told.append(f"{which} ({alone})")
        else:
            free = True
            told.append(str(which))
    advice = [f"move them away: restow plan drain {broker}"] if free else []
    if stuck:
        missing = sorted(
            {each for _, partition in here if partition.leader is None for each in partition.replicas}
            - snapshot.broker.keys()
        )
        advice.append(
            f"nothing can be copied of {some(stuck)} while they have no leader: start broker "
            f"{some(missing) or broker} and drain again, or delete their topics if they are lost"
        )
    if any(partition.moving for _, partition in here):
        advice.append("what is being moved has to end first: restow watch")
    told.sort(key=lambda words: "(" not in words)
    return none_of("no replicas", told, "replica", good="none is assigned to it", advice="; ".join(advice))


def _moves(snapshot: Snapshot, broker: BrokerId) -> Check:
    """Check for moves to a dead broker, which never complete by themselves."""
    moving = [
        (which, each)
        for which, each in snapshot.all_partitions()
        if each.moving and _takes_part(each, broker)
    ]
    waiting = {
        which: down
        for which, each in moving
        if (down := sorted({*each.adding} - snapshot.broker.keys())) or each.leader is None
    }
    told = [
        str(which)
        + (f" (waits for broker {some(waiting[which])}, which is down)" if waiting.get(which) else "")
        for which, _ in moving
    ]
    brokers = sorted({each for down in waiting.values() for each in down})
    advice = "wait until they are over: restow watch"
    if brokers:
        advice = f"start broker {some(brokers)}, or take these moves back (restow cancel)"
    elif waiting:
        advice = "they cannot end without a leader: start the brokers that have these partitions"
    return none_of("no moves", told, "move", good="none comes from it or goes to it", advice=advice)


def _takes_part(partition: Partition, broker: BrokerId) -> bool:
    return broker in partition.replicas or broker in partition.adding or broker in partition.removing


def _all_seen(snapshot: Snapshot) -> Check:
    """Check that all topics are visible: hidden ones may have replicas anywhere."""
    return none_of(
        "every topic seen",
        snapshot.hidden_topics,
        "topic",
        good="none is hidden from us",
        advice="ask as somebody who may describe them: restow acls broker-check",
    )


def _known(snapshot: Snapshot, broker: BrokerId, has_replicas: bool) -> Check:
    """Check that the broker exists: an id that no replica names is likely a typing error."""
    if broker in snapshot.broker:
        return holds("known", "it is up")
    if has_replicas:
        return holds("known", "it is down, and has replicas")
    there = some(sorted(snapshot.broker))
    return unknown(
        "known",
        f"no broker of this number is up or has replicas; there are {there}",
        "check the number; if it was stopped already, nothing is left to do",
    )


def _coordinates(snapshot: Snapshot, broker: BrokerId) -> Check:
    led = [
        f"{topic}-{each.number} ({what})"
        for topic, what in COORDINATED.items()
        if topic in snapshot.topic
        for each in snapshot.topic[topic].partitions
        if each.leader == broker
    ]
    return none_of(
        "no coordinator",
        led,
        "partition",
        good="it coordinates no groups and no transactions",
        advice="their partitions have to be led by others first",
    )


def _on_disk(snapshot: Snapshot, broker: BrokerId) -> Check:
    """Check for unassigned replicas on disk: they are about to be deleted, or were left behind."""
    name = "no logs left"
    if broker not in snapshot.broker:
        return unknown(
            name,
            "it is down, so nobody can tell what is in its log dirs",
            "nothing has to be done, unless it is to be started again",
        )
    if broker in snapshot.unanswered:
        return unknown(name, "it does not tell what is in its log dirs", "see whether it hangs")
    left = [
        f"{which} in {copy.log_dir}"
        for which, each in snapshot.all_partitions()
        for copy in each.copies
        if copy.broker == broker and broker not in each.replicas
    ]
    return none_of(
        name,
        left,
        "copy",
        good=f"every log that it reports is a replica; {_UNREPORTED}",
        advice="wait a minute: brokers delete what they need not keep; if it stays, look with restow doctor",
    )


def _controls(snapshot: Snapshot, broker: BrokerId, voters: tuple[BrokerId, ...] | None) -> Check:
    name = "not the controller"
    if voters is not None:
        if broker not in voters:
            evidence = f"the metadata quorum is {some(voters)}"
            return holds(name, evidence)
        return fails(
            name,
            f"it is a voter of the metadata quorum ({some(voters)})",
            "take it out of the quorum first: kafka-metadata-quorum remove-controller. Kafka refuses that "
            "for a static quorum (controller.quorum.voters, kraft.version 0): its voters cannot be removed, "
            "so this broker has to stay, or the quorum has to be made dynamic",
        )
    if snapshot.controller is None:
        return unknown(
            name,
            "the cluster names no controller",
            "ask again when one was elected, as somebody who may describe the cluster",
        )
    if snapshot.controller == broker:
        return fails(
            name,
            "it is the controller",
            "another one takes over when it is stopped in order; do that when nothing is being moved",
        )
    return holds(name, f"that is broker {snapshot.controller}")


def _others_are_well(snapshot: Snapshot, broker: BrokerId) -> Check:
    """Check that no partition depends on this broker because another replica is out of sync."""
    behind = {
        which: missing
        for which, each in snapshot.all_partitions()
        if broker in each.replicas and (missing := {*each.replicas} - {*each.isr} - {broker})
    }
    down = sorted({each for missing in behind.values() for each in missing} - snapshot.broker.keys())
    return none_of(
        "nobody counts on it",
        list(behind),
        "partition",
        good="no other replica of what it has is behind",
        advice=f"start broker {some(down)}, or replace it" if down else "wait until all replicas are in sync",
    )
