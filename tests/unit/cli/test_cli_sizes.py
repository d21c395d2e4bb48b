"""Every flag for a size or a rate needs a unit; commands check it before they connect or write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from restow.model import Plan
from restow.plan.files.text import dumps

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

NOBODY = ("-b", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (("execute", "plan.json", "--throttle", "5", *NOBODY), "--throttle"),
        (("execute", "plan.json", "--throttle", "none", "--dir-throttle", "5", *NOBODY), "--dir-throttle"),
        (("resume", "--yes", "--throttle", "5", *NOBODY), "--throttle"),
        (("undo", "--yes", "--throttle", "5", *NOBODY), "--throttle"),
        (("control", "--throttle", "5", *NOBODY), "--throttle"),
        (("show", "plan.json", "--throttle", "5"), "--throttle"),
        (("pipeline", "forecast", "--lake", "none", "--limit", "bytes_in=5"), "--limit bytes_in"),
    ],
)
def test_every_command_refuses_a_rate_without_a_unit(
    refused: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    flag: str,
) -> None:
    """The address is closed: the command must check the flag before it connects."""
    monkeypatch.chdir(tmp_path)
    Path("plan.json").write_text(dumps(Plan(cluster_id="c", created_ms=0, moves=())), encoding="utf-8")
    said = refused(*arguments)
    assert said == (
        f"Error: {flag}: '5' has no unit: 5 bytes per second? write 5B/s; "
        "5 megabytes per second? write 5MB/s\n"
    )


def test_plan_refuses_max_bytes_without_a_unit(refused: Callable[..., str]) -> None:
    said = refused("plan", "balance", "--snapshot", "none.json", "--max-bytes", "50")
    assert "--max-bytes: '50' has no unit: 50 bytes? write 50B; 50 megabytes? write 50MB" in said


@pytest.mark.parametrize("size", ["50MB", "1.5GiB", "0"])
def test_plan_accepts_max_bytes_with_a_unit_or_zero(invoke: Callable[..., Result], size: str) -> None:
    """The command accepts the flag and then fails on the missing file."""
    result = invoke("plan", "balance", "--snapshot", "none.json", "--max-bytes", size)
    assert "none.json" in result.stderr
    assert "--max-bytes" not in result.stderr
