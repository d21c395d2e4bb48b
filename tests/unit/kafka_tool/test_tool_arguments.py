"""The flags of Apache's tool: which exist, which go together, and the errors."""

from __future__ import annotations

import pytest

from restow.kafka_tool import UsageError, parse_arguments
from restow.kafka_tool.arguments import Action

SERVER = ("--bootstrap-server", "localhost:9092")
FILE = ("--reassignment-json-file", "f.json")


def test_values_and_switches_are_parsed_in_any_order() -> None:
    found = parse_arguments([*FILE, "--throttle=5", "--additional", *SERVER, "--execute"])
    assert found.action is Action.EXECUTE
    assert found.text("reassignment-json-file") == "f.json"
    assert found.number("throttle", -1) == 5
    assert found.number("timeout", 10_000) == 10_000
    assert found.switches == {"additional"}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ([*SERVER], "exactly one action: --generate, --execute, --verify, --cancel, --list"),
        ([*SERVER, "--list", "--cancel"], "exactly one action"),
        (["--list"], "Please specify --bootstrap-server"),
        (["--list", *SERVER, "--bootstrap-controller", "x:1"], "Please don't specify both"),
        (["--list", "--bootstrap-controller", "x:1"], "--bootstrap-controller is not supported"),
        (["--generate", *SERVER], r'Missing required argument "\[topics-to-move-json-file\]"'),
        (["--verify", *SERVER], r'Missing required argument "\[reassignment-json-file\]"'),
        (
            ["--list", *SERVER, "--timeout", "5"],
            r'Option "\[timeout\]" can\'t be used with action "\[list\]"',
        ),
        (["--cancel", *SERVER, *FILE, "--additional"], r'"\[additional\]" can\'t be used'),
        (["--execute", *SERVER, *FILE, "--preserve-throttles"], "can't be used"),
        (["--execute", *SERVER, "--reassignment-json-file"], "reassignment-json-file requires an argument"),
        (["--execute", *SERVER, *FILE, "--thrott", "5"], "thrott is not a recognized option"),
        (["--execute", *SERVER, *FILE, "stray"], "'stray' belongs to no option"),
    ],
)
def test_invalid_arguments_are_refused(given: list[str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        parse_arguments(given)


@pytest.mark.parametrize("value", ["fast", "5.5", "9" * 30, ""])
def test_invalid_number_is_refused_when_it_is_needed(value: str) -> None:
    found = parse_arguments(["--execute", *SERVER, *FILE, "--throttle", value])
    with pytest.raises(UsageError, match=f"Cannot parse argument '{value}' of option throttle"):
        found.number("throttle", -1)


def test_duplicate_flag_is_refused_when_it_is_needed() -> None:
    found = parse_arguments(["--verify", *SERVER, *FILE, *FILE])
    with pytest.raises(UsageError, match="multiple arguments for option reassignment-json-file"):
        found.text("reassignment-json-file")
