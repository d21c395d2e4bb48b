"""Requests about transactions to one cluster, and what it answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from restow.wire import messages
from restow.wire.batches import LENGTH_ENDS, TRANSACTIONAL_BIT, scan
from restow.wire.error_codes import ErrorCode
from restow.wire.records import Record, build, parse
from tests.clients.embedded import wait_until

if TYPE_CHECKING:
    from tests.apache.raw_client import RawClient

TOPIC, OTHER, GROUP = "t", "u", "g"
NOW_MS = int(time.time() * 1000)


class Talk:
    """One cluster and what it has answered in one scene.

    Producer ids are called by the order in which they came. All names on the cluster begin with the scene's.
    """

    def __init__(self, client: RawClient, scene: str) -> None:
        self.client = client
        self._scene = f"{scene}."
        self.answers: list[Any] = []
        self._ids: dict[int, str] = {-1: "none"}
        create = messages.CreateTopicsRequest
        topics = [
            create.CreatableTopic(name=self.full(name), num_partitions=2, replication_factor=1)
            for name in (TOPIC, OTHER)
        ]
        client.ask(7, create(topics=topics, timeout_ms=60_000))
        for key_type in (0, 1):
            wait_until(lambda key_type=key_type: self._finds(key_type), "there is a coordinator")
        wait_until(self._is_ready, "partitions are led and coordinators loaded")

    def _finds(self, key_type: int) -> bool:
        keys = [self.full(GROUP if key_type == 0 else "a")]
        answer = self.client.ask(4, messages.FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys))
        return not answer.coordinators[0].error_code

    def _is_ready(self) -> bool:
        kind = messages.MetadataRequest.MetadataRequestTopic
        asked = [kind(name=self.full(name)) for name in (TOPIC, OTHER)]
        answer = self.client.ask(12, messages.MetadataRequest(topics=asked))
        led = all(not each.error_code for topic in answer.topics for each in topic.partitions)
        loaded = all(
            self._state(each).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            for each in ("a", "b", "never")
        )
        return led and loaded and self._has_producer_ids() and self._leads()

    def _has_producer_ids(self) -> bool:
        request = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        return not self.client.ask(4, request).error_code

    def _leads(self) -> bool:
        """Return whether the broker has heard that it leads the partitions."""
        return all(
            not each.error_code
            for name in (TOPIC, OTHER)
            for each in self._offsets(0, -1, name).topics[0].partitions
        )

    def full(self, name: str | None) -> str | None:
        """Return the name on the cluster."""
        return f"{self._scene}{name}" if name and not name.startswith("__") else name

    def brief(self, name: str) -> str:
        return name.removeprefix(self._scene)

    def say(self, what: str, code: int, *more: Any) -> None:
        self.answers.append((what, ErrorCode.of(code).name, *more))

    def name(self, producer_id: int) -> str:
        return self._ids.setdefault(producer_id, f"producer {len(self._ids)}")

    def init(
        self,
        transactional_id: str | None,
        timeout_ms: int = 60_000,
        producer: tuple[int, int] = (-1, -1),
        version: int = 4,
    ) -> tuple[int, int]:
        request = messages.InitProducerIdRequest(
            transactional_id=self.full(transactional_id),
            transaction_timeout_ms=timeout_ms,
            producer_id=producer[0],
            producer_epoch=producer[1],
        )
        answer = self.client.ask(version, request)
        self.say("init", answer.error_code, self.name(answer.producer_id), answer.producer_epoch)
        return answer.producer_id, answer.producer_epoch

    def init_until_done(self, transactional_id: str) -> tuple[int, int]:
        """Begin anew, and ask again while the last transaction is being ended."""
        found: list[tuple[int, int]] = []

        def done() -> bool:
            before = len(self.answers)
            got = self.init(transactional_id)
            again = self.answers[-1][1] == "CONCURRENT_TRANSACTIONS"
            del self.answers[before:]
            if not again:
                found.append(got)
            return not again

        wait_until(done, f"{transactional_id} has a producer")
        self.say("init at last", 0, self.name(found[0][0]), found[0][1])
        return found[0]

    def add(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        *partitions: tuple[str, int],
        version: int = 3,
    ) -> None:
        request = messages.AddPartitionsToTxnRequest
        topics: dict[str, list[int]] = {}
        for topic, number in partitions or ((TOPIC, 0),):
            topics.setdefault(topic, []).append(number)
        answer = self.client.ask(
            version,
            request(
                v3_and_below_transactional_id=self.full(transactional_id),
                v3_and_below_producer_id=producer[0],
                v3_and_below_producer_epoch=producer[1],
                v3_and_below_topics=[
                    request.AddPartitionsToTxnTopic(name=self.full(name), partitions=numbers)
                    for name, numbers in topics.items()
                ],
            ),
        )
        for topic in sorted(answer.results_by_topic_v3_and_below, key=lambda each: each.name):
            for each in sorted(topic.results_by_partition, key=lambda each: each.partition_index):
                what = f"add {self.brief(topic.name)}-{each.partition_index} v{version}"
                self.say(what, each.partition_error_code)

    def verify(self, transactional_id: str, producer: tuple[int, int], topic: str = TOPIC) -> None:
        request = messages.AddPartitionsToTxnRequest
        transaction = request.AddPartitionsToTxnTransaction
        answer = self.client.ask(
            5,
            request(
                transactions=[
                    transaction(
                        transactional_id=self.full(transactional_id),
                        producer_id=producer[0],
                        producer_epoch=producer[1],
                        verify_only=True,
                        topics=[transaction.AddPartitionsToTxnTopic(name=self.full(topic), partitions=[0])],
                    )
                ]
            ),
        )
        for each in answer.results_by_transaction:
            code = each.topic_results[0].results_by_partition[0].partition_error_code
            self.say(f"verify {topic}", code)

    def end(self, transactional_id: str, producer: tuple[int, int], commits: bool, version: int = 3) -> None:
        request = messages.EndTxnRequest(
            transactional_id=self.full(transactional_id),
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commits,
        )
        self.say(f"end {commits} v{version}", self.client.ask(version, request).error_code)

    def settled(self, transactional_id: str) -> None:
        """Wait until markers are written."""
        wait_until(
            lambda: not self._state(transactional_id).transaction_state.startswith("Prepare"),
            f"{transactional_id} is complete",
        )

    def _state(self, transactional_id: str) -> Any:
        request = messages.DescribeTransactionsRequest(transactional_ids=[self.full(transactional_id)])
        return self.client.ask(0, request).transaction_states[0]

    def describe(self, transactional_id: str) -> None:
        it = self._state(transactional_id)
        partitions = sorted((self.brief(each.topic), tuple(sorted(each.partitions))) for each in it.topics)
        started = it.transaction_start_time_ms > 0
        self.say(
            "describe",
            it.error_code,
            it.transaction_state,
            self.name(it.producer_id),
            it.producer_epoch,
            it.transaction_timeout_ms,
            started,
            partitions,
        )

    def list(self, states: tuple[str, ...] = (), version: int = 1, duration: int = -1) -> None:
        request = messages.ListTransactionsRequest(
            state_filters=list(states), producer_id_filters=[], duration_filter=duration
        )
        answer = self.client.ask(version, request)
        listed = sorted(
            (self.brief(each.transactional_id), self.name(each.producer_id), each.transaction_state)
            for each in answer.transaction_states
            if each.transactional_id.startswith(self._scene)
        )
        self.say("list", answer.error_code, sorted(answer.unknown_state_filters), listed)

    def produce(
        self,
        transactional_id: str | None,
        producer: tuple[int, int],
        sequence: int,
        value: bytes = b"v",
        *,
        topic: str = TOPIC,
        transactional: bool = True,
        version: int = 11,
    ) -> None:
        batch = build(
            [Record(0, NOW_MS, b"k", value)],
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            attributes=TRANSACTIONAL_BIT if transactional else 0,
        )
        request = messages.ProduceRequest
        data = request.TopicProduceData
        answer = self.client.ask(
            version,
            request(
                transactional_id=self.full(transactional_id),
                acks=-1,
                timeout_ms=60_000,
                topic_data=[
                    data(
                        name=self.full(topic),
                        partition_data=[data.PartitionProduceData(index=0, records=batch)],
                    )
                ],
            ),
        )
        result = answer.responses[0].partition_responses[0]
        self.say(f"produce {sequence} v{version}", result.error_code, result.base_offset)

    def fetch(self, isolation: int, topic: str = TOPIC, offset: int = 0) -> None:
        request = messages.FetchRequest
        wanted = request.FetchTopic
        answer = self.client.ask(
            12,
            request(
                replica_id=-1,
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=1 << 20,
                isolation_level=isolation,
                session_id=0,
                session_epoch=-1,
                topics=[
                    wanted(
                        topic=self.full(topic),
                        partitions=[
                            wanted.FetchPartition(
                                partition=0, fetch_offset=offset, partition_max_bytes=1 << 20
                            )
                        ],
                    )
                ],
            ),
        )
        it = answer.responses[0].partitions[0]
        aborted = it.aborted_transactions
        told = None if aborted is None else [(self.name(e.producer_id), e.first_offset) for e in aborted]
        batches = [self._batch(it.records, at, header) for at, header in scan(it.records or b"")]
        self.say(f"fetch {isolation} {offset}", it.error_code, it.high_watermark, it.last_stable_offset, told)
        self.answers += batches

    def _batch(self, records: bytes, at: int, header: Any) -> Any:
        content = [(each.key, each.value) for each in parse(records[at : at + LENGTH_ENDS + header.length])]
        return (
            header.base_offset,
            header.last_offset_delta,
            header.attributes,
            self.name(header.producer_id),
            header.producer_epoch,
            header.base_sequence,
            content,
        )

    def latest(self, isolation: int, timestamp: int = -1) -> None:
        found = self._offsets(isolation, timestamp, TOPIC).topics[0].partitions[0]
        self.say(f"offset of {timestamp} {isolation}", found.error_code, found.offset)

    def _offsets(self, isolation: int, timestamp: int, name: str) -> Any:
        request = messages.ListOffsetsRequest
        topic = request.ListOffsetsTopic
        numbers = [
            topic.ListOffsetsPartition(partition_index=number, timestamp=timestamp) for number in (0, 1)
        ]
        topics = [topic(name=self.full(name), partitions=numbers)]
        return self.client.ask(7, request(replica_id=-1, isolation_level=isolation, topics=topics))

    def producers(self) -> None:
        request = messages.DescribeProducersRequest
        answer = self.client.ask(
            0, request(topics=[request.TopicRequest(name=self.full(TOPIC), partition_indexes=[0, 7])])
        )
        for partition in answer.topics[0].partitions:
            active = sorted(
                (
                    self.name(each.producer_id),
                    each.producer_epoch,
                    each.last_sequence,
                    each.coordinator_epoch,
                    each.current_txn_start_offset,
                )
                for each in partition.active_producers
            )
            self.say(f"producers of {partition.partition_index}", partition.error_code, active)

    def add_offsets(self, transactional_id: str, producer: tuple[int, int], group: str = GROUP) -> None:
        request = messages.AddOffsetsToTxnRequest(
            transactional_id=self.full(transactional_id),
            producer_id=producer[0],
            producer_epoch=producer[1],
            group_id=self.full(group),
        )
        self.say("add offsets", self.client.ask(3, request).error_code)

    def commit_offsets(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        offset: int,
        *,
        topic: str = TOPIC,
        member: str = "",
        generation: int = -1,
        version: int = 3,
    ) -> None:
        request = messages.TxnOffsetCommitRequest
        wanted = request.TxnOffsetCommitRequestTopic
        answer = self.client.ask(
            version,
            request(
                transactional_id=self.full(transactional_id),
                group_id=self.full(GROUP),
                producer_id=producer[0],
                producer_epoch=producer[1],
                generation_id=generation,
                member_id=member,
                group_instance_id=None,
                topics=[
                    wanted(
                        name=self.full(topic),
                        partitions=[
                            wanted.TxnOffsetCommitRequestPartition(
                                partition_index=0,
                                committed_offset=offset,
                                committed_leader_epoch=-1,
                                committed_metadata="",
                            )
                        ],
                    )
                ],
            ),
        )
        self.say(f"commit offset {offset} v{version}", answer.topics[0].partitions[0].error_code)

    def offset(self, *, stable: bool) -> None:
        request = messages.OffsetFetchRequest
        topic = request.OffsetFetchRequestTopic(name=self.full(TOPIC), partition_indexes=[0])
        answer = self.client.ask(7, request(group_id=self.full(GROUP), topics=[topic], require_stable=stable))
        found = answer.topics[0].partitions[0]
        self.say(f"offset, stable {stable}", found.error_code, found.committed_offset)
