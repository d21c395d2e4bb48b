"""Every test of `tests/unit/controller` that has a store, on a real ZooKeeper."""

from __future__ import annotations

import pytest

from tests.conformance.test_controller_on_zookeeper import on_zookeeper  # noqa: F401  a fixture
from tests.unit.controller.test_controller_brokers import *  # noqa: F403
from tests.unit.controller.test_controller_failover import *  # noqa: F403
from tests.unit.controller.test_controller_office import *  # noqa: F403
from tests.unit.controller.test_controller_requests import *  # noqa: F403
from tests.unit.controller.test_controller_topics import *  # noqa: F403

pytestmark = [pytest.mark.jvm, pytest.mark.full]
