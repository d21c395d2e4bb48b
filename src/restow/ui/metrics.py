"""Numbers for Prometheus, in its text format."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.ui.site import Site
    from restow.ui.watching import ClusterLook

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics(site: Site) -> str:
    """Return all metrics."""
    return "".join((*_cluster(site.watch.last), *_runs(site)))


def _cluster(look: ClusterLook) -> Iterator[str]:
    yield from _gauge(
        "restow_cluster_away", "1 while the cluster does not answer", int(look.away_since_ms is not None)
    )
    if look.sums is None or look.snapshot is None:
        return
    sums = look.sums
    yield from _gauge(
        "restow_snapshot_timestamp_seconds", "when the cluster was last seen", look.snapshot.taken_ms / 1000
    )
    for name, help_text, value in (
        ("restow_partitions", "partitions", sums.partitions),
        (
            "restow_partitions_under_replicated",
            "partitions with a replica out of sync",
            sums.under_replicated,
        ),
        ("restow_partitions_offline", "partitions without a leader", sums.offline),
        ("restow_partitions_moving", "partitions with a reassignment in progress", sums.moving),
        ("restow_throttled", "brokers and topics with a replication throttle", sums.throttles),
    ):
        yield from _gauge(name, help_text, value)
    yield _head("restow_broker_up", "1 if the broker is live")
    for each in sums.brokers:
        labels = f'broker="{each.id}",rack="{_quoted(each.rack)}"'
        yield f"restow_broker_up{{{labels}}} {int(each.address is not None)}\n"
    yield from _groups(look)
    yield _head("restow_broker_bytes", "bytes of all replicas on the broker")
    for each in sums.brokers:
        if each.size_bytes is not None:
            yield f'restow_broker_bytes{{broker="{each.id}"}} {each.size_bytes}\n'
    if look.bands is not None:
        yield _head("restow_brokers_out_of_band", "brokers further from their share than the goal allows")
        for goal in look.bands.goals:
            yield f'restow_brokers_out_of_band{{goal="{_quoted(goal.name)}"}} {goal.out_of_band}\n'


def _groups(look: ClusterLook) -> Iterator[str]:
    groups = () if look.groups is None else look.groups.groups
    lags = [(each.group.name, each.lag, each.lag_ms) for each in groups]
    yield _head("restow_group_lag_messages", "messages that the group has not committed")
    for name, lag, _ in lags:
        if lag is not None:
            yield f'restow_group_lag_messages{{group="{_quoted(name)}"}} {lag}\n'
    yield _head("restow_group_lag_seconds", "age of the oldest message that the group has not committed")
    for name, _, age_ms in lags:
        if age_ms is not None:
            yield f'restow_group_lag_seconds{{group="{_quoted(name)}"}} {age_ms / 1000:.10g}\n'


def _runs(site: Site) -> Iterator[str]:
    yield from _gauge("restow_viewers", "pages that follow changes", site.feeds.viewers)
    yield from _gauge(
        "restow_run_active", "1 while this machine carries out a run", int(site.run is not None)
    )
    books = site.books.all()
    yield from _gauge("restow_runs", "runs in the journals", len(books))
    errors = (each.prediction_error for each in books)
    error = next((each for each in errors if each is not None), None)
    if error is not None:
        words = "how much longer the last complete run took than predicted, as a share"
        yield from _gauge("restow_run_prediction_error", words, error)
    if site.run is None:
        return
    run = site.run
    for name, help_text, value in (
        ("restow_run_done_bytes", "bytes that the run has copied", run.report.done_bytes),
        ("restow_run_to_do_bytes", "bytes that the run copies in all", run.report.to_do_bytes),
        ("restow_run_bytes_per_second", "bytes per second of all its copies", run.report.rate),
        ("restow_run_steps_done", "steps of the run that are done", run.steps_done),
        ("restow_run_steps_left", "steps of the run that are left", run.steps_left),
        ("restow_run_paused", "1 while nothing new begins", int(run.paused is not None)),
        ("restow_run_still", "replicas that make no progress", len(run.report.still)),
    ):
        yield from _gauge(name, help_text, value)
    if run.throttle is not None:
        yield from _gauge("restow_run_throttle_bytes_per_second", "the throttle per broker", run.throttle)
    if run.report.eta_s is not None:
        yield from _gauge("restow_run_seconds_left", "seconds left by the flow model", run.report.eta_s)


def _gauge(name: str, help_text: str, value: float) -> Iterator[str]:
    yield _head(name, help_text)
    yield f"{name} {value:.10g}\n"


def _head(name: str, help_text: str) -> str:
    return f"# HELP {name} {help_text}\n# TYPE {name} gauge\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
