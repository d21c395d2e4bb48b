"""Kafka's errors as a table."""

from __future__ import annotations

import pytest

from restow.wire.error_codes import ErrorCode


def test_an_error_is_its_number() -> None:
    assert ErrorCode.NOT_CONTROLLER == 41
    assert ErrorCode(41) is ErrorCode.NOT_CONTROLLER
    assert ErrorCode.of(41) is ErrorCode.NOT_CONTROLLER
    assert ErrorCode.NOT_CONTROLLER.retriable
    assert not ErrorCode.INVALID_CONFIG.retriable


@pytest.mark.parametrize("code", [-2, 999])
def test_a_number_that_nobody_knows_is_an_unknown_error(code: int) -> None:
    assert ErrorCode.of(code) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_numbers_follow_each_other_and_everything_says_something_of_its_own() -> None:
    assert [int(error) for error in ErrorCode] == list(range(-1, len(ErrorCode) - 1))
    assert len({error.message for error in ErrorCode}) == len(ErrorCode)
    assert all(error.message for error in ErrorCode)
