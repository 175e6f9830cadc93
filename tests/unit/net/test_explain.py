"""The glass box in words: known heads, spaces and units of every kind of net are explained right."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from vitrify.cli.app import app
from vitrify.constructions.catalogue import build
from vitrify.net.explain import explain
from vitrify.net.explain_measured import Measured
from vitrify.net.explain_page import Explanation
from vitrify.net.explain_terms import Source, added, copied, runs, worked
from vitrify.net.folder import save
from vitrify.net.inference import trace
from vitrify.net.labels import Labels
from vitrify.net.spaces import Flag, Integers, MultiHot, OneHot
from vitrify.spec import read_spec
from vitrify.spec.automata.families import symmetric_group
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.tasks.k_hop import KHop

EXAMPLES = Path(__file__).parents[3] / "examples"


def explained(name: str, shape: str | None = None, *, shown: int | None = 12, **settings: Any) -> Explanation:
    return explain(build(read_spec(EXAMPLES / name), shape, **settings), shown=shown)


def head(found: Explanation, location: str) -> Any:
    return next(h for h in found.heads if h.location == location)


def test_an_ngram_model() -> None:
    found = explained("weather.arpa", max_length=8)
    assert {(s.name, s.dims, s.born, s.dies) for s in found.spaces} >= {
        ("token", "0–3", 0, 2),
        ("logits", "18–21", 2, 2),
    }
    back = head(found, "0.1")
    assert back.attends_to == ("the position 1 before its own (by position)",)
    assert back.copies == ("slot 1 ← token",)
    assert back.sink == "BOS scores 2"
    assert "β 30.25" in back.attention
    assert "gap 1" in back.attention
    (table,) = found.units
    assert table.left_out == 3
    assert any(
        row.startswith("rain snow: if slot 0 = snow and slot 1 = rain: logits[snow] +0.56") for row in table.lines
    )
    assert found.readout[1].startswith("rain ← logits[rain] − 1.1")


@pytest.mark.parametrize("positions", ["dyadic", "quadratic"])
def test_shifts_of_an_automaton_are_read_from_the_position_code(positions: str) -> None:
    found = explained("abba.regex", max_length=8, positions=positions)
    code = "position" if positions == "dyadic" else next(s.name for s in found.spaces if s.content == "by position")
    assert [h.attends_to for h in found.heads] == [(f"the position {n} before its own (by {code})",) for n in (1, 2, 4)]
    assert head(found, "1.0").copies == ("older map 1 ← map 1",)
    assert "unit 0: relu(map 0[1] + 16·older map 0[0] − 8) × (map 1[0] +1)" in found.units[0].lines


def test_a_grammar() -> None:
    found = explained("ambiguous.cfg", "shapes")
    assert any(
        "PP → 'near'↑1 Name: if complete 1.0∋Name and word @ -1∋near: complete 2.1∋PP +1" in r
        for u in found.units
        for r in u.lines
    )
    assert head(found, "4.0").attends_to == ("(query words read=5)(key words read=3)",)


def test_a_program() -> None:
    found = explained("reverse.rasp")
    assert head(found, "2.0").attends_to == ("keys whose place is the query's opposite (× 0.5)",)
    assert head(found, "0.0").attends_to == ("all that it sees, equally",)
    assert found.readout == ("each symbol has the logit that aggregate gives it",)


def test_a_formula() -> None:
    found = explained("door.ltl", attention="hard")
    names = ["token", "bos", "Y (!close S ring)", "open & (!(Y (!close S ring)))"]
    assert [space.name for space in found.spaces] == names
    since = head(found, "0.0")
    assert since.attends_to == ("keys with the largest token=ring + token=close",)
    assert since.copies == (f"{names[2]} ← token=ring",)
    assert "ties right, strict" in since.attention
    assert found.units[0].lines == (f"unit 0: if token = open and not bos and not {names[2]}: {names[3]} +1",)


def test_experts() -> None:
    found = explained("world.knowledge.toml", shown=None)
    rows = {u.location: u.lines for u in found.units}
    assert "MLP 0 router, units 0–12" in rows
    assert (
        "key: South Korea 3 back: if 3 back = Korea and 4 back = South: answer[Seoul] +1"
        in rows["MLP 0 experts.0, units 0–13"]
    )
    assert all(u.left_out == 0 for u in found.units)


def test_other_architectures() -> None:
    register, scene = explained("awoke.patterns", "register"), explained("faces.scene.toml")
    assert register.what.startswith("a recurrent net: its state of 68 numbers follows h ← h A + x B")
    assert "<s>: if nothing in 0 back: next class[WHO] +1" in register.units[0].lines
    assert scene.what.startswith("a convolutional net: 3 convolutions and 1 dense layers")
    assert "house ← −roof − door + 1" in scene.readout


def test_long_lists_are_cut_with_a_count() -> None:
    short, full = explained("weather.arpa", shown=1), explained("weather.arpa", shown=None)
    assert short.left_out == {"spaces": 2, "heads": 0, "units": 0, "readout": 3}
    assert set(full.left_out.values()) == {0}
    assert "  … and 2 more spaces (--all)" in str(short)
    assert "  … and 14 more (--all)" in str(short)
    assert "--all" not in str(full)


def test_pages_are_at_most_100_columns_wide() -> None:
    for name in ("weather.arpa", "phrases.pcfg", "world.knowledge.toml", "zigzag.maxout.json", "faces.scene.toml"):
        page = str(explained(name))
        assert max(map(len, page.splitlines())) <= 100
        assert "readout" in page


def test_the_command_line_prints_it(tmp_path: Path) -> None:
    spec = Formula.from_text("alphabet: a b c\nlength: 9\n!c S b")
    save(build(spec, attention="hard"), tmp_path / "net", spec)
    run = CliRunner()
    page = run.invoke(app, ["explain", str(tmp_path / "net")])
    assert page.exit_code == 0
    assert "head 0.0  last marked: Y (!c S b)  [hard, ties right, strict" in page.stdout
    data = json.loads(run.invoke(app, ["explain", str(tmp_path / "net"), "--json"]).stdout)
    assert data["heads"][0]["location"] == "0.0"
    assert run.invoke(app, ["explain", str(tmp_path / "net"), "--formula"]).stdout == '("a") S ("b")\n'
    found = json.loads(run.invoke(app, ["explain", str(tmp_path / "net"), "--formula", "--json"]).stdout)
    assert found["alphabet"] == ["a", "b", "c"]
    assert (
        Formula.from_text(f"alphabet: a b c\nlength: 9\n{found['formula']}").holds(WORDS) == spec.holds(WORDS)
    ).all()


WORDS = np.array(list(product(range(3), repeat=6)))
SPACES = [
    Source("f", Flag(), (0,)),
    Source("x", OneHot(("a", "b", "c"), void=True), (1, 2, 3)),
    Source("y", OneHot(("a", "b")), (4, 5)),
    Source("m", MultiHot(("p", "q")), (6, 7)),
]


def legal() -> list[np.ndarray]:
    xs = [np.zeros(3), *np.eye(3)]
    bits = [np.array(pair) for pair in product((0.0, 1.0), repeat=2)]
    return [np.concatenate([[f], x, y, m]) for f in (0.0, 1.0) for x in xs for y in np.eye(2) for m in bits]


def true_at(wish: str, vector: np.ndarray) -> bool:
    """What a condition says about a vector, worked out from its text."""
    said = {
        s.name: {v for v, at in zip(getattr(s.kind, "values", ("1",)), s.dims, strict=True) if vector[at]}
        for s in SPACES
    }
    if wish.startswith("nothing in "):
        return not said[wish.removeprefix("nothing in ")]
    if wish.startswith("not "):
        return not any(true_at(part, vector) for part in wish.removeprefix("not ").strip("{}").split(", "))
    for sign in (" = ", " ≠ "):
        if sign in wish:
            name, values = wish.split(sign)
            return bool(said[name] & set(values.strip("{}").split(", "))) == (sign == " = ")
    name, _, value = wish.partition("∋")
    return (value or "1") in said[name]


@pytest.mark.long
def test_conditions_say_when_a_unit_works() -> None:
    rng, told = np.random.default_rng(0), 0
    for _ in range(3_000):
        column = rng.integers(-2, 3, 8) * (rng.random(8) < 0.5).astype(float)
        bias = float(rng.integers(-5, 3))
        text, height = worked(column, bias, SPACES)
        if height is None:
            assert text.startswith("relu(")
            continue
        told += 1
        for vector in legal():
            pre = float(vector @ column + bias)
            assert (pre > 0) == all(true_at(wish, vector) for wish in text.split(" and ")), (column, bias, text, vector)
            assert pre <= 0 or pre == height
    assert told >= 100


def test_sums_and_maps_in_words() -> None:
    assert added([("a", 2.0), ("b", -1.0), ("c", 0.0)], 0.5) == "2·a − b + 0.5"
    assert added([], 0.0) == "0"
    given = [Source("t", OneHot(("a", "b")), (0, 1)), Source("n", Integers(("n",), 0, 9), (2,))]
    made = [Source("s", OneHot(("a", "b")), (0, 1)), Source("o", None, (2,))]
    assert copied(np.diag([1.0, 1.0, 3.0]), np.zeros(3), given, made) == ["s ← t", "o ← 3·n"]
    assert copied(np.diag([1.0, 2.0, 0.0]), np.array([0, 1.0, 0]), given, made) == ["s=a ← t=a", "s=b ← 2·t=b + 1"]


def test_cleared_dimensions_are_read_from_the_weights_and_not_from_names() -> None:
    weights = build(symmetric_group(3), "log-depth", max_length=12)
    erasers = [label for label in weights.labels.units if label.name == "erase"]
    assert erasers
    units = tuple(replace(label, unit_names=()) for label in weights.labels.units)
    assert str(explain(replace(weights, labels=replace(weights.labels, units=units)))).count(
        "clears dimensions"
    ) == len(erasers)
    for label in erasers:
        dims = runs([int(name.rsplit(" ", 1)[1]) for name in label.unit_names])
        assert f"clears dimensions {dims} for new spaces" in str(explain(weights))


def test_heads_without_labels_are_measured_by_offset_and_content() -> None:
    """An induction network whose labels are removed: what it was built to do is found on random words."""
    net = build(KHop(hops=1, symbols=4, length=16), attention="hard")
    found = explain(replace(net, labels=Labels()))
    previous, matching = found.heads
    assert previous.attends_to[0].startswith("mean weights by position: 1.00 on the previous position")
    assert re.search(r"by content: 0\.00 on earlier .*, 1\.00 on keys right after such", matching.attends_to[1])
    shares = [[int(share) for share in re.findall(r"(\d+)%", head.attends_to[2])] for head in found.heads]
    assert (shares[0][0], shares[1][2]) == (100, max(shares[1]))  # offset; symbols of the query and before the key
    assert max(shares[0][1:]) <= 1
    assert max(shares[1][:2]) <= shares[1][2] / 2
    w_q, w_k = (net.arrays[f"blocks.0.attn.W_{letter}"][0] for letter in "QK")
    assert previous.name.startswith(f"‖W_Q W_Kᵀ‖ = {np.sqrt(np.sum((w_q @ w_k.T) ** 2)):.3g},")
    assert found.measured[-1].endswith("the final answer at 100% of the positions, KL 0")
    first = re.search(r"(\d+)% of the positions, KL ([\d.]+)$", found.measured[2])
    assert first
    assert int(first[1]) < 100
    assert float(first[2]) > 0
    assert "measured on 64 random words of 16 symbols" in str(found)
    assert explain(net).measured == ()
    short = explain(replace(net, labels=Labels()), shown=0)
    assert (short.heads, short.left_out["heads"]) == ((), 2)


def test_the_norm_of_the_stream_and_the_lens_are_those_of_a_run() -> None:
    net = replace(build(KHop(hops=1, symbols=4, length=6), attention="softmax"), labels=Labels())
    measured = Measured(net)
    words = [[net.architecture.inputs[at] for at in row] for row in measured.tokens.tolist()]
    runs = [trace(net, word) for word in words]
    lines = list(measured.lines())
    norms = [part.split(" after ") for part in lines[1].split(": ")[1].split(", ")]
    moments = {"embedding": 0, "attention 0": 1, "MLP 0": 2, "attention 1": 3, "MLP 1": 4}
    assert [name for _, name in norms] == ["embedding", "attention 0", "MLP 0", "attention 1"]
    for value, name in norms:
        streams = [run.residual(moments[name]) for run in runs]
        assert float(value) == pytest.approx(np.mean([np.linalg.norm(x, axis=1).mean() for x in streams]), rel=5e-3)
    w_u, b_u = net.arrays["unembed.W_U"], net.arrays["unembed.b_U"]
    same = np.mean([(r.residual(1) @ w_u + b_u).argmax(1) == r["hook_logits"].argmax(1) for r in runs])
    assert lines[3].startswith(f"logit lens after attention 0: the final answer at {same:.0%}")
