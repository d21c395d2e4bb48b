"""Apache's kafka-reassign-partitions, again: its flags, its files, its lines, its exit codes.

arguments    the flags, and which go with which action
lines        what it prints
throttling   which throttles it sets for which moves
log_dirs     how far replicas have got between directories
actions      generate, execute, verify, list, cancel on a cluster
tool         one call of it, from arguments to exit code

Where it differs from the original, docs/reassign.md says so.
"""

from restow.kafka_tool.arguments import Arguments, UsageError, asks_for_version, parse_arguments
from restow.kafka_tool.tool import run_tool

__all__ = ["Arguments", "UsageError", "asks_for_version", "parse_arguments", "run_tool"]
