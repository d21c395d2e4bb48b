"""The example dashboard and alert rules ask for metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

from restow.ui import metrics

DOCS = Path(__file__).parents[3] / "docs" / "monitoring"
NAMED = re.compile(r"restow_\w+")


def known() -> set[str]:
    return set(NAMED.findall(Path(metrics.__file__).read_text(encoding="utf-8")))


def test_dashboard_shows_metrics_that_there_are() -> None:
    dashboard = json.loads((DOCS / "grafana.json").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    used = {name for each in asked for name in NAMED.findall(each)}
    assert used
    assert used <= known()
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_alert_rules_ask_for_metrics_that_there_are_and_say_what_is_wrong() -> None:
    [group] = yaml.safe_load((DOCS / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]:
        used = set(NAMED.findall(rule["expr"]))
        assert used, rule
        assert used <= known(), rule
        assert rule["annotations"]["summary"]
