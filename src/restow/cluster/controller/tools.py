"""Objects that the parts of one term share. Made at the election, dropped at the term's end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.cluster.controller.config import ControllerConfig
    from restow.cluster.controller.context import ControllerContext
    from restow.cluster.controller.guarded import GuardedStore
    from restow.cluster.controller.outbox import Outbox
    from restow.cluster.controller.state_nodes import StateNodes
    from restow.cluster.controller.steps import Hook


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """One set per term, so that all parts see the same context and write under the same epoch."""

    context: ControllerContext
    store: GuardedStore
    nodes: StateNodes
    outbox: Outbox
    config: ControllerConfig
    at: Hook
    new_topic_id: Callable[[], str]
