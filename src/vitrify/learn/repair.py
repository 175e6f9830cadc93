"""Find what is damaged in a run store, and move it aside: into the folder `damaged` of the store, where it is kept."""

from __future__ import annotations

from vitrify.errors import DamagedStore
from vitrify.files import Lock
from vitrify.learn import disk, groups, stored
from vitrify.learn.records import Index
from vitrify.learn.store import RunStore

FOLDER = "damaged"


def damaged(store: RunStore) -> dict[str, str]:
    """Return what is wrong with the runs and the groups of a store, by name; every file is read."""
    index = Index(store.path)
    records = index.records()
    found = dict(index.damaged)
    for record in records:
        try:
            changed = stored.changed_files(store.path / record.id) if record.done else []
            list(store.curves([record]))
        except DamagedStore as damage:
            found[record.id] = str(damage)
        else:
            if changed:
                found[record.id] = f"{', '.join(changed)} of run {record.id} changed since it was done"
    for folder in sorted((store.path / "groups").glob("[!.]*")):
        try:
            with disk.undamaged(folder):
                disk.must(disk.NAME.fullmatch(folder.name), "groups have other names")
            stored.runs_of(folder)
            if not Lock.holder(folder / "lock"):
                groups.recover(folder)
        except DamagedStore as damage:
            found[f"groups/{folder.name}"] = str(damage)
    return found


def repair(store: RunStore) -> dict[str, str]:
    """Move what is damaged aside, and return what that was and why; its runs can then be trained again."""
    moved: dict[str, str] = {}
    with disk.guarded(store.path, "repairing"), store.locked():
        Index(store.path).forget()
        while found := {name: why for name, why in damaged(store).items() if (store.path / name).exists()}:
            for name, why in found.items():
                place, number = store.path / FOLDER / name, 1
                while place.with_name(f"{place.name}.{number}").exists():
                    number += 1
                place.parent.mkdir(parents=True, exist_ok=True)
                (store.path / name).rename(place.with_name(f"{place.name}.{number}"))
                moved[name] = why  # and what rested on it may be damaged now
    return moved
