"""Shards that wait in mid-training until a test has done what it came for, and what a store holds in the end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vitrify.learn.disk import read_json
from vitrify.learn.store import RunStore
from vitrify.learn.sweep import Shard
from vitrify.learn.trainer import TrainEvent

STEP = 4  # the first at which they wait
UNTIL = "VITRIFY_TEST_WAITS_FOR"  # the variable that names a file: they wait until it is there


class Waiting(Shard):
    """A shard that is in the middle of its training for as long as a test needs it there."""

    def events(self) -> Iterator[TrainEvent]:
        for event in super().events():
            yield event
            while STEP <= event.step < self.group.recipe.steps and not Path(os.environ[UNTIL]).exists():
                time.sleep(0.02)


def content(store: RunStore) -> dict[str, Any]:
    """All that a store holds of its runs, byte for byte, but for clocks and for who was trained beside whom."""
    found: dict[str, Any] = {}
    for place in store.path.glob("[0-9a-f]*"):
        found |= {f"{place.name}/{name}": (place / name).read_bytes() for name in ("log.jsonl", "weights.safetensors")}
        result, run = (read_json(place / name) or {} for name in ("result.json", "run.json"))
        found[f"{place.name}/result"] = {key: value for key, value in result.items() if key not in ("ended", "seconds")}
        found[f"{place.name}/identity"] = run["identity"]
        found[f"{place.name}/files"] = sorted(path.name for path in place.iterdir())
    found["left of groups"] = [path.name for path in (store.path / "groups").glob("*")]
    return found
