"""The contract of every construction in the catalogue, found by looking: no line here names one."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from inspect import signature
from typing import Any, get_type_hints

import numpy as np
import pytest

from built import ATTENTIONS
from cases import each
from samples import ENTRIES, LENGTH, SAMPLES, SOFT_AND_ANOTHER, built, common, own
from vitrify.certification import certify
from vitrify.certification.evidence import Scope
from vitrify.constructions.catalogue import Attention, Construction, build, constructions
from vitrify.errors import BuildRefused
from vitrify.net.explain import explain
from vitrify.net.folder import card
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.parameters import convert, described

EXACT = 1e-9  # what rounding may do to an answer
APPROXIMATE = {  # not exact by design, and why; everything else is, up to rounding. Their certificates state the error
    "maxout": "soft attention takes a maximum up to the asked-for tolerance",
    "convex-parts": "soft attention takes a maximum up to the asked-for tolerance",
    "convex-difference": "soft attention takes a maximum up to the asked-for tolerance",
    "max-min": "soft attention takes a maximum up to the asked-for tolerance",
    "triangulation": "soft attention takes a maximum up to the asked-for tolerance",
    "hats": "soft attention takes a maximum up to the asked-for tolerance",
    "estimate-norm": "the norm's epsilon moves the estimate by a stated amount",
    "sets-units": "soft attention averages over a set up to the asked-for tolerance",
    "sets-signs": "soft attention averages over a set up to the asked-for tolerance",
    "sets-superimposed": "soft attention averages over a set up to the asked-for tolerance",
    "sets-moments": "soft attention averages over a set up to the asked-for tolerance",
    "sets-trivial": "soft attention averages over a set up to the asked-for tolerance",
    "pointers-superimposed": "soft attention averages over a set up to the asked-for tolerance",
    "pointers-heads": "soft attention leaks up to the asked-for tolerance",
}


each_entry = each("entry", ENTRIES.values(), ids=lambda entry: entry.name)


@cache
def nets(name: str, attention: Attention) -> list[Weights[Any] | None]:
    """What an entry makes of its samples, made once for all tests."""
    return [built(ENTRIES[name], spec, attention) for spec in SAMPLES[ENTRIES[name].kind]]


@each_entry
def test_shapes_are_named_once_and_say_what_they_do(entry: Construction) -> None:
    assert len(ENTRIES) == len(constructions()) >= 5
    assert len(entry.summary.split()) >= 4
    assert entry.kind in SAMPLES
    assert entry.spec == entry.kind.__name__


@each_entry
def test_files_are_documented(entry: Construction) -> None:
    assert entry.declaration.doc.splitlines()[0].endswith(".")
    assert "arXiv" in entry.declaration.doc


def test_every_type_of_spec_has_one_default() -> None:
    for kind in {entry.kind for entry in ENTRIES.values()}:
        assert sum(entry.default for entry in ENTRIES.values() if entry.kind is kind) == 1


def proved(entry: Construction, *scopes: Scope) -> bool:
    """Return whether both links of all nets of a construction are proved, the second for one of some scopes."""
    first, second = map(Scope, entry.certified)
    return first.proved and second in scopes


def test_30_constructions_are_proved_and_10_equal_their_spec_at_every_length() -> None:
    assert sum(proved(entry, Scope.EVERY_LENGTH, Scope.MAX_LENGTH) for entry in ENTRIES.values()) >= 30
    assert sum(proved(entry, Scope.EVERY_LENGTH) for entry in ENTRIES.values()) >= 10
    assert set(APPROXIMATE) <= set(ENTRIES)


@each_entry
def test_what_is_read_without_importing_is_what_is_imported(entry: Construction) -> None:
    options = {parameter.name: parameter for parameter in described(entry.function)}
    fixed = {name: options.pop(name) for name in entry.fixed}  # parameters of the function that are no options
    assert entry.parameters == tuple(options.values())
    assert all(value == convert(fixed[name].hint, value, (), []) for name, value in entry.fixed.items())
    assert entry.declaration.origin(entry.spec) == (entry.kind.__module__, entry.kind.__name__)
    assert get_type_hints(entry.function)[next(iter(signature(entry.function).parameters))] is entry.kind
    assert all(parameter.help for parameter in entry.parameters)


@pytest.mark.long
@pytest.mark.parametrize(("name", "attention"), SOFT_AND_ANOTHER)
def test_it_builds_right_or_refuses(name: str, attention: Attention) -> None:
    """Every sample that it builds is certified; under its own attention, both links as far as is declared."""
    entry, seen = ENTRIES[name], list[tuple[Scope, ...]]()
    for spec, weights in zip(SAMPLES[entry.kind], nets(name, attention), strict=True):
        if weights is None:
            continue
        net = weights.architecture
        assert weights.about["source"]
        if "max_length" in entry.choices:
            assert net.max_length == LENGTH
        if isinstance(net, Transformer):
            assert weights.about["attention"] == attention
            assert {head.attention for block in net.blocks for head in block.heads} <= {attention}
        evidence = certify(weights, spec, work=1e7, prove=attention == own(entry))
        assert evidence.verdict == "holds", evidence
        assert evidence.cases > 0
        assert evidence.domains
        seen.append(tuple(link.scope for link in evidence.links))
        error = evidence.quantity("largest error")
        assert error is not None
        off = error.declared
        assert off <= EXACT or entry.name in APPROXIMATE, off
        assert evidence.allowed_error == (off if entry.name in APPROXIMATE and off > EXACT else 0)
        if evidence.proof is not None:
            assert evidence.proof["holds"] or (entry.unproved or "margins are") in evidence.proof["reason"]
            assert seen[-1][0].proved or not evidence.proof["holds"]
    if attention == own(entry):
        least = (max(scopes, key=list(Scope).index) for scopes in zip(*seen, strict=True))
        weakest = tuple(scope.value if scope.proved else "sampled" for scope in least)  # larger specs have more inputs
        assert entry.certified == weakest, f"declare certified={weakest!r}"


@pytest.mark.long
@each_entry
def test_the_name_and_the_card_say_up_to_which_length_the_weights_were_made(entry: Construction) -> None:
    """Weights that are the same at two lengths, without a table of positions, are the same at every length."""
    for spec, weights in zip(SAMPLES[entry.kind], nets(entry.name, own(entry)), strict=True):
        if weights is None or weights.architecture.reads != "tokens" or weights.architecture.max_length < 2:
            continue
        net: Any = weights.architecture
        says = net.name.endswith(f", up to T = {net.max_length}")
        other = at_another_length(entry, spec)
        depends = positions(weights).any() or (other is not None and tables(weights) != tables(other))
        assert says or not depends
        assert says or "every length" in entry.certified or net.longest > net.max_length
        assert not says or depends or other is None or "every length" not in entry.certified
        assert f"# {net.name}\n" in card(weights)
        assert not depends or "the weights depend on T" in card(weights)


def at_another_length(entry: Construction, spec: object) -> Weights[Any] | None:
    """Return the network of a spec for longer words, or shorter ones; None if the spec decides on the length."""
    for length in (LENGTH + 5, LENGTH - 3) if "max_length" in entry.choices else ():
        with suppress(BuildRefused):
            return build(spec, entry.name, **common(entry, length=length))
    return None


def positions(weights: Weights[Any]) -> Any:
    """Return the table of positions, without a row if there is none."""
    return np.asarray(dense(weights.arrays.get("pos_embed.W_pos", np.zeros((0, 0)))))


def tables(weights: Weights[Any]) -> dict[str, bytes]:
    """Return the content of all arrays but the table of positions."""
    return {name: dense(array).tobytes() for name, array in weights.arrays.items() if name != "pos_embed.W_pos"}


@pytest.mark.long
@each_entry
def test_something_is_built_and_by_default_everything(entry: Construction) -> None:
    found = nets(entry.name, own(entry))
    assert any(found)
    assert all(found) or not entry.default


@pytest.mark.long
@each("attention", ATTENTIONS)
@each_entry
def test_it_is_deterministic(entry: Construction, attention: Attention) -> None:
    for spec, one in zip(SAMPLES[entry.kind], nets(entry.name, attention), strict=True):
        two = built(entry, spec, attention)
        if one is None or two is None:
            assert one is two
            continue
        assert one.digest == two.digest
        assert one.labels == two.labels
        assert one.about == two.about


@pytest.mark.long
@each_entry
def test_every_part_is_named(entry: Construction) -> None:
    """Every dimension belongs to a space, every head and every unit to a label."""
    for weights in nets(entry.name, own(entry)):
        if weights is None:
            continue
        if not isinstance(weights.architecture, Transformer):
            told = [(label.block, u) for label in weights.labels.units for u in range(label.start, label.stop)]
            layers = enumerate(weights.architecture.units_per_layer)
            assert sorted(told) == [(layer, u) for layer, units in layers for u in range(units)]
            continue
        net, labels = weights.architecture, weights.labels
        assert {dim for space in labels.spaces for dim in space.dims} == set(range(net.d_model))
        for index, block in enumerate(net.blocks):
            heads = [head.index for head in labels.heads if head.block == index]
            assert sorted(heads) == list(range(len(block.heads)))
            wanted = {"mlp": block.units, "moe.router": block.router}
            wanted |= {f"moe.experts.{number}": expert.units for number, expert in enumerate(block.experts)}
            named: dict[str, list[int]] = {part: [] for part in wanted}
            for label in labels.units:
                if label.block == index:
                    named[label.part] += range(label.start, label.stop)
            assert {part: sorted(units) for part, units in named.items()} == {
                part: list(range(count)) for part, count in wanted.items()
            }


@each_entry
def test_it_is_found_by_its_shape(entry: Construction) -> None:
    for spec in SAMPLES[entry.kind]:
        if entry.default:
            assert build(spec, **common(entry)).digest == build(spec, entry.name, **common(entry)).digest


@pytest.mark.long
@each_entry
def test_a_shape_of_another_spec_is_refused(entry: Construction) -> None:
    for kind, samples in SAMPLES.items():
        if kind is not entry.kind:
            with pytest.raises(BuildRefused, match=f"not {entry.name!r}"):
                build(samples[0], entry.name)


@pytest.mark.long
@each_entry
def test_every_net_is_explained(entry: Construction) -> None:
    weights = next(filter(None, (net for attention in ATTENTIONS for net in nets(entry.name, attention))))
    page = str(explain(weights, shown=None))
    assert max(map(len, page.splitlines())) <= 100
    for head in weights.labels.heads:
        assert f"head {head.block}.{head.index}  " in page
    assert page.count(", units ") >= len(weights.labels.units)
