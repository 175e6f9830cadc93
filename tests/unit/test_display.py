"""What notebooks show of specs, nets, runs and evidence: well-formed HTML with the numbers, everything escaped."""

from __future__ import annotations

import re
from typing import Any

import html5lib
import numpy as np
import pytest

from cases import each
from samples import ENTRIES, SAMPLES, built
from vitrify.certification import Criterion, Domain, Evidence, Method, Quantity
from vitrify.constructions.log_depth import log_depth
from vitrify.errors import InputError
from vitrify.kit import assemble
from vitrify.learn.runs import Run, RunList
from vitrify.markup import ROWS, card, shade, table, tag, text
from vitrify.net.display import TOKENS
from vitrify.net.explain import explain
from vitrify.net.inference import trace
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.computation.connectivity import Connectivity
from vitrify.spec.geometry.scene import Scene
from vitrify.spec.kinds import suffixes
from vitrify.spec.ngrams.families import random_ngram

SPECS = [spec for specs in SAMPLES.values() for spec in specs[:1]]
EVIL = "<script>alert('&')</script>"


def parsed(value: Any) -> Any:
    """The tree of what a notebook shows; any error of the HTML raises."""
    page = f'<!doctype html><html lang="en"><title>shown</title><body>{value._repr_html_()}</body></html>'
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)


def words(tree: Any) -> str:
    """All text but the style."""
    for style in tree.iter("style"):
        style.text = ""
    return re.sub(r"\s+", " ", " ".join(tree.itertext()))


def cells(tree: Any) -> list[list[str]]:
    return [["".join(cell.itertext()) for cell in row if cell.tag == "td"] for row in tree.iter("tr")]


@pytest.fixture(scope="module")
def net() -> Weights[Any]:
    return assemble(log_depth(Automaton.from_regex("(ab|ba)*"), max_length=8))


@each("spec", SPECS, ids=lambda spec: type(spec).__name__)
def test_every_spec_shows_its_kind_and_how_its_file_begins(spec: Any, tmp_path: Any) -> None:
    told = words(parsed(spec))
    assert suffixes()[spec.suffix].description in told
    assert type(spec).__name__ in told
    spec.write(tmp_path / f"x{spec.suffix}")
    lines = (tmp_path / f"x{spec.suffix}").read_text().splitlines()
    for line in lines[:12]:
        assert re.sub(r"\s+", " ", line.strip())[:100] in told


def test_sizes_of_specs_are_counts_of_what_they_hold() -> None:
    spec = Automaton.from_regex("(ab|ba)*")
    assert f"states {len(spec.states)}; alphabet 2; initial_state {spec.initial_state}; accepting 1" in words(
        parsed(spec)
    )


def test_a_large_model_is_not_written_to_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_ngram(2, 3, seed=1)
    monkeypatch.setattr("vitrify.spec.ngrams.model.MAX_DRAWN", 3)
    monkeypatch.setattr(type(model), "write", lambda *_: pytest.fail("written"))
    assert repr(model) in words(parsed(model))


def test_weights_show_their_sizes_arrays_and_labels(net: Weights[Any]) -> None:
    tree, size = parsed(net), net.sizes
    rows = cells(tree)
    assert [text(value) for value in (size.layers, size.heads, size.d_model, size.units, size.nonzero, size.dense)] == (
        rows[1][:6]
    )
    for name, array in net.arrays.items():
        shape = " × ".join(map(str, array.shape))
        assert [name, shape, str(np.count_nonzero(array))] in [row[:3] for row in rows]
    told = words(tree)
    labels = net.labels
    names = [one.name for one in labels.spaces] + [one.name for one in labels.heads]
    assert all(name in told for name in [*names, *(one.name for one in labels.units)])


def test_a_trace_shows_what_every_space_says_at_every_token(net: Weights[Any]) -> None:
    run = trace(net, "abba")
    tree = parsed(run)
    assert ["map 3", *map(str, run.read("map 3"))] in cells(tree)
    assert ["older map 2", *map(str, run.read("older map 2"))] in cells(tree)
    moments = [element.text for element in tree.iter("summary")]
    assert moments[:3] == ["after embedding", "block 0, after attention", "block 0, after its units"]
    looks = [cell.get("title") for cell in tree.iter("td") if cell.get("class") == "shade"]
    assert any(title and title.startswith("b → a: 0.99") for title in looks)
    assert len(looks) == 3 * 5 * 5


def test_an_explanation_shows_what_every_head_attends_to(net: Weights[Any]) -> None:
    shown = explain(net)
    rows = cells(parsed(shown))
    for head in shown.heads:
        assert [head.location, head.name, text("; ".join(head.attends_to)), ", ".join(head.copies)] in rows


def test_runs_show_their_last_measurements_and_draw_their_curves(net: Weights[Any]) -> None:
    curves = [
        [{"step": step, "loss": seed + 1 / (1 + step), "broken": -1, "stopped": -1} for step in (0, 8)]
        for seed in (0, 1)
    ]
    runs = RunList(Run({"seed": seed, "model": EVIL}, curve, net) for seed, curve in enumerate(curves))
    rows = cells(parsed(runs))
    assert [row[1:] for row in rows[1:]] == [["0", "finished", "8", "0.111111"], ["1", "finished", "8", "1.11111"]]
    assert [list(np.asarray(line.get_ydata())) for line in runs.plot().axes[0].lines] == [
        [1.0, 1 / 9],
        [2.0, 1 + 1 / 9],
    ]
    assert cells(parsed(runs[0]))[1] == rows[1]
    assert len(runs[1].plot().axes[0].lines) == 1
    with pytest.raises(InputError, match="no measurement 'speed'; it has loss"):
        runs.plot("speed")


def test_attention_is_drawn_with_a_picture_for_each_head(net: Weights[Any]) -> None:
    run = trace(net, "abba")
    pictures = [axes.images[0].get_array() for axes in run.plot().axes if axes.images]
    assert len(pictures) == 3
    assert np.array_equal(np.asarray(pictures[1]), run["blocks.1.attn.hook_pattern"][0])
    recurrent = built(ENTRIES["elman"], SAMPLES[Automaton][0], "softmax")
    assert recurrent is not None
    with pytest.raises(InputError, match="no attention to draw"):
        trace(recurrent, [recurrent.architecture.inputs[1]]).plot()


@pytest.mark.parametrize(
    ("shape", "kind", "said"),
    [("features", Scene, "conv.0.hook_post"), ("elman", Automaton, "state"), ("loop", Connectivity, "a")],
)
def test_nets_of_every_architecture_and_their_runs_are_shown(shape: str, kind: type, said: str) -> None:
    weights = built(ENTRIES[shape], SAMPLES[kind][0], "softmax")
    assert weights is not None
    net = weights.architecture
    given = {
        "image": ["0"] * 144,
        "rows": ["1-2"],
        "tokens": [net.output.symbols[0]],
    }
    assert net.tag in words(parsed(weights))
    assert said in words(parsed(trace(weights, given[net.reads])))


def test_evidence_shows_its_verdict_declared_and_measured_and_the_witness() -> None:
    evidence = Evidence(
        "fails",
        12_345,
        (Domain("words", Method.EXHAUSTIVE, 12_345, 0, 9),),
        (Quantity("width", 9, 8, "="),),
        (Criterion.judged("loss", [0.5, 0.25], at_most=0.3),),
        {"word": "a b"},
        3,
        0.5,
        ("a note",),
    )
    tree = parsed(evidence)
    badge = next(span for span in tree.iter("span") if "badge" in span.get("class", ""))
    assert (badge.text, badge.get("class")) == ("✗ fails", "badge bad")
    assert ["width", "=", "8", "9"] in cells(tree)
    assert any(row[:1] == ["loss"] and row[-2:] == ["1/2", "fails"] for row in cells(tree))
    assert ["words", "exhaustive", "12,345", "0", "9"] in cells(tree)
    assert ["word", "a b"] in cells(tree)
    told = words(tree)
    assert all(part in told for part in ("12,345 cases", "words", "seed 3", "a note"))


def test_nothing_that_is_said_becomes_an_element(net: Weights[Any]) -> None:
    spec = Automaton((EVIL,), ("a",), ((0,),), 0, frozenset({0}))
    about = Weights(net.architecture, net.arrays, net.labels, {EVIL: EVIL})
    evidence = Evidence(
        "holds",
        1,
        (Domain(EVIL, Method.SAMPLED, 1, settings={EVIL: EVIL}),),
        (Quantity(EVIL, EVIL, EVIL, "="),),
        (Criterion.judged(EVIL, [1.0]),),
        {EVIL: EVIL},
        notes=(EVIL,),
        proof={EVIL: 1},
        parts={EVIL: Evidence("holds", notes=(EVIL,))},
    )
    odd = trace(net, "ab")
    run = type(odd)(odd.weights, (EVIL, EVIL, EVIL), odd.activations)
    for value in (spec, about, run, evidence):
        tree = parsed(value)
        assert not list(tree.iter("script"))
        assert "alert('&')" in words(tree)


def test_attributes_are_escaped_and_numbers_shaded_within_bounds() -> None:
    assert tag("td", "", title='"><b>') == '<td title="&quot;&gt;&lt;b&gt;"></td>'
    assert 'rgba(70,110,220,0.75)">1</td>' in shade(1.7)
    assert shade(-1) == '<td class="shade"></td>'
    assert ">.25</td>" in shade(0.25)


def test_long_tables_and_runs_are_cut_and_say_so(net: Weights[Any]) -> None:
    assert f"… and {5} more lines" in table(["n"], [[n] for n in range(ROWS + 5)], "lines")
    run = trace(net, "ab")
    many = 40
    grown = {name: np.repeat(value, 20, axis=-2)[..., :many, :] for name, value in run.activations.items()}
    grown |= {name: np.repeat(value, 20, axis=-1) for name, value in grown.items() if name.endswith("pattern")}
    told = words(parsed(type(run)(run.weights, ("a",) * many, grown)))
    assert f"40 positions, the first {TOKENS} shown" in told


def test_the_style_speaks_of_nothing_outside_the_frame() -> None:
    style = re.search(r"<style>(.*)</style>", card("x"), re.DOTALL)
    assert style
    selectors = [one for rule in re.findall(r"([^{}]+)\{", style[1]) for one in rule.split(",")]
    assert all(one.strip().startswith(".vitrify") for one in selectors)
    assert not re.search(r"url\(|@import|http", style[1])
