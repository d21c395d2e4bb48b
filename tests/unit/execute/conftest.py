"""Fixtures: a stage for every test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.execute.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Return six brokers, and a topic `t` of four partitions on the first three."""
    from tests.unit.execute.stage import make_stage

    return make_stage(tmp_path)
