"""What whole networks did on chains of bits, recorded: `benchmarks/bit_chain_runs.py` wrote the file."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "bit_chain_runs.json"
KINDS = {"tied": ("tied", "tied, start w = −1"), "attention": ("tied", "tied, start w = −1"), "untied": ("untied",)}


@cache
def runs() -> dict[str, Any]:
    """The whole file."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def nearest(form: str, p: float, q: float) -> dict[str, Any]:
    """The networks of the recorded chain that is nearest to (p, q); chains lie alike on both sides of p + q = 1."""
    every = runs()
    chains = sorted({(one["p"], one["q"]) for one in every["chains"]})
    near = min(chains, key=lambda chain: math.dist(chain, (p, q)))
    kinds = KINDS.get(form, ())
    found = [one for kind in kinds for one in every["chains"] if (one["p"], one["q"]) == near and one["kind"] == kind]
    about = {key: value for key, value in every.items() if key != "chains"}
    return {"p": near[0], "q": near[1], "kinds": found, **about}
