"""A grammar of English phrases over spans: cost of building, a certificate on sampled sentences, growth with depth.

Run it with `.venv/bin/python benchmarks/english_grammar.py`.
"""

from __future__ import annotations

import resource
import time

from vitrify.certification import certify
from vitrify.claims.bounded_depth_grammars_run_in_linear_depth import conjunctions
from vitrify.constructions.catalogue import build
from vitrify.constructions.grammar_spans import conjunctions as counted
from vitrify.errors import BuildRefused
from vitrify.report import wording
from vitrify.spec.grammars.families import english
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.grammars.phrases import Phrases

DEPTHS = range(4, 11)
SENTENCES = 1_500


def line(name: str, value: object) -> None:
    """Print one figure."""
    print(f"{name:<40} {value}")


def growth(depth: int) -> None:
    """One row of the table: sizes by the formula and as built, beside the number of shapes times rules squared."""
    grammar = english(depth)
    weights = build(grammar, "spans")
    size, promised, rules = weights.sizes, counted(Phrases.of(grammar)), len(grammar.rules)
    shapes = _shapes(grammar)
    bound = f"{shapes * rules**2:.1e}" if shapes else "–"
    print(
        f"{depth:>5} {max(grammar.lengths()):>5} {rules:>5} {shapes or 'many':>16} {promised:>12} "
        f"{len(conjunctions(weights)):>6} {size.units:>6} {size.heads:>5} {size.layers:>6} {size.d_model:>6} {bound:>8}"
    )


def _shapes(grammar: Grammar) -> int | None:
    """How many shapes the trees have, if they can be counted."""
    try:
        return grammar.leveled().count_shapes()
    except BuildRefused:
        return None


def main() -> None:
    """Print the figures."""
    start = time.perf_counter()
    grammar = english()
    weights = build(grammar)
    size = weights.sizes
    line("rules, depth, longest sentence", f"{len(grammar.rules)}, {grammar.depth}, {max(grammar.lengths())}")
    line("built as", weights.about["construction"])
    line("build seconds", f"{time.perf_counter() - start:.2f}")
    line("peak memory after building", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
    line("units, heads, layers, width", f"{size.units}, {size.heads}, {size.layers}, {size.d_model}")
    evidence = certify(weights, grammar, samples=SENTENCES)
    line("verdict", evidence.verdict)
    domains = "; ".join(wording.domains(evidence))
    line("certified prefixes", f"{evidence.cases:,} ({domains})")
    line("certify seconds", f"{evidence.seconds:.1f}")
    print(
        f"\n{'depth':>5} {'words':>5} {'rules':>5} {'shapes':>16} {'conjunctions':>12} {'built':>6} {'units':>6} "
        f"{'heads':>5} {'layers':>6} {'width':>6} {'c M^2':>8}"
    )
    for depth in DEPTHS:
        growth(depth)
    line("\npeak memory", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
