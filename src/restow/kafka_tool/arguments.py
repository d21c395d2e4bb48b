"""The flags of Apache's tool, and which actions take them."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_TIMEOUT_MS = 10_000


class Action(Enum):
    """The actions, of which each call has exactly one."""

    GENERATE = "generate"
    EXECUTE = "execute"
    VERIFY = "verify"
    CANCEL = "cancel"
    LIST = "list"


CONNECTION = frozenset({"bootstrap-server", "bootstrap-controller", "command-config", "zookeeper"})
REQUIRED: Mapping[Action, tuple[str, ...]] = {
    Action.GENERATE: ("topics-to-move-json-file", "broker-list"),
    Action.EXECUTE: ("reassignment-json-file",),
    Action.VERIFY: ("reassignment-json-file",),
    Action.CANCEL: ("reassignment-json-file",),
    Action.LIST: (),
}
ALLOWED: Mapping[Action, frozenset[str]] = {
    Action.GENERATE: frozenset({"disable-rack-aware"}),
    Action.EXECUTE: frozenset(
        {
            "additional",
            "disallow-replication-factor-change",
            "throttle",
            "replica-alter-log-dirs-throttle",
            "timeout",
        }
    ),
    Action.VERIFY: frozenset({"preserve-throttles"}),
    Action.CANCEL: frozenset({"preserve-throttles", "timeout"}),
    Action.LIST: frozenset(),
}
_VERSION = "version"
_SWITCHES = frozenset(
    {
        _VERSION,
        *(action.value for action in Action),
        "additional",
        "disable-rack-aware",
        "disallow-replication-factor-change",
        "preserve-throttles",
    }
)
_WITH_VALUE = (
    CONNECTION
    | frozenset().union(*REQUIRED.values())
    | frozenset({"throttle", "replica-alter-log-dirs-throttle", "timeout"})
)


class UsageError(RestowError):
    """Flags that are unknown or do not go together."""


@frozen
class Arguments:
    """One action with its options, as given."""

    action: Action
    values: Mapping[str, str] = field(default_factory=dict)
    switches: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()

    @property
    def by_nodes(self) -> bool:
        """Whether the call uses ZooKeeper's nodes alone, the old way."""
        return "bootstrap-server" not in self.values

    def text(self, name: str) -> str:
        """Return an option's value. A duplicate is refused only when it is needed, as in the original."""
        if name in self.repeated:
            raise UsageError(f"Found multiple arguments for option {name}, but you asked for only one")
        return self.values[name]

    def number(self, name: str, default: int) -> int:
        """Return an option's number. An invalid one is refused only when it is needed, as in the original."""
        if name not in self.values:
            return default
        given = self.text(name)
        try:
            number = int(given)
        except ValueError:
            number = 2**63
        if not -(2**63) <= number < 2**63:
            raise UsageError(f"Cannot parse argument '{given}' of option {name}")
        return number


def asks_for_version(given: Sequence[str]) -> bool:
    """Return whether to print the version, whatever else is given."""
    _, switches, _ = _split(given)
    return _VERSION in switches


def parse_arguments(given: Sequence[str]) -> Arguments:
    """Parse `--name value`, `--name=value` and switches, in any order; no abbreviations."""
    values, switches, repeated = _split(given)
    actions = [action for action in Action if action.value in switches]
    if len(actions) != 1:
        names = ", ".join(f"--{action.value}" for action in Action)
        raise UsageError(f"Command must include exactly one action: {names}")
    arguments = Arguments(
        action=actions[0],
        values=values,
        switches=frozenset(switches) - {actions[0].value},
        repeated=frozenset(repeated),
    )
    _check_connection(arguments)
    for name in REQUIRED[arguments.action]:
        if name not in values:
            raise UsageError(f'Missing required argument "[{name}]"')
    fitting = {*REQUIRED[arguments.action], *ALLOWED[arguments.action], *CONNECTION}
    for name in (*values, *sorted(arguments.switches)):
        if name not in fitting:
            raise UsageError(f'Option "[{name}]" can\'t be used with action "[{arguments.action.value}]"')
    return arguments


def _split(given: Sequence[str]) -> tuple[dict[str, str], set[str], set[str]]:
    values: dict[str, str] = {}
    switches: set[str] = set()
    repeated: set[str] = set()
    rest = list(given)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            raise UsageError(f"{word!r} belongs to no option: lists have no spaces, like --broker-list 1,2")
        if name in _SWITCHES and not equals:
            switches.add(name)
        elif name in _WITH_VALUE:
            if not equals:
                if not rest:
                    raise UsageError(f"Option {name} requires an argument")
                value = rest.pop(0)
            if name in values:
                repeated.add(name)
            values[name] = value
        else:
            raise UsageError(f"{name} is not a recognized option")
    if {"zookeeper", "bootstrap-server"} <= values.keys():  # the tools that have the second lack the first
        raise UsageError("zookeeper is not a recognized option")
    return values, switches, repeated


def _check_connection(arguments: Arguments) -> None:
    ways = [name for name in ("bootstrap-server", "bootstrap-controller") if name in arguments.values]
    if len(ways) > 1:
        raise UsageError("Please don't specify both --bootstrap-server and --bootstrap-controller")
    if ways == ["bootstrap-controller"]:
        raise UsageError(
            "--bootstrap-controller is not supported: name brokers with --bootstrap-server; they ask the "
            "controller themselves"
        )
    if not ways and "zookeeper" not in arguments.values:
        raise UsageError("Please specify --bootstrap-server")
