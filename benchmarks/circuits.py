"""Circuit benchmark: run all methods on graded puzzles, search softness, train renderings; each part can be resumed.

python benchmarks/circuits.py methods 10          # all methods on 10 puzzles, in all renderings that exist
python benchmarks/circuits.py methods             # on all of `GRADED`: docs/how-to/circuit-leaderboard/*.json
python benchmarks/circuits.py soften              # networks without a recorded softness
python benchmarks/circuits.py train [NAME…]       # networks without a trained rendering
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from vitrify.files import put
from vitrify.mechanisms import soften, train
from vitrify.mechanisms.leaderboard import LeaderboardEntry, Row, harder, measure, read_entry
from vitrify.mechanisms.methods import METHODS
from vitrify.mechanisms.puzzle import answer_json, available, puzzle, renderings
from vitrify.mechanisms.score import Result
from vitrify.mechanisms.zoo import networks

ENTRIES = Path(__file__).parents[1] / "docs" / "how-to" / "circuit-leaderboard"
# From few edges to many, of depths and families of all kinds; the first ten are the quick table.
GRADED = (
    "bigram", "majority", "trigram-heads", "mod3-one-layer", "induction", "histogram", "since", "recall", "brackets",
    "mod3-log-depth", "fourgram-heads", "seen-an-a", "hops-2-2", "klein-one-layer", "composition", "facts-units",
    "nested-counts-2", "detect-ab", "adder", "ngram-4-3",
)  # fmt: skip
ABOUT = {
    "random": "random numbers",
    "activation-patching": "effect of patching all that leaves a node, of the weaker one of an edge's two nodes",
    "path-patching": "effect of patching the edge: how truth is defined, with another measure",
    "eap": "edge attribution patching: the gradient at the clean run",
    "eap-ig": "edge attribution patching, the mean of gradients at 5 interpolated inputs",
    "hisp": "gradient times activation of the weaker one of an edge's two nodes",
    "acdc": "edges left out greedily from the output backwards, threshold 0.01",
    "edge-pruning": "gates of edges learned by 120 steps of Adam",
}


def methods(names: tuple[str, ...]) -> None:
    """Run all methods on some puzzles; what was measured before is kept."""
    rows: dict[str, dict[tuple[str, str], Row]] = {name: {} for name in METHODS}
    for name in METHODS:
        path = ENTRIES / f"{name}.json"
        if path.is_file():
            rows[name] = {(row.puzzle, row.rendering): row for row in read_entry(path).rows}
    for name in names:
        missing = [kind for kind in available(name) if any((name, kind) not in rows[each] for each in METHODS)]
        for made in renderings(name, missing):
            truth = answer_json(made)
            for method, find in METHODS.items():
                start = time.process_time()
                row = measure(truth, Result(frozenset(), find(made.judge)), made.judge)
                rows[method][name, made.rendering] = row
                print(f"{made.folder:28} {method:20} {time.process_time() - start:6.1f} s  {row}", flush=True)
            for method in METHODS:
                entry = LeaderboardEntry(method, ABOUT[method], tuple(rows[method].values()))
                put(ENTRIES / f"{method}.json", json.dumps(entry.to_json(), indent=0) + "\n")
    for method in METHODS:
        entry = LeaderboardEntry(method, "", tuple(rows[method].values()))
        for rendering in ("entangled", "softened", "trained"):
            print(method, rendering, "AUC lower than plain by (puzzles, mean, interval)", harder(entry, rendering))


def search() -> None:
    """Search the softness of all networks that have none recorded."""
    known = dict(soften.recorded()) if soften.RECORDED.is_file() else {}
    for name in networks():
        if name not in known:
            made = puzzle(name)
            if found := soften.softest(made.judge, made.circuit.edges):
                known[name] = found
            print(name, found, flush=True)
            lines = [f"{json.dumps(each)}: {json.dumps(list(asdict(value).values()))}" for each, value in known.items()]
            put(soften.RECORDED, "{\n" + ",\n".join(lines) + "\n}\n")


def training(names: list[str]) -> None:
    """Train all networks that have no trained rendering, and record those that keep their circuit."""
    for name in names or networks():
        if name not in train.recorded():
            made, start = puzzle(name), time.process_time()
            result = train.trained(made.judge, made.circuit.edges, soften.recorded().get(name))
            if result.comparison.holds:
                train.record(name, result)
            print(
                name, f"{time.process_time() - start:.1f} s", result.recipe, result.moved, result.comparison, flush=True
            )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["soften"]:
            search()
        case ["train", *names]:
            training(names)
        case ["methods", *count]:
            methods(GRADED[: int(count[0]) if count else None])
        case _:
            print(__doc__)
