"""How well plans are predicted, and how fast: `benchmarks.rehearse [--few | --model | --only WORDS]`.

Each run on Apache Kafka 4.3.1, and 3.9.1 on a ZooKeeper, is first rehearsed and then carried out: with
throttles and without, on several log dirs, under producers, with a broker that dies. "Ours" is
what was predicted, the peer's is what happened. The whole takes about an hour, `--few` about ten minutes.
`--model` only measures how fast large plans and many variants are rehearsed, without Kafka, in a few minutes.
`--only` selects runs by words of their names, after those that calibrate; `--keep` keeps the journals.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks import rehearse_model
from benchmarks.cluster import say
from benchmarks.rehearse_runs import MB, Case, Result, cluster_of
from benchmarks.report import Row, command_line, print_each

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSIONS = ("4.3.1", "3.9.1")
CASES = (
    Case(name="calibration", amount_mb=2400, shares=(1.0,), counts=False),
    Case(name="calibration", amount_mb=1600, shares=(1.0, 0.7), counts=False),
    Case(name="2 MB/s", rate_mb=2),
    Case(name="10 MB/s", rate_mb=10),
    Case(name="no throttle, one receiver", amount_mb=2400, shares=(1.0,)),
    Case(name="8 MB/s, half within brokers", rate_mb=8, within=0.5),
    Case(name="6 MB/s, 2 MB/s produced", rate_mb=6, produce_mb=2),
    Case(name="6 MB/s, very unequal receivers", rate_mb=6, shares=(1.0, 0.15, 0.05)),
    Case(name="4 MB/s, 2 at a time", rate_mb=4, moves_in=2),
    Case(name="8 MB/s, the drained broker dies", rate_mb=8, shares=(1.0, 0.7), loses=True),
    Case(name="no throttle, two receivers", amount_mb=1600, shares=(1.0, 0.7)),
    Case(name="12 MB/s, equal receivers", rate_mb=12, shares=(1.0, 1.0, 1.0)),
    Case(name="15 MB/s, one receiver", rate_mb=15, shares=(1.0,)),
    Case(name="10 MB/s, 4 MB/s produced", rate_mb=10, produce_mb=4),
    Case(name="5 MB/s, all within brokers", rate_mb=5, within=1.0),
    Case(name="3 MB/s for two minutes", rate_mb=3, seconds=120),
    Case(name="no throttle, 4 at a time", amount_mb=1600, shares=(1.0, 0.7), moves_in=4),
    Case(name="10 MB/s, log dirs left to the brokers", rate_mb=10, pick_dirs=False),
    Case(name="20 MB/s", rate_mb=20, seconds=60),
)
FEW = 7


def main() -> None:
    """Measure and print."""
    parser = command_line("How well plans are predicted.")
    parser.add_argument("--few", action="store_true", help=f"only {FEW} cases on Kafka {VERSIONS[0]}")
    parser.add_argument(
        "--model", action="store_true", help="only how fast plans are rehearsed, without Kafka"
    )
    parser.add_argument("--keep", metavar="DIR", type=Path, help="keep journals, and results in detail")
    parser.add_argument(
        "--only", metavar="WORDS", action="append", help="only runs whose names have these words; repeatable"
    )
    arguments = parser.parse_args()
    if arguments.only:
        cases = tuple(each for each in CASES if not each.counts or _is_named(each, arguments.only))
        if all(not each.counts for each in cases):
            parser.error(
                f"no run is called so; there are: {'; '.join(each.name for each in CASES if each.counts)}"
            )
        print_each("Predicted and actual", rows(VERSIONS, cases, arguments.keep), as_json=arguments.json)
        return
    print_each("How fast plans are rehearsed", rehearse_model.rows(), as_json=arguments.json)
    if arguments.model:
        return
    versions, cases = (VERSIONS[:1], CASES[:FEW]) if arguments.few else (VERSIONS, CASES)
    print_each("Predicted and actual", rows(versions, cases, arguments.keep), as_json=arguments.json)


def _is_named(case: Case, words: list[str]) -> bool:
    return any(each in case.name for each in words)


def rows(versions: tuple[str, ...], cases: tuple[Case, ...], keep: Path | None) -> Iterator[Row]:
    """Yield three rows for each run, then what all of them say."""
    results = []
    for version in versions:
        with ExitStack() as stack:
            temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="restow-bench-"))
            folder = Path(temporary) if keep is None else keep / version
            folder.mkdir(parents=True, exist_ok=True)
            bench = stack.enter_context(cluster_of(folder, version))
            for case in cases:
                say(f"Apache Kafka {version}: {case.name} …")
                result = bench.run(case)
                if keep is not None:
                    with (keep / "results.jsonl").open("a", encoding="utf-8") as file:
                        file.write(json.dumps(result.document()) + "\n")
                if result.ending != "done":
                    say(f"it ended {result.ending!r}, which counts as a wrong prediction")
                if case.counts:
                    results.append(result)
                    yield from run_rows(result)
    yield from summary_rows(results)


def run_rows(result: Result) -> Iterator[Row]:
    """Yield the time, the log dir that was predicted worst, and the live time left."""
    name = f"{result.version}: {result.case.name}"
    peer = f"Apache Kafka {result.version}"
    yield Row(name=name, ours=result.predicted_s, peer=result.actual_s, peer_name=peer, unit="s")
    if result.peaks:
        told, was = max(result.peaks.values(), key=lambda each: abs(each[0] / each[1] - 1))
        yield Row(name=f"{name}: peak disk", ours=told / MB, peer=was / MB, peer_name=peer, unit="MB")
    yield Row(name=f"{name}: time left told within 15%", ours=_share_of_etas([result]), unit="%")


def summary_rows(results: list[Result]) -> Iterator[Row]:
    """Yield what all runs say together."""
    throttled = [each.time_error for each in results if each.case.rate_mb is not None]
    free = [each.time_error for each in results if each.case.rate_mb is None]
    peaks = [error for each in results for error in each.peak_errors]
    yield Row(
        name=f"median error of the time, {len(results)} runs",
        ours=100 * median(throttled + free),
        unit="%",
        limit=5.0,
    )
    for name, errors, within, least in (
        (f"throttled runs within 10% ({len(throttled)})", throttled, 0.1, 95.0),
        (f"runs without a throttle within 20% ({len(free)})", free, 0.2, 95.0),
        (f"peak disk of log dirs within 2% ({len(peaks)})", peaks, 0.02, 95.0),
    ):
        if errors:
            share = 100 * sum(each <= within for each in errors) / len(errors)
            yield Row(name=name, ours=share, unit="%", limit=least, more_is_better=True)
    yield Row(
        name="time left, told within 15% or a second from a tenth on",
        ours=_share_of_etas(results),
        unit="%",
        limit=95.0,
        more_is_better=True,
    )


def _share_of_etas(results: list[Result]) -> float:
    told = [each for result in results for each in result.eta_errors]
    good = sum(abs(told_s - left_s) <= max(0.15 * left_s, 1.0) for told_s, left_s in told)
    return 100 * good / max(1, len(told))


if __name__ == "__main__":
    main()
