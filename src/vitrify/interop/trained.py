"""A finished run of a store as a model folder: the network that was trained, without a spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from vitrify.errors import FolderError
from vitrify.learn.models.catalogue import make as make_model
from vitrify.learn.store import Store
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import make as make_sandbox


def trained(folder: Path) -> Weights[Any]:
    """What a finished run has learned; its folder stands in its store."""
    store = Store(folder.resolve().parent)
    records = [record for record in store.runs() if record.id == folder.resolve().name]
    if not records or records[0].state != "finished":
        raise FolderError(f"{folder} is not the folder of a finished run: `vitrify runs` lists them")
    identity = records[0].identity
    sandbox = make_sandbox(identity["sandbox"]["name"], _without_name(identity["sandbox"]))
    family = make_model(identity["model"]["name"], _without_name(identity["model"]))
    arrays = {name: np.asarray(array) for name, array in store.weights(records[0]).items()}
    return Weights(family.architecture(sandbox), arrays, about={"source": "trained", "run": records[0].id, **identity})


def _without_name(part: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != "name"}
