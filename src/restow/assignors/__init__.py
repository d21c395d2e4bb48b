"""Consumer assignment: which member of a group reads which partition.

    from restow.assignors import Member, TopicPartition, assign
    assign("sticky", partitions={"t": 12}, members=[Member(id="c1", topics=("t",)), …])

Everything here is pure: the same input gives the same answer.
"""

from restow.assignors.assign import assign, assign_rows, settled, settled_rows
from restow.assignors.base import Assignment, Assignor, Dealt, PartitionRacks
from restow.assignors.compare import AssignmentComparison, compare
from restow.assignors.registry import get, names, register
from restow.model import Member, TopicPartition

__all__ = [
    "Assignment",
    "AssignmentComparison",
    "Assignor",
    "Dealt",
    "Member",
    "PartitionRacks",
    "TopicPartition",
    "assign",
    "assign_rows",
    "compare",
    "get",
    "names",
    "register",
    "settled",
    "settled_rows",
]
