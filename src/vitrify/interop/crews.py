"""Crews by the words of a command line."""

from __future__ import annotations

from vitrify.errors import InputError
from vitrify.learn.processes import Processes
from vitrify.learn.spread import Crew


def crew(where: str, workers: int | None = None) -> Crew:
    """`processes` of this machine, a Ray cluster of our own (`local-ray`), ours (`ray`), or any (`ray://HOST:PORT`)."""
    if where == "processes":
        return Processes(workers)
    addresses = {"local-ray": "local", "ray": "auto"}
    if where in addresses or where.startswith("ray://"):
        from vitrify.interop.ray_crew import RayCrew

        return RayCrew(addresses.get(where, where), workers)
    raise InputError(f"a sweep runs on processes, local-ray, ray or ray://HOST:PORT, not on {where!r}")
