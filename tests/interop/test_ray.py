"""A sweep on a Ray cluster of two nodes, one of which is killed in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import waiting_shards
from vitrify.interop.pools import STORE, RayPool
from vitrify.learn import sweep
from vitrify.learn.experiment import in_words
from vitrify.learn.store import RunStore
from vitrify.learn.sweep import Report, train_on_workers
from vitrify.learn.train import train_groups
from waiting_shards import content

pytest.importorskip("ray", reason="Ray is not installed: pip install 'vitrify[ray]'")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray's own code warns

WORDS = ["layers=1", "heads=1", "d_model=8", "units=8", "length=8", "steps=6", "batch=4", "test_examples=16"]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two nodes with a core each."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv(waiting_shards.UNTIL, str(tmp_path / "now"))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    size = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": STORE}
    made = Cluster(initialize_head=True, head_node_args={**size, "include_dashboard": False})
    made.add_node(**size)
    yield made
    made.shutdown()


def test_a_node_that_is_killed_in_mid_sweep_costs_nothing(
    tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = in_words("markov", "transformer", [*WORDS, "lr=1e-3,1e-2"], 3).groups()
    alone, store = RunStore(tmp_path / "alone"), RunStore(tmp_path / "runs")
    train_groups(groups, alone)
    monkeypatch.setattr(sweep, "Shard", waiting_shards.Waiting)
    events: list[str] = []

    def kill_a_node(report: Report) -> None:
        events.extend([report.event] if report.event else [])
        steps = [task.event.step for task in report.tasks if task.event]
        if len(steps) == 2 and min(steps) >= waiting_shards.STEP and cluster.worker_nodes:
            cluster.remove_node(max(cluster.worker_nodes, key=str), allow_graceful=False)
        if report.event and "was lost" in report.event:
            (tmp_path / "now").touch()

    with RayPool(cluster.address) as pool:
        assert pool.size() == 2
        found = train_on_workers(groups, store, pool, checkpoint_seconds=-1.0, callback=kill_a_node)
    assert not cluster.worker_nodes
    assert [record.state for record in found] == ["finished"] * 6
    assert content(store) == content(alone)
    print(*events, sep="\n")  # noqa: T201 - the overhead of each shard
    assert len([event for event in events if "goes on from step 4 elsewhere" in event]) == 1
    assert len([event for event in events if "overhead" in event]) == 2
