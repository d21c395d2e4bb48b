"""The notebook of the documents runs from its first cell to its last, on the embedded cluster."""

from __future__ import annotations

import json
import threading
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaProducer

from restow.client import ConnectionSettings, NewTopic, ask_cluster
from restow.plan import read_plan
from tests.clients.embedded import Running, embedded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.classic, pytest.mark.full, pytest.mark.usefixtures("patient")]

NOTEBOOK = Path(__file__).parents[2] / "docs" / "pipeline.ipynb"
TOPIC, PARTITIONS = "orders", 8


@pytest.fixture
def busy() -> Iterator[Running]:
    """Start a cluster with a lopsided topic, to which a producer writes."""
    with embedded(3) as cluster:
        homes = dict.fromkeys(range(PARTITIONS - 1), (0, 1)) | {PARTITIONS - 1: (2, 0)}
        new = NewTopic(name=TOPIC, by_hand=homes)
        ask_cluster(ConnectionSettings(bootstrap=cluster.bootstrap), lambda admin: admin.create_topics([new]))
        cluster.wait_until_known(TOPIC, PARTITIONS)
        with producing(cluster.bootstrap):
            yield cluster


@contextmanager
def producing(bootstrap: str) -> Iterator[None]:
    ending = threading.Event()

    def produce() -> None:
        with closing(KafkaProducer(bootstrap_servers=bootstrap, acks="all")) as producer:
            while not ending.wait(0.05):
                for number in range(PARTITIONS):
                    producer.send(TOPIC, b"." * 1000, partition=number)
                producer.flush()

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def test_notebook_goes_from_a_cluster_to_a_plan(
    spark: SparkSession,  # the notebook gets it from `getOrCreate`
    busy: Running,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOOTSTRAP", busy.bootstrap)
    values = run(NOTEBOOK)
    assert values["spark"] is spark or values["spark"].sparkContext is spark.sparkContext
    carried = {
        row.partition: row.bytes_in_mean for row in values["model"].where("topic = 'orders'").collect()
    }
    assert carried.keys() == set(range(PARTITIONS))
    assert all(rate > 0 for rate in carried.values())
    shares = {row.member: row.share for row in values["skew"].where("measure = 'leaders'").collect()}
    assert shares["0"] > 1
    assert values["left_out"] == {}
    assert values["plan"].moves
    assert read_plan(tmp_path / "plan.json").moves == values["plan"].moves
    assert "<svg" in (tmp_path / "report.html").read_text()


def run(notebook: Path) -> dict[str, Any]:
    """Run all cells of code, as Jupyter would one after the other, and return the names they have made."""
    values: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells):
        assert not cell["outputs"], f"cell {number} has outputs: clear them before a commit"
        code = compile("".join(cell["source"]), f"{notebook.name}[{number}]", "exec")
        exec(code, values)  # noqa: S102
    return values
