"""Mutants of many nets, put to every certifying method: which are wrong, which are certified, and why these do no harm.

    python benchmarks/soundness.py [--count 100] [--seed 0] [--only formula] [--first 0] [--list]

`wrong`: some word of the enumerated domain gets a wrong answer in float64, or the mutant can't be run. `proved`: the
link `weights` by margins. `spec`: the link `spec` by a lemma. `both links`: a proof that the mutant computes the spec.
`unsound`: a method says holds of something that is false on an enumerated word; there must be none. `later`: the
margins are proved and only words of more than half the length go wrong, which a proof of margins alone does not speak
about. `refused`: right on every word, and yet certified by no method. With `--list` every survivor is printed with its
reason.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from audit import Audit, audit
from audit_nets import NETS, subject

METHODS = ("exhaustive", "proved", "spec", "both links", "reals")
COLUMNS = ("words", "mutants", "wrong", *METHODS, "later", "refused", "survived", "unsound")


def row(words: int, found: Audit) -> Counter[str]:
    """The figures of one net."""
    methods = {method: found.certified(method) for method in METHODS}
    later = sum(judged.later for judged in found.judgements)
    sizes = {"mutants": len(found.judgements), "wrong": found.wrong, "refused": found.refused, "later": later}
    survived = sum(found.survivors.values())
    return Counter(sizes | methods | {"words": words, "survived": survived, "unsound": len(found.unsound)})


def main() -> int:
    """Print the table; 1 if some method was unsound or some survivor is unexplained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="mutants of each net")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only nets with this in their name")
    parser.add_argument("--first", type=int, default=0, help="the number of the first net, from 0")
    parser.add_argument("--list", action="store_true", help="every survivor with its reason")
    asked = parser.parse_args()
    start, total, reasons = time.perf_counter(), Counter[str](), Counter[str]()
    print(f"{'net':28}" + "".join(f"{name:>11}" for name in COLUMNS) + "  survivors by reason")
    for name in [name for name in [*NETS][asked.first :] if asked.only in name]:
        it = subject(name)
        found = audit(it, asked.count, asked.seed)
        figures = row(sum(map(len, it.words)), found)
        total, reasons = total + figures, reasons + Counter(found.survivors)
        told = ", ".join(f"{kind} {number}" for kind, number in sorted(found.survivors.items()))
        print(f"{name:28}" + "".join(f"{figures[column]:11}" for column in COLUMNS) + f"  {told}", flush=True)
        for judged in found.judgements:
            if judged.unsound:
                print(f"    UNSOUND {judged.what}: {'; '.join(judged.unsound)}")
            elif judged.reason and (asked.list or judged.reason[0] == "unexplained"):
                print(f"    {judged.what}: {judged.reason[0]}: {judged.reason[1]}")
    print(f"{'all':28}" + "".join(f"{total[column]:11}" for column in COLUMNS))
    for kind, number in reasons.most_common():
        print(f"  survivors, {kind}: {number}")
    print(f"  {time.perf_counter() - start:.0f} s")
    return int(bool(total["unsound"] or reasons["unexplained"]))


if __name__ == "__main__":
    sys.exit(main())
