"""Sizes and rates: parsed, or refused with what the user may have meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.errors import InvalidInput
from restow.execute.throttle.hours import HourlyThrottle
from restow.sizes import human_bytes, human_rate, parse_rate, parse_size

MB = 10**6


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("50MB", 50 * MB),
        ("50 MB", 50 * MB),
        ("1.5GiB", 3 * 2**29),
        ("800kB", 800_000),
        ("800KB", 800_000),
        ("1KiB", 1024),
        ("1kiB", 1024),
        ("7B", 7),
        ("2T", 2 * 10**12),
        ("1PiB", 2**50),
        ("0", 0),
        ("0GB", 0),
    ],
)
def test_sizes_are_parsed_with_any_unit(text: str, size: int) -> None:
    assert parse_size(text, "--max-bytes") == size


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("50MB/s", 50 * MB),
        ("1.5MiB/s", 3 * 2**19),
        ("2 GB/s", 2 * 10**9),
        ("800kB", 800_000),
        ("5MBps", 5 * MB),
        ("1B/s", 1),
    ],
)
def test_rates_are_parsed_with_and_without_per_second(text: str, rate: int) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    "text",
    ["", "0", "0MB/s", "-5MB/s", "fast", "1e9B", "5 parsecs", "0.0001kB/s", "9" * 30 + "B", "1iB", "٥MB/s"],
)
def test_parse_rate_refuses_other_text(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--throttle: .* is not a rate above zero; write it like 50MB/s"):
        parse_rate(text)


@pytest.mark.parametrize("text", ["", "-5MB", "much", "1e9B", "9" * 30 + "B", "1iB", "nan", "inf"])
def test_parse_size_refuses_other_text(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--max-bytes: .* is not a size; write it like 50MB"):
        parse_size(text, "--max-bytes")


def test_parse_size_refuses_a_rate() -> None:
    with pytest.raises(InvalidInput, match=r"'50MB/s' is a rate; a size is wanted here, like 50MB"):
        parse_size("50MB/s", "--max-bytes")


def test_bare_number_is_refused_with_its_likely_meanings() -> None:
    with pytest.raises(InvalidInput) as rate:
        parse_rate("5", "--throttle")
    assert str(rate.value) == (
        "--throttle: '5' has no unit: 5 bytes per second? write 5B/s; 5 megabytes per second? write 5MB/s"
    )
    with pytest.raises(InvalidInput) as size:
        parse_size("50", "--max-bytes")
    assert str(size.value) == ("--max-bytes: '50' has no unit: 50 bytes? write 50B; 50 megabytes? write 50MB")


def test_large_bare_number_is_explained_as_bytes_alone() -> None:
    with pytest.raises(InvalidInput) as told:
        parse_rate("52428800")
    assert str(told.value) == (
        "--throttle: '52428800' has no unit: 52428800 bytes per second? write 52428800B/s (52.4 MB/s)"
    )


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("50mb/s", "(a small b is for bits; is MB meant?)"),
        ("50Mb/s", "is MB meant?"),
        ("5gB/s", "is GB meant?"),
    ],
)
def test_unit_in_the_wrong_case_is_refused_with_the_right_one(text: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as told:
        parse_rate(text)
    assert hint in str(told.value)


def test_throttle_may_be_a_rate_or_automatic_or_none() -> None:
    found = [HourlyThrottle.parse(text).usual for text in ("auto", "None", "5MB")]
    assert [(rate.auto, rate.bytes_per_s) for rate in found] == [(True, None), (False, None), (False, 5 * MB)]
    with pytest.raises(InvalidInput, match="has no unit"):
        HourlyThrottle.parse("5")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1500, "1.5 kB"),
        (999_499, "999 kB"),
        (999_950, "1.0 MB"),
        (123_456_789, "123 MB"),
        (1.5e15, "1.5 PB"),
        (1.5e19, "15,000 PB"),
        (-2000, "-2.0 kB"),
    ],
)
def test_sizes_are_formatted_with_three_digits(number: float, text: str) -> None:
    assert human_bytes(number) == text
    assert human_rate(number) == f"{text}/s"


@given(st.integers(1, 10**18))
def test_formatted_size_is_parsed_back(number: int) -> None:
    """Three digits are kept, so the result is within half of the last one."""
    for parse, write in ((lambda text: parse_size(text, "x"), human_bytes), (parse_rate, human_rate)):
        assert parse(write(number).replace(",", "")) == pytest.approx(number, rel=0.051)
