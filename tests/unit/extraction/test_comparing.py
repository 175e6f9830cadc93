"""Two networks on the same words: one function in two forms, planted differences, and what can't be compared."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vitrify as v
from cases import each
from command_line import vitrify
from extracted import model_of, planted
from vitrify.errors import InputError
from vitrify.extraction.comparing import compare
from vitrify.net.recurrent import Recurrent
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic


def shuffled(net: Weights[Any], seed: int = 0) -> Weights[Any]:
    """Return a network with its units in another order and of other sizes, which is the same function."""
    rng = np.random.default_rng(seed)
    for block, units in enumerate(net.architecture.units_per_layer):
        order, size = rng.permutation(units), rng.uniform(0.5, 2.0, size=units)
        for name, columns in (("mlp.W_in", True), ("mlp.b_in", True), ("mlp.W_out", False)):
            array = np.asarray(dense(net.arrays[f"blocks.{block}.{name}"]))
            array = array[..., order] * size if columns else array[order] / size[:, None]
            net = net.with_array(f"blocks.{block}.{name}", array)
    return net


@each("construction", ("log-depth", "commutative"))
def test_the_same_function_with_other_units_has_all_partners(construction: str) -> None:
    net: Weights[Any] = v.build(cyclic(3), construction, max_length=8)
    other = shuffled(net)
    both = compare(net, other)
    assert both.word is None
    assert sum(each.wrong for each in both.lengths) == 0
    assert both.heads
    assert all(head.near < 1e-9 for head in both.heads)
    changing = [unit for unit in both.units if unit.near]  # the others are constant on all words
    assert len(changing) > len(both.units) / 2
    assert all(unit.near == pytest.approx(1) for unit in changing)
    dead = other
    for name in (name for name in other.arrays if name.endswith("mlp.b_in")):
        dead = dead.with_array(name, np.asarray(dense(other.arrays[name])) - 1e3)  # no unit ever fires
    assert not any(unit.near for unit in compare(net, dead).units)


def test_other_attention_is_seen_by_its_distance() -> None:
    """Heads that look one back and ones that average: against the definition, on one word."""
    one: Weights[Any] = v.build(cyclic(3), "log-depth", max_length=8)
    two: Weights[Any] = v.build(cyclic(3), "commutative", max_length=8)
    both = compare(one, two)
    assert both.word is None
    assert any(head.near > 0.3 for head in both.heads)
    assert all(0 <= head.near <= 1 for head in both.heads)
    back = compare(two, one)
    least = min(head.near for head in both.heads)
    assert least == pytest.approx(min(head.near for head in back.heads))


def test_a_recurrence_has_no_heads_to_compare_and_the_same_answers() -> None:
    both = compare(v.build(cyclic(3), max_length=8), v.build(cyclic(3), "elman"))
    assert both.word is None
    assert all(head.partner is None for head in both.heads)
    assert isinstance(v.build(cyclic(3), "elman").architecture, Recurrent)


@each("trigger", ("1", "0110", "0101101"))
def test_the_shortest_word_after_which_they_differ_is_shown(trigger: str) -> None:
    both = compare(model_of(cyclic(2)), model_of(cyclic(2), lambda words: planted(words, trigger)))
    assert both.word == tuple(trigger)
    assert both.answers is not None
    assert both.answers[0] != both.answers[1]
    assert {each.length: each.wrong for each in both.lengths if each.complete} == {
        length: int(length == len(trigger)) for length in range(len([e for e in both.lengths if e.complete]))
    }


def test_networks_that_name_states_are_compared_by_what_they_accept() -> None:
    """Four states against two: the same language, or one that is larger by a word."""
    four = Automaton(("a", "b", "c", "d"), ("0", "1"), ((0, 1), (1, 2), (2, 3), (3, 0)), 0, frozenset({0, 2}))
    three = Automaton(("a", "b", "c"), ("0", "1"), ((0, 1), (1, 2), (2, 2)), 0, frozenset({0, 2}))
    two = v.build(cyclic(2), "elman")
    assert compare(v.build(four, "elman"), two).word is None
    both = compare(v.build(three, max_length=9), two)
    words = (word for length in range(9) for word in product("01", repeat=length))
    assert both.word == next(word for word in words if three.accepts(word) != cyclic(2).accepts(word))


def test_what_is_not_comparable_is_refused() -> None:
    weather = v.build(v.read("examples/weather.arpa"), max_length=8)
    with pytest.raises(InputError, match="certify --max-error"):
        compare(weather, weather)
    with pytest.raises(InputError, match="share symbols"):
        compare(v.build(cyclic(2), "elman"), weather)
    with pytest.raises(InputError, match="choose a smaller --max-length"):
        compare(v.build(cyclic(2), max_length=8), v.build(cyclic(2), "elman"), max_length=9)
    named = model_of(cyclic(3), answers="states")
    with pytest.raises(InputError, match="not about the same"):
        compare(named, model_of(cyclic(2)))


def test_the_command_prints_what_the_page_lists(tmp_path: Path) -> None:
    for name, spec in (("two", cyclic(2)), ("three", cyclic(3))):
        spec.write(tmp_path / f"{name}.automaton.json")
        assert vitrify("build", f"{name}.automaton.json", "-o", name, "--max-length", 6, cwd=tmp_path).returncode == 0
    done = vitrify("compare", "two", "three", "--json", cwd=tmp_path)
    assert done.returncode == 1
    said = json.loads(done.stdout)
    page = (Path(__file__).parents[3] / "docs" / "commands.md").read_text(encoding="utf-8")
    section = page.split("## `compare --json`\n")[1].split("\n## ")[0]
    keys = {*said, *said["lengths"][0], *said["heads"][0], *said["units"][0]}
    assert {key for key in keys if f"`{key}`" not in section} == set()
    assert said["word"] == ["1", "1"]
    shown = vitrify("compare", "two", "two", cwd=tmp_path)
    assert shown.returncode == 0
    assert shown.stdout.startswith("same answers\n")
