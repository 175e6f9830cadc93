"""What visitors have on the shelf: specs they gave and nets built from them, with a bound; what is old falls off."""

from __future__ import annotations

import asyncio
import secrets
import shutil
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T", bound="Thing")


@dataclass(eq=False)
class Thing:
    """Something that belongs to a visitor, with a folder of its own."""

    owner: str
    folder: Path
    key: str = field(default_factory=lambda: secrets.token_hex(8))


@dataclass(eq=False)
class SpecFile(Thing):
    """A spec as it was given: the name is only shown, the file has one of ours."""

    name: str = ""
    suffix: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.folder / f"spec{self.suffix}"


@dataclass(eq=False)
class Net(Thing):
    """A built net and the changes that its owner has made to it."""

    facts: dict[str, Any] = field(default_factory=dict)
    changes: list[dict[str, Any]] = field(default_factory=list)


class Shelf(Generic[T]):
    """So many things of each visitor, and so many in all; using one keeps it longer."""

    def __init__(self, own: int, kept: int) -> None:
        self.own, self.kept = own, kept
        self._things: OrderedDict[str, T] = OrderedDict()
        self._removing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._things)

    def put(self, thing: T) -> T:
        """Keep a thing; older ones may have to go."""
        self._things[thing.key] = thing
        mine = [key for key, other in self._things.items() if other.owner == thing.owner]
        for key in [*mine[: -self.own], *list(self._things)[: max(0, len(self._things) - self.kept)]]:
            self._remove(key)
        return thing

    def take(self, owner: str, key: str) -> T | None:
        """A visitor's own thing, if it is still there."""
        thing = self._things.get(key)
        if thing is None or thing.owner != owner:
            return None
        self._things.move_to_end(key)
        return thing

    def drop(self, thing: T) -> None:
        """Let go of a thing."""
        self._remove(thing.key)

    def _remove(self, key: str) -> None:
        thing = self._things.pop(key, None)
        if thing is None:
            return
        task = asyncio.create_task(asyncio.to_thread(shutil.rmtree, thing.folder, ignore_errors=True))
        self._removing.add(task)  # a task that nobody holds may be lost
        task.add_done_callback(self._removing.discard)
