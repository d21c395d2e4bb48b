"""Requests of consumer groups to one cluster, and what it has answered, by names that do not differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from restow.wire import messages
from restow.wire.error_codes import ErrorCode
from tests.clients.embedded import wait_until

if TYPE_CHECKING:
    from uuid import UUID

    from tests.apache.raw_client import RawClient

TOPICS = {"t": 6, "u.one": 2, "u.two": 1}


class Talk:
    """One cluster, the ids of its topics, and what it has answered."""

    def __init__(self, client: RawClient) -> None:
        self.client = client
        self.answers: list[Any] = []
        self.names: dict[str, str] = {"": ""}
        """Ids that the broker has made, by what the answers call them."""
        create = messages.CreateTopicsRequest
        topics = [
            create.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
            for name, count in TOPICS.items()
        ]
        client.ask(7, create(topics=topics, timeout_ms=60_000))
        self.ids: dict[str, UUID] = {}
        wait_until(self._knows_topics, "the topics have leaders")
        wait_until(self._has_coordinator, "groups have a coordinator")
        wait_until(self._has_loaded, "the coordinator has read its partition")

    def _knows_topics(self) -> bool:
        asked = [messages.MetadataRequest.MetadataRequestTopic(name=name) for name in TOPICS]
        answer = self.client.ask(12, messages.MetadataRequest(topics=asked))
        self.ids = {topic.name: topic.topic_id for topic in answer.topics if not topic.error_code}
        return len(self.ids) == len(TOPICS) and not any(
            partition.error_code for topic in answer.topics for partition in topic.partitions
        )

    def _has_coordinator(self) -> bool:
        answer = self.client.ask(4, messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
        return not answer.coordinators[0].error_code

    def _has_loaded(self) -> bool:
        """Return whether the coordinator knows which groups there are: none is called g yet."""
        answer = self.client.ask(1, messages.ConsumerGroupDescribeRequest(group_ids=["g"]))
        return bool(answer.groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND)

    def beat(self, member: str, epoch: int, group: str = "g", **fields: Any) -> None:
        """Send a heartbeat; `owned` has partition numbers by topic."""
        request = messages.ConsumerGroupHeartbeatRequest
        owned = fields.pop("owned", None)
        if owned is not None:
            fields["topic_partitions"] = [
                request.TopicPartitions(topic_id=self.ids[topic], partitions=list(numbers))
                for topic, numbers in owned.items()
            ]
        answer = self.client.ask(1, request(group_id=group, member_id=member, member_epoch=epoch, **fields))
        names = {topic_id: name for name, topic_id in self.ids.items()}
        given = None
        if answer.assignment is not None:
            given = {
                names.get(each.topic_id, "another"): sorted(each.partitions)
                for each in answer.assignment.topic_partitions
            }
        error = ErrorCode(answer.error_code).name
        self.answers.append((f"{member} in {epoch}", error, answer.member_id, answer.member_epoch, given))

    def join(self, member: str, **fields: Any) -> None:
        """Join, by default with a subscription to t."""
        first = {"rebalance_timeout_ms": 300_000, "subscribed_topic_names": ["t"], "owned": {}}
        self.beat(member, 0, **(first | fields))

    def commit(self, member: str, epoch: int, partition: int = 0, version: int = 9) -> None:
        request = messages.OffsetCommitRequest
        topic = request.OffsetCommitRequestTopic
        answer = self.client.ask(
            version,
            request(
                group_id="g",
                member_id=member,
                generation_id_or_member_epoch=epoch,
                topics=[
                    topic(
                        name="t",
                        partitions=[
                            topic.OffsetCommitRequestPartition(
                                partition_index=partition, committed_offset=0, committed_metadata=""
                            )
                        ],
                    )
                ],
            ),
        )
        error = answer.topics[0].partitions[0].error_code
        member = self.names.get(member, member)
        self.answers.append((f"{member} commits in {epoch} v{version}", ErrorCode(error).name))

    def fetch(self, member: str | None, epoch: int) -> None:
        request = messages.OffsetFetchRequest
        group = request.OffsetFetchRequestGroup(
            group_id="g", member_id=member, member_epoch=epoch, topics=None
        )
        answer = self.client.ask(9, request(groups=[group]))
        member = self.names.get(member or "", member)
        self.answers.append((f"{member} fetches in {epoch}", ErrorCode(answer.groups[0].error_code).name))

    def join_classic(self, member: str = "", *, owned: dict[str, Any] | None = None, **fields: Any) -> str:
        """Join by the classic protocol; return the member id, which the answers leave out if it was made."""
        version = fields.pop("version", 7)
        listed = [
            messages.ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=list(numbers))
            for topic, numbers in (owned or {}).items()
        ]
        said = messages.ConsumerProtocolSubscription(
            version=1, topics=fields.pop("topics", ["t"]), user_data=None, owned_partitions=listed
        )
        protocols = [
            messages.JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=bytes(said.encode()))
            for name in fields.pop("protocols", ["range"])
        ]
        first: dict[str, Any] = {
            "group_id": "g",
            "session_timeout_ms": 45_000,
            "rebalance_timeout_ms": 300_000,
            "protocol_type": "consumer",
            "protocols": protocols,
            "member_id": member,
            "group_instance_id": None,
        }
        answer = self.client.ask(version, messages.JoinGroupRequest(**(first | fields)))
        given = self.names.setdefault(answer.member_id, member or f"made {len(self.names)}")
        error = ErrorCode(answer.error_code).name
        what = answer.generation_id, answer.protocol_type, answer.protocol_name, len(answer.members)
        self.answers.append((f"{self.names.get(member, member)} joins", error, given, *what))
        if error == "MEMBER_ID_REQUIRED":
            return self.join_classic(
                answer.member_id,
                owned=owned,
                **(fields | {"topics": list(said.topics), "protocols": [each.name for each in protocols]}),
            )
        return str(answer.member_id)

    def sync(self, member: str, generation: int, instance: str | None = None, name: str = "range") -> None:
        answer = self.client.ask(
            5,
            messages.SyncGroupRequest(
                group_id="g",
                generation_id=generation,
                member_id=member,
                group_instance_id=instance,
                protocol_type="consumer",
                protocol_name=name,
                assignments=[],
            ),
        )
        given: Any = bytes(answer.assignment)
        if given:
            read = messages.ConsumerProtocolAssignment.decode(given)
            given = read.version, {each.topic: sorted(each.partitions) for each in read.assigned_partitions}
        error = ErrorCode(answer.error_code).name
        self.answers.append((f"{self.names.get(member, member)} syncs in {generation}", error, given))

    def lead(
        self, generation: int, leader: str, shares: dict[str, list[int]], instance: str | None = None
    ) -> None:
        """Sync as the leader of a classic group, which assigns partitions of t."""
        request = messages.SyncGroupRequest
        given = messages.ConsumerProtocolAssignment
        assignments = [
            request.SyncGroupRequestAssignment(
                member_id=member,
                assignment=bytes(
                    given(
                        version=1,
                        assigned_partitions=[given.TopicPartition(topic="t", partitions=numbers)],
                        user_data=None,
                    ).encode()
                ),
            )
            for member, numbers in shares.items()
        ]
        answer = self.client.ask(
            5,
            request(
                group_id="g",
                generation_id=generation,
                member_id=leader,
                group_instance_id=instance,
                protocol_type="consumer",
                protocol_name="range",
                assignments=assignments,
            ),
        )
        self.answers.append(("leads", ErrorCode(answer.error_code).name))

    def beat_classic(self, member: str, generation: int, instance: str | None = None) -> None:
        answer = self.client.ask(
            4,
            messages.HeartbeatRequest(
                group_id="g", generation_id=generation, member_id=member, group_instance_id=instance
            ),
        )
        error = ErrorCode(answer.error_code).name
        self.answers.append((f"{self.names.get(member, member)} beats in {generation}", error))

    def leave_classic(self, *members: tuple[str, str | None]) -> None:
        request = messages.LeaveGroupRequest
        leaving = [
            request.MemberIdentity(member_id=member, group_instance_id=instance)
            for member, instance in members
        ]
        answer = self.client.ask(5, request(group_id="g", members=leaving))
        errors = [ErrorCode(each.error_code).name for each in answer.members]
        self.answers.append(("leave", ErrorCode(answer.error_code).name, errors))

    def describe_classic(self) -> None:
        """Describe the group in the classic way, with its members' assignments.

        Kafka 4 also tells the last assignment during a rebalance; Kafka 3.9 does not, and ours neither.
        """
        it = self.client.ask(5, messages.DescribeGroupsRequest(groups=["g"])).groups[0]
        members = sorted(
            (
                self.names.get(each.member_id, "another"),
                each.group_instance_id,
                bytes(each.member_metadata),
                bytes(each.member_assignment) if it.group_state == "Stable" else None,
            )
            for each in it.members
        )
        error = ErrorCode(it.error_code).name
        self.answers.append((error, it.group_state, it.protocol_type, it.protocol_data, members))

    def describe(self, group: str = "g") -> None:
        """Describe the group in both ways, and list it."""
        answer = self.client.ask(1, messages.ConsumerGroupDescribeRequest(group_ids=[group])).groups[0]
        members = sorted(
            (
                self.names.get(member.member_id, member.member_id),
                member.instance_id,
                member.rack_id,
                member.member_epoch,
                sorted(member.subscribed_topic_names),
                member.subscribed_topic_regex,
                member.member_type,
                _by_name(member.assignment),
                _by_name(member.target_assignment),
            )
            for member in answer.members
        )
        error = ErrorCode(answer.error_code).name
        epochs = answer.group_epoch, answer.assignment_epoch
        self.answers.append((error, answer.group_state, *epochs, answer.assignor_name, members))
        classic = self.client.ask(5, messages.DescribeGroupsRequest(groups=[group])).groups[0]
        self.answers.append((ErrorCode(classic.error_code).name, classic.group_state))
        listed = self.client.ask(5, messages.ListGroupsRequest(states_filter=[], types_filter=[])).groups
        self.answers.append(
            sorted((it.group_id, it.protocol_type, it.group_state, it.group_type) for it in listed)
        )

    def summary(self) -> None:
        """Record a group's state and members; assignments depend on the ids that brokers make."""
        answer = self.client.ask(1, messages.ConsumerGroupDescribeRequest(group_ids=["g"])).groups[0]
        members = sorted(
            (self.names.get(it.member_id, it.member_id), it.member_epoch) for it in answer.members
        )
        self.answers.append((answer.group_state, answer.group_epoch, answer.assignment_epoch, members))
        classic = self.client.ask(5, messages.DescribeGroupsRequest(groups=["g"])).groups[0]
        self.answers.append((classic.group_state, len(classic.members)))

    def delete(self, group: str) -> None:
        answer = self.client.ask(2, messages.DeleteGroupsRequest(groups_names=[group]))
        self.answers.append(("delete", ErrorCode(answer.results[0].error_code).name))


def _by_name(assignment: Any) -> dict[str, list[int]]:
    return {each.topic_name: sorted(each.partitions) for each in assignment.topic_partitions}
