"""Apache's kafka-reassign-partitions: the same flags, files, lines and exit codes.

arguments    the flags, and which actions take them
lines        the output
throttling   the throttles for each move
log_dirs     the progress of moves between log dirs
actions      generate, execute, verify, list, cancel on a cluster
tool         one call, from arguments to exit code

docs/reassign.md lists the differences from the original.
"""

from restow.kafka_tool.arguments import Arguments, UsageError, asks_for_version, parse_arguments
from restow.kafka_tool.tool import run_tool

__all__ = ["Arguments", "UsageError", "asks_for_version", "parse_arguments", "run_tool"]
