"""Seconds to certify large specs with proofs of both links; each must take less than a minute on a quiet core.

Run it with `.venv/bin/python benchmarks/proof_times.py [NAME…]`. The time includes tests and the attack, but not the
building of the network. `CPU` is the time of this process, which other work on the machine lengthens less.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from vitrify.certification import certify
from vitrify.constructions.catalogue import build
from vitrify.report.wording import link_text
from vitrify.spec.automata.families import symmetric_group
from vitrify.spec.grammars.families import english
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.ngrams.families import pydoc_sentences
from vitrify.spec.ngrams.model import NGramModel

LENGTH = 500  # of the formulas


def formula(text: str) -> Formula:
    return Formula.from_text(f"alphabet: a b\nlength: {LENGTH}\n{text}")


SPECS: Mapping[str, tuple[Callable[[], Any], str | None, dict[str, Any]]] = {
    "5-gram model of pydoc": (lambda: NGramModel.fit(pydoc_sentences(), 5), None, {}),
    "grammar of 312 rules": (english, None, {}),
    "S5 at T = 1,000": (partial(symmetric_group, 5), "log-depth", {"max_length": 1000}),
    "formula a S b": (partial(formula, "a S b"), "temporal", {"max_length": LENGTH}),
    "formula of 6 operators": (
        partial(formula, "H (a -> O (b & Y (a S (b & Y a))))"), "temporal", {"max_length": LENGTH}
    ),
    "10 nested Y": (partial(formula, "Y " * 10 + "a"), "temporal", {"max_length": LENGTH}),
    "20 nested Y": (partial(formula, "Y " * 20 + "a"), "temporal", {"max_length": LENGTH}),
}  # fmt: skip


def main(names: list[str]) -> None:
    """Print a line for each spec."""
    print(f"{'spec':<24} {'CPU':>7} {'wall':>7}  links")
    for name, (spec_of, construction, choices) in SPECS.items():
        if names and name not in names:
            continue
        spec = spec_of()
        weights = build(spec, construction, **choices)
        start, began = time.process_time(), time.perf_counter()
        evidence = certify(weights, spec, prove=True, attack=None)
        cpu, wall = time.process_time() - start, time.perf_counter() - began
        links = "; ".join(link_text(link) for link in evidence.links)
        print(f"{name:<24} {cpu:>5.1f} s {wall:>5.1f} s  {evidence.verdict}: {links}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
