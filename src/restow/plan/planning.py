"""Make a plan: the one function for Python, the commands and the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.model import Limits, TopicPartition
from restow.plan.request.request import PlanRequest, RequestedLimits, settled
from restow.sizes import count, parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from restow.model import BrokerId, Plan, Snapshot
    from restow.model.load import LoadModel
    from restow.plan.explain.amounts import Amount
    from restow.plan.explain.explain import Explanation
    from restow.plan.explain.why import Why
    from restow.plan.judge.bound import Bound
    from restow.plan.request.framing import Asked
    from restow.plan.search import Progress

GOALS = ("disk", "bytes_in", "bytes_out", "replicas", "leaders", "leader_bytes_in")
SECONDS = 60.0


def plan(
    snapshot: Snapshot,
    *,
    balance: bool = False,
    drain: BrokerId | Iterable[BrokerId] = (),
    add_brokers: BrokerId | Iterable[BrokerId] = (),
    replace: Mapping[BrokerId, BrokerId] | None = None,
    demote: BrokerId | Iterable[BrokerId] = (),
    replication_factor: int | Mapping[str, int] | None = None,
    fix_racks: bool = False,
    leaders: bool = False,
    disks: bool = False,
    relieve: Mapping[str, float] | None = None,
    spread_topics: bool = False,
    any_rack: bool = False,
    load: LoadModel | str | PathLike[str] | None = None,
    topics: str | Iterable[str] = (),
    exclude_topics: str | Iterable[str] = (),
    exclude_brokers: BrokerId | Iterable[BrokerId] = (),
    exclude_partitions: Iterable[TopicPartition | str] = (),
    cordon: BrokerId | Iterable[BrokerId] = (),
    band: float | Mapping[str, float | None] | None = None,
    max_bytes: int | str | None = None,
    max_moves: int | None = None,
    fill: float = Limits().fill,
    extra_copies: int = Limits().extra_copies,
    moves_in: int | None = None,
    moves_out: int | None = None,
    seconds: float = SECONDS,
    seed: int = 0,
    old: Plan | None = None,
) -> Plan:
    """Make a plan for a cluster. Nothing is changed, and no broker is asked.

    The arguments mean what the commands `restow plan …` and their flags of the same names mean. Several
    requests make one plan:

        plan = restow.plan(snapshot, drain=[3], balance=True, load="load.json")

    `load` is a load model, or its file. `topics` and `exclude_topics` are patterns as of file names.
    `replication_factor` is a number for `topics`, or one for each topic: `{"orders": 3}`. `band` is one share
    for all goals, or one for each: `{"disk": 0.02, "cpu": None}`. `max_bytes` may be written as "50GB".

    The search begins with the targets of an `old` plan, if one is given, and changes little of it.

    A plan that has to leave partitions behind names them in `plan.leaves`. A request that cannot be met
    raises `InvalidInput`. The same request with the same seed gives the same plan.
    """
    arguments = dict(locals())
    model = _load_model(load)
    limits = RequestedLimits(extra_copies=extra_copies, moves_in=moves_in, moves_out=moves_out, fill=fill)
    return make_plan(
        snapshot, model, _request(arguments, model), limits=limits, seconds=seconds, old=old
    ).plan


@frozen
class MadePlan:
    """A plan and its input, to explain it."""

    plan: Plan
    snapshot: Snapshot
    load: LoadModel | None
    asked: Asked

    def explain(self) -> Explanation:
        """Explain what the plan achieves, and why it achieves no more."""
        from restow.plan.explain.explain import explain

        return explain(self.snapshot, self.load, self.plan, self.asked.request, self.asked)

    def why(self, seconds: float = SECONDS) -> Why:
        """Return answers about single partitions and brokers; each plan without a rule may take so long."""
        from restow.plan.explain.why import Why

        def again(snapshot: Snapshot, request: PlanRequest) -> tuple[Plan, Asked]:
            made = make_plan(snapshot, self.load, request, seconds=seconds)
            return made.plan, made.asked

        return Why(self.snapshot, self.asked, self.plan, again)

    def log_dirs(self) -> Sequence[Amount]:
        """Return the contents of each log dir, before and after."""
        from restow.plan.explain.amounts import by_log_dir

        return by_log_dir(self.snapshot, self.asked.arrays, self.plan.moves)


def make_plan(
    snapshot: Snapshot,
    load: LoadModel | None,
    request: PlanRequest,
    *,
    limits: Limits | RequestedLimits | None = None,
    seconds: float = SECONDS,
    told_to_stop: Callable[[], bool] | None = None,
    old: Plan | None = None,
    tell: Callable[[Progress, Bound], None] | None = None,
) -> MadePlan:
    """Search for the best plan within the time limit. Time spent in the compiler does not count.

    The search also ends, with its best plan so far, once `told_to_stop` returns True. It begins with the
    targets of an `old` plan for the same cluster, and changes little of it. `tell` hears how far it is.
    """
    from restow.plan.drift import check_same_cluster
    from restow.plan.judge.waves import check_sound
    from restow.plan.pin import check_limits
    from restow.plan.propose import propose
    from restow.plan.request.framing import ask
    from restow.plan.search.compiled import compiler_s
    from restow.runtime.clock import SystemClock

    check_limits(settled(limits, ()))
    if old is not None:
        check_same_cluster(old, snapshot)
    clock = SystemClock()

    def worked_s() -> float:
        return clock.monotonic_s() - compiler_s()

    until = worked_s() + seconds
    asked = ask(snapshot, load, request)
    made = propose(
        snapshot,
        load,
        request,
        lambda: worked_s() > until or (told_to_stop is not None and told_to_stop()),
        created_ms=snapshot.taken_ms,
        limits=limits,
        asked=asked,
        old=old,
        tell=tell,
    )
    check_sound(made, snapshot)
    return MadePlan(plan=made, snapshot=snapshot, load=load, asked=asked)


def goals_of(load: LoadModel | None) -> tuple[str, ...]:
    """Return the names of all goals: the usual ones, and the resources of the load model."""
    return (*GOALS, *(load.resources if load else ()))


def _load_model(given: LoadModel | str | PathLike[str] | None) -> LoadModel | None:
    from restow.plan.files.reading import read_load

    return read_load(given) if isinstance(given, str | PathLike) else given


def _request(given: Mapping[str, Any], load: LoadModel | None) -> PlanRequest:
    """Return the request that the arguments of `plan` make."""
    only = _names(given["topics"])
    most = given["max_bytes"]
    return PlanRequest(
        balance=given["balance"],
        leaders=given["leaders"],
        disks=given["disks"],
        fix_racks=given["fix_racks"],
        spread_topics=given["spread_topics"],
        add=_brokers(given["add_brokers"]),
        drain=_brokers(given["drain"]),
        demote=_brokers(given["demote"]),
        replace=dict(given["replace"] or {}),
        any_rack=given["any_rack"],
        replication_factors=_replication_factors(given["replication_factor"], only),
        relieve=dict(given["relieve"] or {}),
        bands=_bands(given["band"], load),
        only_topics=only,
        except_topics=_names(given["exclude_topics"]),
        except_brokers=_brokers(given["exclude_brokers"]),
        except_partitions=frozenset(map(_partition, given["exclude_partitions"])),
        cordon=_brokers(given["cordon"]),
        most_bytes=parse_size(most, "max_bytes") if isinstance(most, str) else most,
        most_moves=given["max_moves"],
        fill=given["fill"],
        seed=given["seed"],
    )


def _brokers(given: BrokerId | Iterable[BrokerId]) -> frozenset[BrokerId]:
    return frozenset([given] if isinstance(given, int) else given)


def _names(given: str | Iterable[str]) -> tuple[str, ...]:
    return tuple(name.strip() for name in given.split(",")) if isinstance(given, str) else tuple(given)


def _replication_factors(given: int | Mapping[str, int] | None, topics: tuple[str, ...]) -> dict[str, int]:
    if given is None or isinstance(given, Mapping):
        return dict(given or {})
    if not topics:
        raise InvalidInput(
            f"replication_factor: say which topics are to have {count(given, 'replica')}, like "
            "topics=['orders']; topics='*' means all but Kafka's internal ones"
        )
    return dict.fromkeys(topics, given)


def _bands(
    given: float | Mapping[str, float | None] | None, load: LoadModel | None
) -> dict[str, float | None]:
    if given is None or isinstance(given, Mapping):
        return dict(given or {})
    return dict.fromkeys(goals_of(load), given)


def _partition(given: TopicPartition | str) -> TopicPartition:
    return TopicPartition.parse(given) if isinstance(given, str) else given
