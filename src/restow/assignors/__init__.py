"""Consumer assignment: who in a group reads which partition.

    from restow.assignors import Member, TopicPartition, assign
    assign("sticky", partitions={"t": 12}, members=[Member(id="c1", topics=("t",)), …])

Everything here is pure: the same input gives the same answer, and nothing is remembered.
"""

from restow.assignors.base import Assignment, Assignor, PartitionRacks
from restow.model import Member, TopicPartition

__all__ = ["Assignment", "Assignor", "Member", "PartitionRacks", "TopicPartition"]
