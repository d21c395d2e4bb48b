"""Commands that plan with a snapshot warn about the parts that it could not read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow.cli.app import run
from restow.cli.shared.unseen import unseen
from restow.snapshot.text import dumps
from tests.unit.plan.clusters import snapshot

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SEEN = snapshot({"t": [(1, 2), (2, 3)]}, brokers=range(1, 5))


def test_plan_drain_warns_of_topics_without_describe_permission(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "now.json"
    file.write_text(dumps(replace(SEEN, hidden_topics=("secret",))))
    run(["plan", "drain", "1", "--snapshot", str(file)])
    said = capsys.readouterr().err
    assert "Warning: 1 topic cannot be seen, because DESCRIBE on it is not allowed: secret" in said


def test_unseen_yields_nothing_for_a_complete_snapshot() -> None:
    assert list(unseen(SEEN)) == []


def test_unseen_lists_some_names_counts_the_rest_and_cleans_them() -> None:
    hidden = tuple(f"t{number}\x1b" for number in range(7))
    whole = replace(SEEN, hidden_topics=hidden, denied=("DESCRIBE_CONFIGS on topic a",), unanswered=(2, 3))
    named = ", ".join(f"t{number}\\x1b" for number in range(5))
    assert list(unseen(whole)) == [
        f"7 topics cannot be seen, because DESCRIBE on them is not allowed: {named} and 2 more",
        "not allowed to see everything: DESCRIBE_CONFIGS on topic a would be needed",
        "no answer about log dirs from brokers 2, 3",
    ]
