"""A diagnosis as one page: no other file, no script, nothing from elsewhere; it prints well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import vitrify
from vitrify.interop.diagnose.predictions import KINDS
from vitrify.report.frame import environment


def page(found: Mapping[str, Any]) -> str:
    """The page, from a diagnosis as plain data; everything in it is escaped."""
    tasks: dict[str, list[Mapping[str, Any]]] = {}
    for cell in found["cells"]:
        tasks.setdefault(cell["task"], []).append(cell)
    text: str = (
        environment()
        .get_template("diagnosis.html.j2")
        .render(found=found, tasks=tasks, kinds=KINDS, version=vitrify.__version__)
    )
    return text
