"""Without its client an adapter names the package to install."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "client", "extra"),
    [("kafka_python", "kafka", "kafka-python"), ("aiokafka", "aiokafka", "aiokafka")],
)
def test_adapter_names_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch, module: str, client: str, extra: str
) -> None:
    name = f"restow.assignors.adapters.{module}"
    monkeypatch.delitem(sys.modules, name, raising=False)
    for loaded in [m for m in sys.modules if m == client or m.startswith(f"{client}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, client, None)
    with pytest.raises(ImportError, match=rf"pip install restow\[{extra}\]"):
        importlib.import_module(name)
