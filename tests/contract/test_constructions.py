"""The contract of every construction in the catalogue, found by looking: no line here names one."""

from __future__ import annotations

from typing import get_args

import pytest

from samples import ENTRIES, LENGTH, SAMPLES, built
from vitrify.certify import certify
from vitrify.cli.render_lists import shapes
from vitrify.constructions.catalogue import KINDS, Attention, Construction, Method, Settings, build, constructions
from vitrify.errors import BuildRefused
from vitrify.net.explain import explain
from vitrify.net.transformer import Transformer
from vitrify.registry import headlines, load, names

PACKAGE = "vitrify.constructions"
EXACT, WHOLE = 1e-9, 0.5  # what rounding may do to an answer; numbers that are rounded to whole ones
APPROXIMATE = {  # not exact by design, and why; everything else is, up to rounding. Their certificates state the error
    "maxout": "soft attention takes a maximum up to the asked-for tolerance",
    "convex-difference": "soft attention takes a maximum up to the asked-for tolerance",
    "estimate-norm": "the norm's epsilon moves the estimate by a stated amount",
    "sets-units": "soft attention averages over a set up to the asked-for tolerance",
    "sets-signs": "soft attention averages over a set up to the asked-for tolerance",
    "sets-coherent": "soft attention averages over a set up to the asked-for tolerance",
    "sets-moments": "soft attention averages over a set up to the asked-for tolerance",
}


@pytest.fixture(params=ENTRIES)
def entry(request: pytest.FixtureRequest) -> Construction:
    return ENTRIES[request.param]


def test_shapes_are_named_once_and_say_what_they_do(entry: Construction) -> None:
    assert len(ENTRIES) == len(constructions()) >= 5
    assert len(entry.summary.split()) >= 4
    assert entry.spec in SAMPLES


def test_files_are_documented() -> None:
    documented = {headline.name: headline.doc for headline in headlines(PACKAGE, "CONSTRUCTIONS")}
    assert list(documented) == names(PACKAGE)
    for name, doc in documented.items():
        assert doc.splitlines()[0].endswith("."), name
        assert load(PACKAGE, name).CONSTRUCTIONS, name
        assert "arXiv" in doc, name


def test_every_type_of_spec_has_one_default() -> None:
    for spec in {entry.spec for entry in ENTRIES.values()}:
        assert sum(entry.default for entry in ENTRIES.values() if entry.spec is spec) == 1


def strongest(method: str) -> Method:
    """What a certificate rests on, in one word."""
    return next(name for name in get_args(Method) if name in method.split("+"))


def test_at_least_15_shapes_are_proved_and_the_rest_certified() -> None:
    assert sum(entry.certified == "proved" for entry in ENTRIES.values()) >= 15
    assert set(APPROXIMATE) <= set(ENTRIES)


def test_what_is_listed_without_importing_is_what_is_imported() -> None:
    listing = [(s.name, s.spec, s.summary, s.certified, s.unproved) for s in shapes()]
    assert listing == [(e.shape, e.spec.__name__, e.summary, e.certified, e.unproved) for e in constructions()]


@pytest.mark.parametrize("attention", KINDS)
def test_it_builds_right_or_refuses(entry: Construction, attention: Attention) -> None:
    """Every sample that it builds is certified; under soft attention, at least by the method that is declared."""
    seen: list[Method] = []
    for spec in SAMPLES[entry.spec]:
        weights = built(entry, spec, attention)
        if weights is None:
            continue
        net = weights.architecture
        assert weights.about["source"]
        if entry.sequences:
            assert net.max_length == LENGTH
        if isinstance(net, Transformer):
            assert weights.about["attention"] == KINDS[attention]
            assert {head.attention for block in net.blocks for head in block.heads} <= {KINDS[attention]}
        evidence = certify(weights, spec, work=1e7, prove=attention == "soft")
        assert evidence.verdict == "holds", evidence
        assert evidence.cases > 0
        assert evidence.domain
        seen.append(strongest(evidence.method))
        off = evidence.declared["largest error"]
        assert off <= EXACT or off == WHOLE or entry.shape in APPROXIMATE, off
        if evidence.proof is not None:
            assert evidence.proof["holds"] == (seen[-1] == "proved")
            assert seen[-1] == "proved" or (entry.unproved or "margins are") in evidence.proof["reason"]
    if attention == "soft":
        weakest = max(seen, key=get_args(Method).index)
        assert entry.certified == weakest, f"declare certified={weakest!r}"
        assert not entry.unproved or weakest != "proved"


def test_something_is_built_and_by_default_everything(entry: Construction) -> None:
    nets = [built(entry, spec, "soft") for spec in SAMPLES[entry.spec]]
    assert any(nets)
    assert all(nets) or not entry.default


@pytest.mark.parametrize("attention", KINDS)
def test_it_is_deterministic(entry: Construction, attention: Attention) -> None:
    for spec in SAMPLES[entry.spec]:
        one, two = built(entry, spec, attention), built(entry, spec, attention)
        if one is None or two is None:
            assert one is two
            continue
        assert one.digest == two.digest
        assert one.labels == two.labels
        assert one.about == two.about


def test_every_part_is_named(entry: Construction) -> None:
    """Every dimension belongs to a space, every head and every unit to a label."""
    for spec in SAMPLES[entry.spec]:
        weights = built(entry, spec, "soft")
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
            heads = [head.place for head in labels.heads if head.block == index]
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


def test_it_is_found_by_its_shape(entry: Construction) -> None:
    for spec in SAMPLES[entry.spec]:
        settings = Settings(max_length=LENGTH if entry.sequences else None)
        if entry.default:
            assert build(spec, None, settings).digest == build(spec, entry.shape, settings).digest


def test_a_shape_of_another_spec_is_refused(entry: Construction) -> None:
    for kind, samples in SAMPLES.items():
        if kind is not entry.spec:
            with pytest.raises(BuildRefused, match=f"not {entry.shape!r}"):
                build(samples[0], entry.shape)


def test_every_net_is_explained(entry: Construction) -> None:
    weights = next(filter(None, (built(entry, spec, attention) for spec in SAMPLES[entry.spec] for attention in KINDS)))
    page = str(explain(weights, shown=None))
    assert max(map(len, page.splitlines())) <= 100
    for head in weights.labels.heads:
        assert f"head {head.block}.{head.place}  " in page
    assert page.count(", units ") >= len(weights.labels.units)
