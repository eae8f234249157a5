"""A Ray cluster of several nodes on this machine."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def cluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """A head with one core; a test adds nodes."""
    ray = pytest.importorskip("ray", reason="ray is not installed (the [cluster] extra)")
    from ray.cluster_utils import Cluster

    # Where the nodes keep what they cache.
    monkeypatch.setenv("MALMOI_HOME", str(tmp_path_factory.mktemp("nodes")))
    # Seconds after which a silent node counts as dead; Ray's own default is longer than the test.
    settings = {"health_check_period_ms": 500, "health_check_failure_threshold": 3}
    memory = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "include_dashboard": False}
    found = Cluster(initialize_head=True, head_node_args=memory | {"_system_config": settings})
    ray.init(address=found.address, log_to_driver=False, logging_level="ERROR")
    yield found
    ray.shutdown()
    found.shutdown()
