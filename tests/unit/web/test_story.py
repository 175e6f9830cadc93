"""Stories of runs: every number in them is the trace's own, and names are those of the labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")

from vitrify.constructions.catalogue import build
from vitrify.net.inference import trace
from vitrify.report.live import arrays, described, stops
from vitrify.spec import read_spec
from vitrify.web.answers import AnswerJudge
from vitrify.web.entries import broken, entries
from vitrify.web.story import story_at

EXAMPLES = Path(__file__).parents[3] / "examples"
INPUTS = {
    "weather.arpa": "sun rain",
    "abba.regex": "a b b a",
    "phrases.pcfg": "the dog sleeps",
    "reverse.rasp": "a b c",
    "world.knowledge.toml": "the capital of Japan",
    "brackets.crasp": "[ ]",
    "towns.connectivity": "ash-birch birch-cedar",
    "roof.maxout.json": "0.5",
    "faces.scene.toml": " ".join(["0.5"] * 256),
}


@pytest.fixture(scope="module")
def nets() -> dict[str, Any]:
    return {name: build(read_spec(EXAMPLES / name)) for name in INPUTS}


@pytest.mark.parametrize("name", INPUTS)
def test_every_stop_can_be_told_and_every_answer_of_a_right_net_is_right(nets: dict[str, Any], name: str) -> None:
    weights, words = nets[name], INPUTS[name].split()
    seen = trace(weights, words)
    names = [stop.name for stop in stops(weights)]
    assert len(names) == len(set(names))
    for number, stop in enumerate(names):
        assert story_at(seen, number, 1)["stop"]["name"] == stop
    beside = AnswerJudge(weights.architecture, read_spec(EXAMPLES / name)).beside(seen, words, len(seen.tokens) - 1)
    assert False not in beside["right"]
    assert True in beside["right"]
    assert described(weights)["stops"][-1]["kind"] == "answer"


def story(weights: Any, words: str, stop: str, place: int) -> dict[str, Any]:
    number = next(i for i, one in enumerate(stops(weights)) if one.name == stop)
    return story_at(trace(weights, words.split()), number, place)


def test_spaces_say_what_the_trace_reads_and_only_living_ones_are_told(nets: dict[str, Any]) -> None:
    weights = nets["abba.regex"]
    seen = trace(weights, "abba")
    found = {space["name"]: space for space in story(weights, "a b b a", "MLP 2", 4)["spaces"]}
    assert "map 1" not in found  # it is dead by then
    assert found["map 3"]["new"]
    assert found["map 3"]["texts"] == [" ".join(map(str, row)) for row in seen.read("map 3")]
    assert found["map 3"]["bars"] == seen.space("map 3").round(9).tolist()
    assert not found["position"]["new"]
    assert not any(found["position"]["changed"])


def test_attention_is_the_pattern_of_the_head_with_that_name(nets: dict[str, Any]) -> None:
    found = story(nets["weather.arpa"], "sun rain", "attention 0", 2)
    assert [head["name"] for head in found["heads"]] == ["itself: slot 0", "shift by 1: slot 1"]
    assert found["heads"][1]["pattern"] == ["ff0000", "ff0000", "00ff00"]


@pytest.mark.parametrize("name", ["weather.arpa", "abba.regex", "world.knowledge.toml", "phrases.pcfg"])
def test_units_fire_because_of_terms_that_add_up_and_write_what_the_stream_gains(
    nets: dict[str, Any], name: str
) -> None:
    weights = nets[name]
    seen = trace(weights, INPUTS[name].split())
    place, fired = len(seen.tokens) - 1, 0
    for number, stop in enumerate(stops(weights)):
        if stop.kind != "units":
            continue
        units = story_at(seen, number, place)["units"]
        fired += len(units["shown"])
        for unit in units["shown"]:
            terms = [term for _, term, _ in unit["because"]["terms"]]
            if not unit["because"]["more"]:
                assert np.isclose(sum(terms) + unit["bias"], unit["value"], rtol=1e-2, atol=2e-2)
            if unit["part"] == "mlp":
                post = seen[f"blocks.{stop.block}.mlp.hook_post"][place, unit["unit"]]
                assert np.isclose(post, unit["value"], rtol=1e-3)
    assert fired


def test_a_fired_unit_is_told_by_its_name(nets: dict[str, Any]) -> None:
    (unit,) = story(nets["world.knowledge.toml"], "the capital of Japan", "experts 0", 4)["units"]["shown"][:1]
    assert unit["name"]["run"] == "capital"
    assert unit["writes"]["terms"][0][0].startswith("answer[")


def test_a_broken_net_is_seen_in_the_stream_and_in_its_answers(nets: dict[str, Any]) -> None:
    weights, spec = nets["abba.regex"], read_spec(EXAMPLES / "abba.regex")
    listed = entries(weights, "embed.W_E", "a → map")["entries"]
    index, words, value = next(entry for entry in listed if entry[1] == "a → map 0[1]")
    wrong, (line,) = broken(weights, [{"array": "embed.W_E", "index": index, "value": value + 0.4}])
    assert words in line
    spaces = {space["name"]: space for space in story(wrong, "a b", "embedding", 1)["spaces"]}
    assert spaces["map 0"]["off"] == [1]  # no whole number
    assert "off" in spaces["bos"]
    index, _, value = next(entry for entry in listed if entry[1] == "a → map 0[0]")  # where a leads from the beginning
    bad, _ = broken(weights, [{"array": "embed.W_E", "index": index, "value": value + 2}])
    assert False in AnswerJudge(bad.architecture, spec).beside(trace(bad, "abba"), list("abba"), 4)["right"]


def test_changing_an_entry_changes_that_entry_and_no_other(nets: dict[str, Any]) -> None:
    from scipy.sparse import csr_array

    from vitrify.net.sparse import Stack, dense

    for name, weights in nets.items():
        for array in (row["name"] for row in arrays(weights)):
            old = np.array(dense(weights.arrays[array]))
            place = tuple(int(i) for i in np.argwhere(old)[-1])
            new = dense(broken(weights, [{"array": array, "index": list(place), "value": 7.5}])[0].arrays[array])
            assert new[place] == 7.5, name
            assert (new != old).sum() == 1
    sparse = nets["abba.regex"].map(lambda a: csr_array(dense(a)) if a.ndim == 2 else a)
    stacked = sparse.arrays["blocks.0.attn.W_Q"]
    flat = csr_array(stacked.reshape(-1, stacked.shape[-1]))
    sparse = sparse.with_array("blocks.0.attn.W_Q", Stack(stacked.shape[0], flat))
    for array in ("blocks.0.mlp.W_in", "blocks.0.attn.W_Q"):
        old = np.array(dense(sparse.arrays[array]))
        for place in (np.argwhere(old)[3].tolist(), np.argwhere(old == 0)[3].tolist()):
            new = dense(broken(sparse, [{"array": array, "index": place, "value": 7.5}])[0].arrays[array])
            assert new[tuple(place)] == 7.5
            assert (new != old).sum() == 1
