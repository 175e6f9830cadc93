"""One way to name a network, for all commands and for `v.load`: a reference becomes a `Weights`, wherever it is kept.

| reference | network |
| --- | --- |
| `DIR` | of a model folder, or of a folder that `vitrify export` wrote, or a GPT-2 with ReLU units |
| `ID`, `STORE/ID` | of a run: its final weights. The beginning of an ID that is unique is enough |
| `best`, `STORE/best:QUERY` | of the run with the least excess loss among those that a query selects |
| `ID@STEP`, `best@STEP` | of a run at a checkpoint |

A store without a name is `VITRIFY_STORE`, or `./runs`. A network of a run is the same value as a built one, with
float64 numbers and without labels; its symbols are those of the sandbox that it was trained on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from vitrify.errors import FolderError, InputError
from vitrify.files import recover
from vitrify.net import folder as folders
from vitrify.net.weights import Weights
from vitrify.spec import read_spec
from vitrify.spec.kinds import Spec

if TYPE_CHECKING:
    from vitrify.learn.records import Record
    from vitrify.learn.store import RunStore

RUN = re.compile(r"(?:(?P<store>.*)/)?(?:(?P<id>[0-9a-f]{4,16})|best(?::(?P<query>[^/@]*))?)(?:@(?P<step>\d{1,18}))?")
FOREIGN = {"model_type", "vitrify", "transformer_lens", "architectures"}  # keys of config files of other libraries
CERTIFIED = "certified"  # folder in which a network that is no model folder is certified


class NetSource(Protocol):
    """The place where a network is kept."""

    @property
    def certified(self) -> Path:
        """The model folder that holds its certificate, or will."""

    def weights(self, *, verify: bool = True) -> Weights[Any]:
        """Return the network; with `verify`, one whose files changed since they were written is refused."""

    def spec(self, *, accept_changed: bool = False) -> Spec | None:
        """Return the spec that the network came with, if any; one that changed since is refused or accepted."""


@dataclass(frozen=True)
class ModelFolder:
    """A model folder, as `vitrify build` and `vitrify import` write it."""

    path: Path

    @property
    def certified(self) -> Path:
        return self.path

    def weights(self, *, verify: bool = True) -> Weights[Any]:
        return folders.load(self.path, verify=verify)

    def spec(self, *, accept_changed: bool = False) -> Spec | None:
        if not folders.has_spec(self.path):
            return None
        return read_spec(folders.spec_path(self.path, accept_changed=accept_changed))


@dataclass(frozen=True)
class ExportFolder:
    """A folder in the format of another library."""

    path: Path

    @property
    def certified(self) -> Path:
        return self.path / CERTIFIED

    @cached_property
    def _read(self) -> tuple[Weights[Any], Spec | None]:
        from vitrify.interop.imports import labelled

        net, spec = labelled(self.path)
        return net.weights, spec

    def weights(self, *, verify: bool = True) -> Weights[Any]:
        del verify  # it may have been trained further
        return self._read[0]

    def spec(self, *, accept_changed: bool = False) -> Spec | None:
        del accept_changed
        return self._read[1]


@dataclass(frozen=True)
class StoredRun:
    """A run of a store, at its end or at a checkpoint."""

    store: RunStore
    run: str | None  # None for the best
    query: str = ""
    step: int | None = None

    @cached_property
    def record(self) -> Record:
        """What the store knows of the run."""
        store, records = self.store, self.store.runs(self.query)
        if self.run is None:
            return _best(records, f"{store.path}: {self.query or 'all runs'}")
        named = [record for record in records if record.id.startswith(self.run)]
        if len(named) != 1:
            what = f"{len(named)} runs begin with {self.run}" if named else f"there is no run {self.run}"
            raise InputError(f"{what} in {store.path}: `vitrify runs` lists them")
        return named[0]

    @property
    def certified(self) -> Path:
        at = "" if self.step is None else f"-{self.step}"
        if self.step is not None:
            self.store.row(self.record, self.step)
        return self.store.path / self.record.id / f"{CERTIFIED}{at}"

    def weights(self, *, verify: bool = True) -> Weights[Any]:
        del verify  # the store compares lengths, and keeps no digests
        return self.store.net(self.record, self.step)

    def spec(self, *, accept_changed: bool = False) -> None:
        del accept_changed  # a sandbox is no spec


def _best(records: Sequence[Record], where: str) -> Record:
    """Return the finished run with the least excess loss; runs on different data have losses that don't compare."""
    finished = [record for record in records if record.state == "finished" and "excess" in record.values]
    if not finished:
        raise InputError(f"{where}: no finished run has a loss to compare; `vitrify runs` lists them")
    data = {repr(record.identity.get("sandbox")) for record in finished}
    if len(data) > 1:
        raise InputError(f"{where}: the best of {len(data)} sandboxes is not defined; choose one: best:QUERY")
    return min(finished, key=lambda record: (record.values["excess"], record.id))


def source(reference: Path | str) -> NetSource:
    """Return the place of the network that a reference names."""
    from vitrify.learn.store import RunStore

    path, run = Path(reference), RUN.fullmatch(str(reference))
    recover(path.absolute())
    if path.is_dir() and (path / "store.json").exists():
        return StoredRun(RunStore(path), None)
    if run and not (path / "config.json").exists():
        store = RunStore(run["store"])
        if store.path.is_dir():
            step = None if run["step"] is None else int(run["step"])
            return StoredRun(store, run["id"], run["query"] or "", step)
    if not path.is_dir():
        raise FolderError(
            f"{reference} is neither a folder nor a run: name a model folder, a folder of `vitrify export`, or a run: "
            f"ID, STORE/ID, best:QUERY, with @STEP for a checkpoint"
        )
    return ExportFolder(path) if (path / "model.onnx").is_file() or _is_foreign(path) else ModelFolder(path)


def _is_foreign(path: Path) -> bool:
    """Return whether a folder has the config file of another library; that of vitrify says what it is."""
    try:
        config = folders.read_json(path / "config.json")
    except FolderError:
        return False  # refused as a model folder
    return isinstance(config, dict) and config.get("format") != "vitrify" and bool(set(config) & FOREIGN)


def load(reference: Path | str, *, verify: bool = True) -> Weights[Any]:
    """Return the network that a reference names: a model folder, an export, `runs/ID`, `best:QUERY`, `ID@STEP`.

    With `verify`, a model folder whose files changed since they were written is refused; without, the numbers are taken
    as they are now.
    """
    return source(reference).weights(verify=verify)
