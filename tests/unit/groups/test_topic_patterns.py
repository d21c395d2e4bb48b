"""Regular expressions for topics: what they match, what is refused, and that none takes for ever."""

from __future__ import annotations

import re
from random import Random

import pytest

from restow.cluster.groups.consumer.patterns import InvalidPattern, Pattern
from tests.often import of_many
from tests.seeds import seeded

PARTS = (
    "a",
    "b",
    "ab",
    ".",
    "[ab]",
    "[^a]",
    "[a-c]{0,2}",
    "[]a-]",
    "(a|b)",
    "(?:ab|b)",
    "(a|)",
    "(a*)*",
    "(ab)*",
    "(a|b)+",
    r"\.",
    r"\d",
    r"\W",
    r"[\d.]",
    r"\-",
    "a*",
    "b+",
    "a?",
    "a+?",
    "a{2}",
    "b{1,3}",
    "b{2,}",
    "a{0}",
    "^",
    "$",
    r"\A",
)


@pytest.mark.parametrize("number", range(of_many(40, often=10)))
def test_pattern_matches_what_python_matches(number: int) -> None:
    random = Random(seeded(number))
    for _ in range(500):
        text = "".join(random.choice(PARTS) for _ in range(random.randint(0, 5)))
        if random.random() < 0.3:
            text += "|" + "".join(random.choice(PARTS) for _ in range(random.randint(0, 3)))
        if random.random() < 0.1:
            text = f"(?i){text}"
        name = "".join(random.choice("abcA.1-") for _ in range(random.randint(0, 6)))
        assert Pattern(text).matches(name) is (re.fullmatch(text, name) is not None), (text, name)


@pytest.mark.parametrize(
    "text",
    ["(", "a)", "[", "[z-a]", "*", "a**", "a{3}{2}", "(?=a)", "(?<!a)b", r"(a)\1", r"\p{L}", "a{3,2}", "a\\"],
)
def test_pattern_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(InvalidPattern, match="the regular expression"):
        Pattern(text)


@pytest.mark.parametrize(
    "text", ["a{2000}", "(a{100}){100}", "((((a{9}){9}){9}){9}){9}", "(" * 200 + "a" + ")" * 200]
)
def test_pattern_that_is_too_large_is_refused(text: str) -> None:
    with pytest.raises(InvalidPattern):
        Pattern(text)


def test_named_groups_are_groups() -> None:
    assert Pattern("(?P<x>a|b)(?<y>c)").matches("bc")


def test_quoted_text_is_literal() -> None:
    assert Pattern(r"\Qa.b\E.*").matches("a.bc")
    assert not Pattern(r"\Qa.b\E").matches("axb")


def test_pattern_on_which_others_would_work_for_ever_is_answered() -> None:
    assert not Pattern("(a+)+b").matches("a" * 249)
    assert not Pattern("(a|a)*(a|a)*(a|a)*c").matches("a" * 249)
