"""Work on a simulated cluster, by name. A seed draws which of them a run has."""

from restow.sim.workloads.base import WorkContext, Workload
from restow.sim.workloads.configuring import Configuring
from restow.sim.workloads.electing import Electing
from restow.sim.workloads.groups import Grouping
from restow.sim.workloads.mixed_groups import MixedGrouping
from restow.sim.workloads.plans import Planning
from restow.sim.workloads.producing import Producing
from restow.sim.workloads.reassigning import Reassigning
from restow.sim.workloads.topics import ChangingTopics
from restow.sim.workloads.transacting import Transacting

WORKLOADS: dict[str, type[Workload]] = {
    each.name: each
    for each in (
        Producing,
        Planning,
        Reassigning,
        ChangingTopics,
        Configuring,
        Electing,
        Grouping,
        Transacting,
        MixedGrouping,
    )
}
"""Every workload by its name. Add new ones at the end."""

__all__ = ["WORKLOADS", "WorkContext", "Workload"]
