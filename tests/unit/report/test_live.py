"""Networks as data for a page: what they hold, which one a claim shows, and the Python beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atlas_rows import AUTOMATA, of_every_kind
from vitrify.claims.catalogue import claim_of, find
from vitrify.constructions.catalogue import build
from vitrify.errors import InputError
from vitrify.net.sparse import nonzeros
from vitrify.report import live
from vitrify.report.live import LiveNets, embedded, glass_box, packed, python_of, script, shown_subject
from vitrify.spec.automata.automaton import Automaton

DOOR = Automaton.from_regex("(ab|ba)*")


@pytest.fixture(scope="module")
def net() -> Any:
    return build(DOOR, max_length=8)


def test_packed_arrays_have_as_many_entries_as_the_network_and_its_values(net: Any) -> None:
    data = packed(net, DOOR)
    for name, array in net.arrays.items():
        own = data["arrays"][name]
        assert own["shape"] == list(array.shape)
        assert set(own["values"]) == set(np.asarray(array)[np.asarray(array) != 0].tolist())
    assert data["facts"]["sizes"]["nonzero"] == sum(map(nonzeros, net.arrays.values()))
    assert all(set(words) <= {"a", "b"} for words in data["suggestions"])
    assert json.loads(json.dumps(data)) == json.loads(embedded(data))


def test_data_in_a_page_cannot_end_its_script() -> None:
    assert "<" not in embedded({"inputs": ["</script><script>alert(1)</script>"]})


def test_the_script_is_one_plain_script_that_asks_for_nothing() -> None:
    lines = script().splitlines()
    assert not [line for line in lines if line.startswith(("import ", "export "))]
    assert "fetch(" in script()  # the app's part of page.js, which a network in a page does not call
    assert "ask(" not in (live.SCRIPTS / "source.js").read_text(encoding="utf-8")


def test_two_modules_may_not_share_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "ORDER", ("page", "page"))
    with pytest.raises(AssertionError, match="find"):
        script()


def test_a_network_that_no_page_holds_is_refused(net: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MAX_WEIGHTS", 10)
    with pytest.raises(InputError, match="up to 10 weights, not"):
        glass_box(net)


def test_a_claim_without_networks_shows_none() -> None:
    subject = shown_subject(claim_of(find("state_bits_bound_recall_and_copying")))
    assert subject is None


def test_a_claim_shows_a_network_and_the_python_that_builds_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = next(row for row in of_every_kind() if row.name == AUTOMATA)
    assert row.outcome
    nets = LiveNets(tmp_path)
    assert nets.find(row.headline, row.outcome) is None
    nets.make(row.headline, row.outcome)
    data = nets.find(row.headline, row.outcome)
    assert data
    exec(python_of(AUTOMATA, data), {})
    shown = shown_subject(claim_of(row.headline))
    assert shown
    assert shown.name == data["subject"]
    assert capsys.readouterr().out.strip() == str(shown.weights(data["suggestions"][0]))
