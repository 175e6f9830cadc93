"""Programs of Tracr, from their own source, compiled by us and by Tracr: parameters, width, seconds, wrong words.

    python benchmarks/tracr_programs.py [--words 10] [--limit 120] [--only reverse,sort]

Tracr is run where it is installed, or where `PYTHONPATH` names a checkout of it (it needs dm-haiku). A word is wrong
where Tracr's network differs from what plain Python says; where this says None nothing is asked.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from benchmarks.compilers import installed, limited

from tracr_programs import CASES, Case
from vitrify.constructions.catalogue import build
from vitrify.interop.tracr.reader import from_tracr

LIBRARY = Path(__file__).parents[1] / "examples" / "tracr" / "library.py"


def ours(name: str, case: Case) -> list[Any]:
    start = time.perf_counter()
    net = build(from_tracr(f"{LIBRARY}:{name}", case.symbols, case.length))
    return [net.sizes.dense, net.sizes.d_model, time.perf_counter() - start]


def theirs(name: str, case: Case, words: int, limit: int) -> list[Any]:
    """Parameters, width, seconds and wrong words of Tracr; or the reason why there is none."""
    import importlib.util

    import jax
    from tracr.compiler import compiling
    from tracr.rasp import rasp

    spec = importlib.util.spec_from_file_location("library", LIBRARY)
    assert spec is not None
    assert spec.loader is not None
    library = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(library)
    program = getattr(library, name)
    program = program if isinstance(program, rasp.SOp) else program()
    symbols, rng, wrong, asked = list(case.symbols), random.Random(0), 0, 0
    start = time.perf_counter()
    try:
        with limited(limit):
            model = compiling.compile_rasp_to_model(program, set(symbols), case.length, compiler_bos="BOS")
    except (TimeoutError, AttributeError, NotImplementedError, ValueError) as error:
        return [str(error)]
    seconds = time.perf_counter() - start
    for _ in range(words):
        word = [rng.choice(symbols) for _ in range(rng.randint(1, case.length))]
        if case.legal(word):
            asked += 1
            wrong += not all(map(same, case.means(word), model.apply(["BOS", *word]).decoded[1:]))
    count = sum(int(leaf.size) for leaf in jax.tree_util.tree_leaves(model.params))
    return [count, len(model.residual_labels), seconds, f"{wrong} of {asked}"]


def same(wanted: Any, found: Any) -> bool:
    if wanted is None or isinstance(wanted, str):
        return wanted is None or bool(wanted == found)
    return found is not None and abs(float(wanted) - float(found)) < 1e-3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=10)
    parser.add_argument("--limit", type=int, default=120, help="seconds that Tracr may take to compile one program")
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    only = [name for name in chosen.only.split(",") if name]
    print(
        "| program | symbols × length | parameters, width, seconds | Tracr: parameters, width, seconds, wrong words |"
    )
    print("| --- | --- | --- | --- |")
    for name, case in CASES.items():
        if not only or name in only:
            mine = ours(name, case)
            other = theirs(name, case, chosen.words, chosen.limit) if installed("tracr") else ["not installed"]
            rows = [", ".join(f"{x:.2f}" if isinstance(x, float) else str(x) for x in row) for row in (mine, other)]
            print(f"| {name} | {len(case.symbols)} × {case.length} | {' | '.join(rows)} |", flush=True)


if __name__ == "__main__":
    main()
