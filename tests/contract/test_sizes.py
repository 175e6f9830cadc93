"""The size formulas of every construction, measured over a sweep of specs, lengths, attentions and position codes."""

from __future__ import annotations

from itertools import product
from typing import Any
from unittest.mock import Mock

import pytest

from built import ATTENTIONS
from cases import rest_slow
from samples import ENTRIES
from sweeps import SWEEPS
from vitrify.constructions.catalogue import Construction, build
from vitrify.errors import BuildRefused

LENGTHS = (3, 4, 8, 9)
TOLD = ("layers", "heads", "d_model", "units")  # a formula says each of these, or why it does not
SMALLEST_SWEEP = 3  # specs of different sizes


def cases(entry: Construction, number: int, every: bool) -> list[dict[str, Any]]:
    """Return the choices to measure a spec with: several lengths, where the spec decides its own too, and the others.

    Unless every combination is asked for, one spec has a quarter of them, and the next specs have the others.
    """
    lengths: list[dict[str, Any]] = [{"max_length": length} for length in LENGTHS if "max_length" in entry.choices]
    lengths += [{}] if _decided_by_spec(entry) or not lengths else []
    kinds = [{"attention": attention} for attention in ATTENTIONS] if "attention" in entry.choices else [{}]
    codes = [{"positions": code} for code in ("dyadic", "quadratic", "sqrt")] if "positions" in entry.choices else [{}]
    found = [length | kind | code for length, (kind, code) in product(lengths, product(kinds, codes))]
    return found if every or len(found) <= len(LENGTHS) else found[number % len(LENGTHS) :: len(LENGTHS)]


def _decided_by_spec(entry: Construction) -> bool:
    return any(p.name == "max_length" and p.default is None for p in entry.parameters)


@pytest.mark.long
@pytest.mark.parametrize("every", rest_slow([False, True], first=1))
@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_networks_have_the_sizes_that_formulas_say(name: str, every: bool) -> None:
    entry = ENTRIES[name]
    measured: dict[int, set[Any]] = {}
    for number, spec in enumerate(SWEEPS[entry.kind]):
        for choices in cases(entry, number, every):
            try:
                weights = build(spec, name, **choices)
            except BuildRefused:
                continue
            sizes = entry.sizes(spec, **choices)
            assert not sizes.problems(weights.sizes), (spec, choices, sizes.problems(weights.sizes))
            untold = [size for size in TOLD if size not in sizes.exact and size not in sizes.at_most]
            assert not untold or sizes.unknown, f"say why nothing is known of {untold}"
            measured.setdefault(number, set()).add(getattr(weights.architecture, "max_length", None))
    assert len(measured) >= SMALLEST_SWEEP, "the sweep has too few specs that it builds"
    if "max_length" in entry.choices:
        one_spec = max(measured.values(), key=len)
        lengths = set[Any]().union(*measured.values()) if _decided_by_spec(entry) else one_spec
        assert len(lengths) >= 2, "the sweep has one length only"


def test_formulas_are_read_from_the_spec_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No formula compiles: with builder, assembler and what is planned for them out of order, they all say the same."""
    specs = {name: SWEEPS[ENTRIES[name].kind][-1] for name in sorted(ENTRIES)}
    choices = {name: {"max_length": 4} if "max_length" in ENTRIES[name].choices else {} for name in specs}

    for part in (
        "kit.network.Builder.__init__",
        "kit.assembly.assemble",
        "net.weights.Weights.__post_init__",
        "constructions._programs.BitProgram.put",
        "constructions.grammar_probabilities.sums",
        "constructions.grammar_spans.SpanPlan.__post_init__",
        "constructions.cascade.reach",
    ):
        monkeypatch.setattr(f"vitrify.{part}", Mock(side_effect=AssertionError("a size formula builds a network")))
    for name, spec in specs.items():
        try:
            assert ENTRIES[name].sizes(spec, **choices[name])
        except BuildRefused:
            continue


def test_what_is_not_kept_is_told() -> None:
    entry = ENTRIES["parity"]
    spec = next(spec for spec in SWEEPS[entry.kind] if len(spec.states) == 3)  # type: ignore[attr-defined]
    problems = entry.sizes(spec, max_length=4).problems(build(spec, "log-depth", max_length=4).sizes)
    assert "heads is 2, by the formula 3" in problems
    assert len(problems) >= 3
